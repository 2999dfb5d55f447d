"""Disks that fail: at every file operation of a save and of a run, and a real one that is full."""

import contextlib
import errno
import io
import itertools
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np

from support.faults import LEARNERS, in_process, run
from tsallax.storage import checkpoint, files
from tsallax.storage.files import Directory
from tsallax.storage.tensors import Spec


class Crash(BaseException):
    """The machine stops here: nothing catches it."""


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


def bad_disks(name: str, root: Path, every: int = 1) -> int:
    """ENOSPC and EIO at every `every`-th file operation of a run: the same command resumes it."""
    learner, count = LEARNERS[name], 0
    with in_process():
        whole = root / "whole"
        assert run("train", *learner.short(), "--out", whole).code == 0
        for at in itertools.count(1, every):
            for number in (errno.ENOSPC, errno.EIO):
                out = root / "disk"
                with Faults(at, OSError(number, os.strerror(number))).active() as faults:
                    found = run("train", *learner.short(), "--out", out)
                if faults.count < at:
                    assert found.code == 0
                    return count
                assert found.code in (0, 2), "no clear line"
                assert found.code == 0 or os.strerror(number) in found.error
                finish_in(out, whole, name, found.code == 0)
                shutil.rmtree(out)
                count += 1
    raise AssertionError


def finish_in(out: Path, whole: Path, name: str, done: bool) -> None:
    """Every checkpoint in the folder is whole, and the same command brings the run to its end."""
    if out.exists():
        with Directory(out) as folder:
            for one in checkpoint.newest_first(folder):
                checkpoint.read_manifest(folder, one)
    if not done:
        found = run("train", *LEARNERS[name].short(), "--out", out)
        assert found.code == 0, found.error
    LEARNERS[name].check_same(out, whole)


def full_disks(name: str, root: Path, step: int = 2) -> str:
    """A run on a file system of its own, 4 kB larger each time: full, made larger, resumed."""
    disk, whole, count = root / "disk", root / "whole", 0
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(disk), "-o"]
    with in_process():
        assert run("train", *LEARNERS[name].short(), "--out", whole).code == 0
        for pages in itertools.count(2, step):
            made = subprocess.run([*mount, f"size={4 * pages}k"], capture_output=True)
            if made.returncode:
                return "not allowed to mount"
            try:
                found = run("train", *LEARNERS[name].short(), "--out", disk / "run")
                assert found.code == 0 or os.strerror(errno.ENOSPC) in found.error, found
                subprocess.run([*mount, "remount,size=64m"], check=True)
                finish_in(disk / "run", whole, name, found.code == 0)
            finally:
                subprocess.run(["umount", str(disk)], check=True)
            if found.code == 0:
                return str(count)
            count += 1
    raise AssertionError
