"""Hostile folders: every command on every file that it reads or writes, as anything but that file.

A case is a command and a number. Its folder is a good one with one to three harms (`harms`), beside
a tree that must stay as it is. The command must end in time and within its memory, with one line or
an answer, and print nothing that a terminal obeys. Cases run in few processes that live long.
"""

import contextlib
import gc
import multiprocessing
import re
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from support import runs, tiny
from support.faults import Other, Output, in_process, run
from support.faults.harms import harm
from support.outside import snapshot
from support.studies import STUDY
from tsallax.experiments.jobs import make_jobs
from tsallax.experiments.study import parse, settings
from tsallax.experiments.worker import work
from tsallax.storage.run_folder import plain
from tsallax.training.build import make_run
from tsallax.training.config import to_json
from tsallax.training.driver import Silent, train_into

SECONDS = 60  # of a case, on however busy a machine
MEMORY = 1 << 30  # bytes beyond what a process has once it is warm
COLLECT = 20  # cases between two collections of garbage
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
SPACE = "beta = {low = 0.1, high = 0.9}\nacting = {choices = ['pi', 'argmax']}\n"
FILES = {"small.toml": STUDY, "space.toml": SPACE}
TUNE = ["CartPole-v1", *tiny.flags(), "--q", "2", "--trials", "3", "--width", "2",
        "--confirm", "1", "--confirm-seeds", "2"]  # fmt: skip


class Target(NamedTuple):
    """A command, the good folder that it takes, and what else it writes there."""

    folder: str
    words: Callable[[Path], list[object]]
    writes: tuple[str, ...] = ()


TARGETS = {
    "watch": Target("run", lambda at: ["watch", at, "--once"]),
    "evaluate": Target("run", lambda at: ["evaluate", at, "--episodes", 2]),
    "play": Target("run", lambda at: ["play", at, "--steps", 3, "--out", at / "play.gif"],
                   ("play.gif", "play.gif.part")),
    "export": Target("run", lambda at: ["export", at, "--out", at / "policy.onnx"],
                     ("policy.onnx", "policy.onnx.part")),
    "train --resume": Target("run", lambda at: ["train", "--resume", at],
                             ("run.json.part", "weights.safetensors.part", "curves.png",
                              "curves.png.part", "checkpoints/.part-000000000120",
                              "checkpoints/step-000000000120", "best.safetensors.part")),
    "train --init-from": Target("run", lambda at: [
        "train", "CartPole-v1", *tiny.flags(steps=40, eval_every=0), "--init-from", at,
        "--out", at.parent / "new"]),
    "report": Target("tree", lambda at: ["report", at, "-o", at / "report.html"],
                     ("report.html", "report.html.part")),
    "claims": Target("results", lambda at: ["claims", at, "--details"]),
    "sweep": Target("sweep", lambda at: [
        "sweep", at.parent / "small.toml", "--out", at, "--draw-only"],
        ("small/metrics.csv.part", "small/about.json.part", "small/small.png", "logs")),
    "tune": Target("tune", lambda at: [
        "tune", *TUNE, "--space", at.parent / "space.toml", "--out", at],
                   ("best.toml.part", "journal.jsonl.part", "search.png.part")),
}  # fmt: skip


# --- good folders ---------------------------------------------------------------------------------


def make_good(root: Path) -> None:
    """One good folder of each kind, with every file that it can have."""
    first = tiny.train(root / "first")
    config = tiny.config(save_seconds=1e-9, init_from=str(first))
    calls = iter(range(9))
    train_into(make_run(config), root / "run", Silent(), lambda: next(calls) == 1, say=str)
    assert run("play", first, "--steps", 3, "--out", root / "run" / "play.gif").code == 0
    labels = [{"env": env, "algo": algo, "q": "2"} for env in ("CartPole-v1", "Acrobot-v1")
              for algo in ("tal", "dqn")]  # fmt: skip
    rows = [{"labels": one, "seeds": 3, "level": 10.0 + i} for i, one in enumerate(labels)]
    runs.write_results(root / "results" / "fig2", rows)
    shutil.copytree(root / "run", root / "tree" / "run")
    shutil.copytree(root / "results", root / "tree" / "results")
    for name, text in FILES.items():
        (root / name).write_text(text)
    for job in make_jobs(settings(parse(STUDY, "small")), root / "sweep" / "runs", 1)[:1]:
        assert work(plain(to_json(job.config)), str(job.path)) == {"end": "done"}
    assert run("sweep", root / "small.toml", "--out", root / "sweep", "--draw-only").code == 0
    with quiet_tuning():
        assert run(*TARGETS["tune"].words(root / "tune")).code == 0


@contextlib.contextmanager
def quiet_tuning() -> Iterator[None]:
    """A search that trains nothing and draws nothing: its journal is what is read and written."""
    worth = lambda configs, *_: np.arange(len(configs) * 2, dtype=float).reshape(-1, 2)  # noqa: E731
    with mock.patch("tsallax.experiments.tune._train", worth):
        yield


