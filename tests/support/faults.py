"""Faults on purpose: kills, full disks, damaged files, nonsense. `make faults` prints the table.

Every function does one kind of harm a given number of times and returns how many it did; it raises
AssertionError at the first one that was not survived.
"""

import contextlib
import errno
import functools
import io
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from support import tiny
from tsallax import cli
from tsallax.storage import checkpoint, files
from tsallax.storage.files import Directory
from tsallax.storage.tensors import Spec
from tsallax.training.build import make_run

HERE = Path(__file__).parent
KEPT = ("metrics.csv", "weights.safetensors", "curves.png")
OFTEN = {"eval_every": 400, "save_seconds": 0.05}
CARTPOLE = ["CartPole-v1", *tiny.flags(**OFTEN, steps=8000)]
FREEWAY = ["MinAtar/Freeway", *tiny.flags("MinAtar/Freeway", **OFTEN, steps=2000, time_limit=100)]
PARALLEL = [
    *(
        "CartPole-v1",
        "--preset",
        "paper",
        "--learner",
        "parallel",
        "--seeds",
        "2",
        "--hidden",
        "8",
        "--num-envs",
        "4",
    ),
    *("--rollout", "10", "--target-period", "400", "--steps", "40000", "--eval-every", "4000"),
    *("--save-seconds", "0.05"),
]
NAUGHTY = ["host_envs:tests/Naughty-v0", *tiny.flags(tiny.HOST, **OFTEN, steps=2000)]


class Crash(BaseException):
    """The machine stops here: nothing catches it."""


# --- processes ------------------------------------------------------------------------------------


def command(arguments: list[str], out: Path) -> list[str]:
    return [sys.executable, "-m", "tsallax", "train", *arguments, "--out", str(out)]


