"""Files that cannot be written: every file operation of a save, and of a run, fails in turn."""

import contextlib
import errno
import functools
import io
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from support.faults.learners import LEARNERS
from support.faults.processes import KEPT, check_rows
from tsallax import cli
from tsallax.storage import checkpoint, files
from tsallax.storage.files import Directory
from tsallax.storage.tensors import Spec
from tsallax.training.build import make_run


class CrashError(BaseException):
    """The machine stops here: nothing catches it."""


class Faults:
    """The `at`-th file operation of the storage fails; a write is torn in two first."""

    def __init__(self, at: int, error: BaseException):
        self.at, self.error, self.count = at, error, 0

    def hit(self) -> bool:
        self.count += 1
        return self.count == self.at

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.hit():
                raise self.error
            return function(*args, **kwargs)

        return call

    def module(self, real: ModuleType, *names: str) -> SimpleNamespace:
        """A module some of whose functions may fail."""
        return SimpleNamespace(**vars(real) | {n: self.wrap(getattr(real, n)) for n in names})

    @contextlib.contextmanager
    def active(self) -> Iterator["Faults"]:
        faults, operations = self, ("fsync", "ftruncate", "mkdir", "replace", "unlink")

        class TornFile(io.FileIO):
            def write(self, data: Any) -> int:
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


def saves(root: Path) -> str:
    """A save stopped at each of its file operations in turn: a whole checkpoint is always left."""
    arrays = {"a": np.arange(1000, dtype=np.float32), "b": np.zeros((3, 4), bool)}
    expected = {name: Spec(x.shape, x.dtype) for name, x in arrays.items()}
    for at in itertools.count(1):
        with Directory(root / f"save-{at}", create=True) as run:
            for step in (1, 2, 3):
                checkpoint.save(run, step, {**arrays, "a": arrays["a"] + step}, {})
            with Faults(at, CrashError()).active() as faults, contextlib.suppress(CrashError):
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
            return str(at - 1)
    raise AssertionError


ERRORS = {
    "crash": CrashError,
    "full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "broken": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
}


def operations(name: str, root: Path, every: int = 1) -> str:
    """Each `every`-th file operation of a learner's run fails: the same command resumes it.

    The process ends there, the disk is full, or it is broken.
    """
    learner = LEARNERS[name]
    periods = 3 * int(learner.options.get("target_period", 400))
    words = learner.words(periods, eval_every=periods, save_seconds=1e-9, save_steps=1)
    train = lambda out: cli.main(["train", *words, "--out", str(out)])  # noqa: E731
    make_once = functools.lru_cache(make_run)
    picture = lambda folder, _: (folder / "metrics.csv").read_bytes()  # noqa: E731
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        said = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        if learner.exact:  # an environment of the host keeps its state from run to run
            stack.enter_context(mock.patch("tsallax.training.build.make_run", make_once))
        # The picture is drawn from the metrics alone, and takes most of such a run's time.
        stack.enter_context(mock.patch("tsallax.report.curves.draw_curves", picture))
        whole, out = root / "whole", root / "run"
        assert train(whole) == 0, said.getvalue()
        for count, at in enumerate(itertools.count(1, every)):
            for how, error in ERRORS.items():
                wrong = error()
                with Faults(at, wrong).active() as faults:
                    try:
                        code: int | None = train(out)
                    except CrashError:
                        code = None
                if faults.count < at:
                    assert code == 0
                    return f"{count * len(ERRORS):,}"
                assert code in ((None,) if how == "crash" else (0, 2)), (at, how, code)
                assert code != 2 or str(wrong.args[1]) in said.getvalue()
                check_left(out)
                assert code == 0 or train(out) == 0, said.getvalue()[-200:]
                if learner.exact:
                    for name in KEPT:
                        same = (out / name).read_bytes() == (whole / name).read_bytes()
                        assert same, (at, how, name)
                else:
                    check_rows(out, whole)
                shutil.rmtree(out)
    raise AssertionError


def check_left(out: Path) -> None:
    """What bears the name of a checkpoint is whole."""
    if out.exists():
        with Directory(out) as folder:
            for name in checkpoint.newest_first(folder):
                checkpoint.read_manifest(folder, name)