# What the folders hold; a folder of another run is none of theirs, however good it is.
KNOWN = {tiny.config(save_seconds=1e-9), tiny.config(steps=40, eval_every=0)}


# --- one case -------------------------------------------------------------------------------------


class Hang(BaseException):
    """The command took too long."""


def _hang(*_: object) -> None:
    raise Hang


def survive(name: str, number: int, good: Path, at: Path) -> str:
    """Do the harm of this number to the folder of a command, and run it; what came of it."""
    target, random = TARGETS[name], np.random.default_rng([number, *name.encode()])
    folder, outside = at / target.folder, at / "outside"
    shutil.copytree(good / target.folder, folder, symlinks=True)
    for other in FILES:
        shutil.copy(good / other, at)
    (outside / "deep").mkdir(parents=True)
    (outside / "file").write_text("keep")
    (outside / "deep" / "file").write_text("keep")
    there = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    places = list(dict.fromkeys([*there, *map(Path, target.writes)]))
    chosen = [places[i] for i in random.permutation(len(places))[: random.integers(1, 4)]]
    intact = Path("run.json") not in chosen
    done = [harm(random, folder / place, outside) for place in chosen]
    before, told = snapshot(outside), f"{name}, case {number}: {'; '.join(done)}"
    old = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(SECONDS)
    try:
        found = run(*target.words(folder))
    except Other:
        found = Output(0, "", "")
        assert not intact, told
    except BaseException as error:
        raise AssertionError(told) from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    assert snapshot(outside) == before, f"{told}: something outside was touched"
    check(found, told)
    if found.code == 0 and intact and name in ("evaluate", "train --resume"):
        check_right(name, found, folder, good, told)
    return "answered" if found.code == 0 else "refused"


def check(found: Output, told: str) -> None:
    """One line if it was refused, and nothing that a terminal obeys."""
    assert found.code in (0, 1, 2), f"{told}: {found}"
    assert found.code != 2 or found.error.count("\n") == 1, f"{told}: {found.error}"
    assert len(found.error) < 1000, f"{told}: {found.error}"
    assert "Traceback" not in found.error, f"{told}: {found.error}"
    assert not CONTROL.search(found.out + found.error), f"{told}: {found}"


def check_right(name: str, found: Output, folder: Path, good: Path, told: str) -> None:
    """What was not refused is right."""
    wanted = good / "wanted" / name
    if name == "evaluate":
        assert found.out == wanted.read_text(), told
    else:
        weights = "weights.safetensors"
        assert (folder / weights).read_bytes() == (wanted / weights).read_bytes(), told


def make_wanted(good: Path) -> None:
    """The right answers."""
    (good / "wanted").mkdir()
    (good / "wanted" / "evaluate").write_text(run(*TARGETS["evaluate"].words(good / "run")).out)
    whole = shutil.copytree(good / "run", good / "wanted" / "train --resume")
    assert run("train", "--resume", whole).code == 0


# --- many cases -----------------------------------------------------------------------------------


def prepare(good: str) -> None:
    """Warm a process up, then limit its memory."""
    root, stack = Path(good), contextlib.ExitStack()
    stack.enter_context(in_process(KNOWN))
    stack.enter_context(quiet_tuning())
    globals()["KEEP"] = stack  # as long as the process lives
    for name in TARGETS:
        with tempfile.TemporaryDirectory() as at:
            shutil.copytree(root / TARGETS[name].folder, Path(at) / TARGETS[name].folder)
            for other in FILES:
                shutil.copy(root / other, at)
            with contextlib.suppress(Other):
                run(*TARGETS[name].words(Path(at) / TARGETS[name].folder))
    gc.collect()
    gc.freeze()  # so that the collections below are quick
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def survive_some(name: str, first: int, count: int, good: str) -> dict[str, int]:
    found = {"answered": 0, "refused": 0}
    for number in range(first, first + count):
        with tempfile.TemporaryDirectory() as at:
            found[survive(name, number, Path(good), Path(at))] += 1
        if number % COLLECT == 0:
            gc.collect()  # programs that were compiled for one case
    return found


def hostile_folders(names: list[str], count: int, root: Path, workers: int = 2) -> dict[str, Any]:
    """So many cases of each command; how many were answered, how many refused in one line."""
    with in_process():
        make_good(root)
        make_wanted(root)
    spawn = multiprocessing.get_context("spawn")
    found: dict[str, Any] = {name: {"answered": 0, "refused": 0} for name in names}
    with ProcessPoolExecutor(workers, spawn, prepare, (str(root),)) as pool:
        size = max(1, min(50, count // workers))
        tasks = [
            (name, pool.submit(survive_some, name, at, min(size, count - at), str(root)))
            for name in names
            for at in range(0, count, size)
        ]
        for name, task in tasks:
            for key, number in task.result().items():
                found[name][key] += number
    return found
