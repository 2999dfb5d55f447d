"""Processes that end at random moments: killed, hung up on, out of room on the disk."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from support.faults.learners import LEARNERS
from support.faults.processes import Reference, environment

SAVES = {"save_seconds": 0.05, "save_steps": 1}


def reference(name: str, root: Path) -> Reference:
    learner = LEARNERS[name]
    often = {"eval_every": learner.length // 10, **SAVES}
    return Reference(learner.words(learner.length, **often), root, learner.exact)


def kills(name: str, count: int, root: Path, seed: int = 0, number: int = signal.SIGKILL) -> str:
    """A run is ended at random moments, saves included, and resumed until it is done.

    It then is the run that nothing happened to: to the bit, or as host runs are promised.
    """
    run, random = reference(name, root), np.random.default_rng(seed)
    done = finished = 0
    while done < count:
        child = run.train()
        moment = random.uniform(0, 1.1 * run.seconds)
        if child.wait(moment) is None and child.end(number) == -number:
            done += 1
            continue
        # It ended before the signal came, which may be while the process is taken down.
        assert child.code == 0, run.log.read_text()[-500:]
        run.compare()
        shutil.rmtree(run.out)
        finished += 1
    run.check_finished()
    how = "to the bit" if run.exact else "every period once"
    return f"{done}, {finished + 1} runs finished, {how}"


def hangups(count: int, root: Path) -> str:
    """SIGHUP, as when a terminal is closed."""
    return kills("replay", count, root, seed=1, number=signal.SIGHUP)


def stops(count: int, root: Path) -> str:
    """SIGSTOP and SIGCONT at random moments change nothing."""
    run, random = reference("replay", root), np.random.default_rng(2)
    done = 0
    while done < count:
        child = run.train()
        while done < count and child.wait(random.uniform(0, 0.4 * run.seconds)) is None:
            child.send(signal.SIGSTOP)
            assert child.wait(0.1) is None
            child.send(signal.SIGCONT)
            done += 1
        assert child.wait() == 0
        run.compare()
        shutil.rmtree(run.out)
    return f"{done}"


def pipes(count: int, root: Path) -> str:
    """Whoever reads the output leaves after some bytes: the run is finished all the same."""
    from support.faults.processes import Child

    run, random = reference("replay", root), np.random.default_rng(3)
    for _ in range(count):
        read, write = os.pipe()
        with os.fdopen(write, "wb") as end:
            child = Child(["train", *run.words, "--out", str(run.out)], run.log, end)
        os.read(read, int(random.integers(1, 100))) if random.random() < 0.5 else None
        os.close(read)
        assert child.wait() == 0, run.log.read_text()[-500:]
        run.compare()
        shutil.rmtree(run.out)
    assert "Error" not in run.log.read_text()
    return f"{count}"


def interrupts(count: int, root: Path) -> str:
    """SIGINT while Python starts and imports: a line or nothing, never a traceback."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    command = [sys.executable, "-m", "tsallax", "train", *LEARNERS["replay"].words(400)]
    own = environment(root / "cache")
    begin = time.monotonic()
    subprocess.run([*command, "--out", str(root / "whole")], env=own, capture_output=True)
    length, random = time.monotonic() - begin, np.random.default_rng(4)
    ended = 0
    for i in range(count):
        child = subprocess.Popen(
            [*command, "--out", str(root / str(i))], env=own, stdout=-1, stderr=-1
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(random.uniform(0.2, 1.0) * length)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=300)[1].decode()
        early = child.returncode == -signal.SIGINT or "site" in said  # before any of ours runs
        assert early or child.returncode in (0, 130), f"exit code {child.returncode}: {said[-500:]}"
        assert early or "Traceback" not in said, said[-800:]
        ended += child.returncode == 130
    return f"{count}, {ended} in one line"


def moved(count: int, root: Path) -> str:
    """The folder of a live run is moved away, removed, or made anew by another run."""
    run, random = reference("replay", root), np.random.default_rng(5)
    for i in range(count):
        child = run.train()
        while not (run.out / "metrics.csv").exists() and child.wait(0.005) is None:
            pass
        child.wait(random.uniform(0, 0.5 * run.seconds))
        with contextlib.suppress(FileNotFoundError):
            if i % 3 == 0:
                run.out.rename(root / "elsewhere")
            else:
                shutil.rmtree(run.out, ignore_errors=True)
        if i % 3 == 2:
            run.check_finished()  # in the place of the old one, which still lives
        code = child.wait()
        assert code in (0, 2), f"exit code {code}: {run.log.read_text()[-500:]}"
        for path in (run.out, root / "elsewhere"):
            shutil.rmtree(path, ignore_errors=True)
    assert "Traceback" not in run.log.read_text()
    return f"{count}"


@contextlib.contextmanager
def small_disk(path: Path, kilobytes: int) -> Iterator[None]:
    path.mkdir(exist_ok=True)
    options = f"size={kilobytes}k"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True
    )
    if done.returncode:
        raise PermissionError("no right to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def full_disk(count: int, root: Path) -> str:
    """A disk that is really full says so; with room, the same command ends to the bit."""
    run, random = reference("replay", root), np.random.default_rng(6)
    size = sum(file.stat().st_size for file in run.whole.rglob("*") if file.is_file()) // 1024
    full = 0
    try:
        for _ in range(count):
            disk = root / "disk"
            with small_disk(disk, int(random.integers(8, 2 * size))):
                run.out = disk / "run"
                before = run.log.stat().st_size
                code = run.train().wait()
                said = run.log.read_bytes()[before:].decode()
                assert code in (0, 2), said[-500:]
                if code == 2:
                    assert re.search(r"^tsallax: .*No space left on device$", said, re.M), said
                    full += 1
                subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
                run.check_finished()
    except PermissionError as error:
        return f"not run: {error}"
    return f"{count}, {full} ran full"