def environment(cache: Path) -> dict[str, str]:
    """A user's, with a cache of compiled programs so that a start takes seconds."""
    paths = [HERE, HERE.parents[1] / "src"]
    own = {"JAX_COMPILATION_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(map(str, paths))}
    own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"} | own


def finish(arguments: list[str], out: Path, cache: Path) -> bytes:
    done = subprocess.run(command(arguments, out), env=environment(cache), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    return done.stdout


def kill(arguments: list[str], out: Path, cache: Path, after: float) -> bool:
    """SIGKILL so many seconds after the run's folder appeared; false if it was done by then."""
    child = subprocess.Popen(
        command(arguments, out), env=environment(cache), stdout=subprocess.DEVNULL
    )
    while not (out / "metrics.csv").exists() and child.poll() is None:
        time.sleep(0.01)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(after)
        return False
    child.send_signal(signal.SIGKILL)
    child.wait()
    return True


def kills(arguments: list[str], count: int, root: Path, exact: bool = True, seed: int = 0) -> int:
    """Runs killed at random moments, saves included, and resumed to the end by the same command."""
    cache, random = root / "cache", np.random.default_rng(seed)
    finish(arguments, root / "whole", cache)
    begin = time.monotonic()
    finish(arguments, root / "timed", cache)  # compiled programs are cached by now
    length = time.monotonic() - begin
    hit = 0
    while hit < count:
        out = root / "run"
        hit += kill(arguments, out, cache, random.uniform(0, length))
        finish(arguments, out, cache)
        if exact:
            for name in KEPT:
                assert (out / name).read_bytes() == (root / "whole" / name).read_bytes(), name
        else:
            check_rows(out, root / "whole")
        shutil.rmtree(out)
    return hit


def check_rows(out: Path, whole: Path) -> None:
    """The same periods, each once; counters that only grow; nothing that is not finite."""
    rows, wanted = (
        np.genfromtxt(path / "metrics.csv", delimiter=",", names=True) for path in (out, whole)
    )
    np.testing.assert_array_equal(rows["step"], wanted["step"])
    np.testing.assert_array_equal(rows["seed"], wanted["seed"])
    assert np.isfinite(rows["loss"][rows["step"] > 40]).all()
    assert (rows["diverged"] == -1).all()


# --- file operations ------------------------------------------------------------------------------


class Faults:
    """The `at`-th file operation of the storage fails; a write is torn in two first."""

    def __init__(self, at: int, error: BaseException):
        self.at, self.error, self.count = at, error, 0

    def hit(self) -> bool:
        self.count += 1
        return self.count == self.at

    def wrap(self, function):
        def call(*args, **kwargs):
            if self.hit():
                raise self.error
            return function(*args, **kwargs)

        return call

    def module(self, real, *names: str) -> SimpleNamespace:
        """A module some of whose functions may fail."""
        return SimpleNamespace(**vars(real) | {n: self.wrap(getattr(real, n)) for n in names})

    @contextlib.contextmanager
    def active(self):
        faults, operations = self, ("fsync", "ftruncate", "mkdir", "replace", "unlink")

        class TornFile(io.FileIO):
            def write(self, data) -> int:
                if faults.hit():
                    super().write(data[: len(data) // 2])
                    raise faults.error
                return super().write(data)

        with (
            mock.patch.object(files, "os", self.module(os, *operations)),
            mock.patch.object(files, "shutil", self.module(shutil, "rmtree")),
            mock.patch.object(files, "FileIO", TornFile),
            mock.patch.object(Path, "mkdir", self.wrap(Path.mkdir)),
        ):
            yield self


def checkpoints(run: Path) -> list[str]:
    """The names of a run's checkpoints, oldest first."""
    with Directory(run) as folder:
        return checkpoint.newest_first(folder)[::-1]


def interrupted_saves(root: Path) -> int:
    """A save stopped at each of its file operations in turn: a whole checkpoint is always left."""
    arrays = {"a": np.arange(1000, dtype=np.float32), "b": np.zeros((3, 4), bool)}
    expected = {name: Spec(x.shape, x.dtype) for name, x in arrays.items()}
    for at in itertools.count(1):
        with Directory(root / f"save-{at}", create=True) as run:
            for step in (1, 2, 3):
                checkpoint.save(run, step, {**arrays, "a": arrays["a"] + step}, {})
            with Faults(at, Crash()).active() as faults, contextlib.suppress(Crash):
                checkpoint.save(run, 4, {**arrays, "a": arrays["a"] + 4}, {})
            good = [checkpoint.load(run, name, expected) for name in checkpoints(run.path)]
            assert len(good) >= 2
            assert good[-1].step in (3, 4)
            np.testing.assert_array_equal(good[-1].arrays["a"], arrays["a"] + good[-1].step)
            checkpoint.save(run, 5, arrays, {})  # and the next save is as if nothing had been
            assert checkpoints(run.path)[-1][-1] == "5"
            found = {entry.name for entry in (run.path / checkpoint.FOLDER).iterdir()}
            assert found == set(checkpoints(run.path))
        if faults.count < at:
            return at - 1
    raise AssertionError


def quick_picture(folder: Path, _: str) -> bytes:
    return (folder / "metrics.csv").read_bytes()


def bad_disks(root: Path, every: int = 1) -> int:
    """ENOSPC and EIO at every `every`-th file operation of a run: the same command resumes it."""
    arguments = ["CartPole-v1", *tiny.flags(save_seconds=1e-9)]
    train = lambda out: cli.main(["train", *arguments, "--out", str(out)])  # noqa: E731
    make_once = functools.cache(make_run)  # compiled once
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        error = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(mock.patch("tsallax.training.build.make_run", make_once))
        # The picture is drawn from the metrics alone, and takes most of such a run's time.
        stack.enter_context(mock.patch("tsallax.report.curves.draw_curves", quick_picture))
        assert train(root / "whole") == 0
        count = 0
        for at in itertools.count(1, every):
            for number in (errno.ENOSPC, errno.EIO):
                out = root / "disk"
                with Faults(at, OSError(number, os.strerror(number))).active() as faults:
                    code = train(out)
                if faults.count < at:
                    assert code == 0
                    return count
                assert code in (0, 2), "no clear line"
                assert code == 0 or os.strerror(number) in error.getvalue()
                if out.exists():
                    with Directory(out) as folder:  # what bears the name is whole
                        for name in checkpoint.newest_first(folder):
                            checkpoint.read_manifest(folder, name)
                assert code == 0 or train(out) == 0, error.getvalue()[-200:]
                for name in KEPT:
                    assert (out / name).read_bytes() == (root / "whole" / name).read_bytes(), name
                shutil.rmtree(out)
                count += 1
    raise AssertionError


def main() -> None:
    from support.damage import damaged_checkpoints, fuzzed_commands, poisoned_seed, save_costs

    def row(what, function, *args):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as root:
            found = function(*args, root=Path(root))
        print(f"{what:66} {found!s:>24} {time.monotonic() - begin:7.0f} s", flush=True)

    print(f"{'what was done':66} {'times, all survived':>24}")
    row("saves stopped at each file operation", interrupted_saves)
    row("ENOSPC and EIO at each file operation of a run", bad_disks)
    row("damaged and hostile checkpoints refused", damaged_checkpoints, 20_000)
    row("fuzzed command lines: run, or one line", fuzzed_commands, 5_000)
    row("one seed of 8 poisoned, the others to the bit", poisoned_seed)
    row("cost of a checkpoint", save_costs)
    with ThreadPoolExecutor(2) as pool:  # each waits for processes of its own
        host = partial(kills, exact=False)
        rows = [
            pool.submit(row, "SIGKILL, compiled CartPole, resumed to the bit", kills, CARTPOLE, 50),
            pool.submit(row, "SIGKILL, compiled MinAtar, resumed to the bit", kills, FREEWAY, 50),
            pool.submit(row, "SIGKILL, parallel, resumed to the bit", kills, PARALLEL, 50),
            pool.submit(row, "SIGKILL, host loop, no period lost or doubled", host, NAUGHTY, 20),
        ]
        for done in rows:
            done.result()


if __name__ == "__main__":
    main()
