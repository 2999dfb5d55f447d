"""Workers of a sweep that are killed or stop answering, on this machine and on a Ray cluster."""

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from support.studies import STUDY
from tsallax.experiments import local, results, sweep
from tsallax.experiments.jobs import make_jobs
from tsallax.experiments.local import Local
from tsallax.experiments.study import parse, settings
from tsallax.storage.files import Directory, open_below

SIGNS_OF_LIFE = {"SILENCE": 3.0, "BEAT": 0.5}


def long_enough(count: int) -> str:
    """A study of 16 runs, each of which is long enough for its share of so many faults."""
    steps = 8_000 + 4_000 * count
    return STUDY.replace("[1.5, 3]", "[0.5, 1.5, 3, 4]").replace(
        "steps = 320", f"steps = {steps}\nsave_seconds = 0.3"
    )


def carry_out(text: str, folder: Path, executor: sweep.Executor) -> tuple[dict[str, bytes], int]:
    """The files that must not depend on who ran it, and how often a job was lost."""
    study, lost = parse(text, "small"), []
    jobs = make_jobs(settings(study), folder / "runs", width=1)
    state = sweep.run(jobs, executor, say=lost.append)
    assert (len(state.done), state.failed) == (len(jobs), {})
    with Directory(folder) as opened:
        results.collect(study, settings(study), jobs, opened)
    names = ("metrics.csv", "weights.safetensors")
    found = {f"{j.path.name}/{n}": (j.path / n).read_bytes() for j in jobs for n in names}
    return {**found, "table": (folder / "metrics.csv").read_bytes()}, len(lost)


def descendants() -> list[Path]:
    """The folders in /proc of the processes below this one: others may have a cluster, too."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended since
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rpartition(")")[2].split()[1]
            )
    found, below = [], {os.getpid()}
    while below := {pid for pid, parent in parents.items() if parent in below}:
        found += [Path("/proc") / str(pid) for pid in below]
    return found


def task_workers() -> list[int]:
    """Processes that run a task of ours just now."""
    found = []
    for folder in descendants():
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes().startswith(b"ray::work"):
                found.append(int(folder.name))
    return found


def local_workers(executor: Local) -> Callable[[], list[int]]:
    def find() -> list[int]:
        busy = [w.process for w in executor.workers if w.job is not None]
        return [p.pid for p in busy if p is not None and p.poll() is None]

    return find


def newest(folder: Path) -> int:
    """When a checkpoint was last written below the folder, in nanoseconds."""
    times = [0]
    for path in folder.glob("runs/*/checkpoints/*"):
        with contextlib.suppress(OSError):  # removed since
            times.append(path.stat().st_mtime_ns)
    return max(times)


class Meddler(threading.Thread):
    """Harms a worker at some moment after each checkpoint, however fast the machine is.

    Args:
        folder: of the sweep.
        count: of faults.
        workers: those that there are now.
        signals: what is sent to them, in turn.
        after: what else is done after so many faults.
    """

    def __init__(
        self,
        folder: Path,
        count: int,
        workers: Callable[[], list[int]],
        signals: tuple[int, ...] = (signal.SIGKILL,),
        after: dict[int, Callable[[], Any]] | None = None,
    ):
        super().__init__(daemon=True)
        self.folder, self.count, self.workers = folder, count, workers
        self.signals, self.after = signals, dict(after or {})
        self.faults: list[int] = []  # when
        self.over = threading.Event()

    def run(self) -> None:
        draw = random.Random(0)
        while len(self.faults) < self.count and not self.over.wait(0.02):
            if newest(self.folder) <= (self.faults[-1] if self.faults else 0):
                continue
            time.sleep(draw.uniform(0, 0.5))
            if there := self.workers():
                number = self.signals[len(self.faults) % len(self.signals)]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(there), number)
                    self.faults.append(time.time_ns())
            if (also := self.after.pop(len(self.faults), None)) is not None:
                also()

    def __enter__(self) -> "Meddler":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def on_this_machine(count: int, root: Path) -> str:
    """SIGKILL, SIGSTOP and SIGTERM in turn: nothing is lost, nothing is there twice."""
    text = long_enough(count)
    wanted, _ = carry_out(text, root / "quiet", Local(open_below(root, "logs")))
    executor = Local(open_below(root, "logs"))
    signals = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
    with (
        mock.patch.multiple(local, **SIGNS_OF_LIFE),
        Meddler(root / "harmed", count, local_workers(executor), signals) as meddler,
    ):
        found, lost = carry_out(text, root / "harmed", executor)
    assert found == wanted
    assert len(meddler.faults) == count
    return f"{len(meddler.faults)}, {lost} tried again, the same table and bits"


def on_ray(count: int, root: Path) -> str:
    """SIGKILL to workers of a cluster of one machine."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # its warning of a change to come
    text = long_enough(count)
    wanted, _ = carry_out(text, root / "quiet", Local(open_below(root, "logs")))
    from tsallax.experiments.cluster import Ray

    executor = Ray()
    places = listening()
    assert places, "Ray listens nowhere"
    outside = {place for place in places if not place.startswith("127.")}
    assert not outside, f"it listens beyond this machine: {sorted(outside)}"
    with Meddler(root / "ray", count, task_workers) as meddler:
        found, lost = carry_out(text, root / "ray", executor)
    assert found == wanted
    assert len(meddler.faults) == count
    return f"{len(meddler.faults)}, {lost} tried again, {len(places)} ports, all on the loopback"


def listening() -> set[str]:
    """Address and port of every TCP socket on which Ray's processes here listen."""
    inodes = set()
    for folder in descendants():
        with contextlib.suppress(OSError):
            links = (os.readlink(file) for file in (folder / "fd").iterdir())  # noqa: PTH115
            inodes |= {x[8:-1] for x in links if x.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                found.add(address(words[1]))
    return found


def address(text: str) -> str:
    """As /proc/net/tcp has it: the address in words of four bytes, each backwards."""
    place, port = text.split(":")
    raw = b"".join(bytes.fromhex(place[i : i + 8])[::-1] for i in range(0, len(place), 8))
    mapped = raw[-4:] if raw[:12] in (b"", bytes(10) + b"\xff\xff") or len(raw) == 4 else b""
    words = ".".join(map(str, mapped)) if mapped else raw.hex()
    return f"{words}:{int(port, 16)}"
