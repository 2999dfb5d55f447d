"""Runs killed at random moments, saves included, and resumed to the end by the same command.

Their processes are forked from one that has imported everything and started nothing; every tenth
run is the command itself.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tsallax.cli.train  # noqa: F401 (and with it what a run needs, once for all of them)
import tsallax.report.curves
import tsallax.training.driver  # noqa: F401
from support.faults import LEARNERS, Learner, command, environment, finish
from tsallax import cli

REAL = 10  # one run in so many is the command itself


def child(arguments: list[str]) -> None:
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os._exit(cli.main(arguments))


def start(words: list[str], out: Path, cache: Path, real: bool) -> Any:
    if real:
        null = subprocess.DEVNULL
        return subprocess.Popen(command(words, out), env=environment(cache), stdout=null)
    os.environ.update(environment(cache))
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload(["support.faults.kills"])
    process = fork.Process(target=child, args=(["train", *words, "--out", str(out)],))
    process.start()
    return process


def ended(process: Any, seconds: float | None = None) -> bool:
    """Whether a process has ended, after so many seconds at most."""
    if isinstance(process, subprocess.Popen):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.poll() is not None
    process.join(seconds)
    return process.exitcode is not None


def kill(words: list[str], out: Path, cache: Path, after: float, real: bool) -> bool:
    """SIGKILL so many seconds after the run's folder appeared; false if it was done by then."""
    process = start(words, out, cache, real)
    while not (out / "metrics.csv").exists() and not ended(process, 0):
        time.sleep(0.01)
    if ended(process, after):
        return False
    os.kill(process.pid, signal.SIGKILL)
    assert ended(process)
    return True


def kills(name: str, count: int, root: Path, seed: int = 0) -> int:
    """So many kills of runs of a learner; each then ends as one that was never stopped."""
    learner: Learner = LEARNERS[name]
    cache, random, words = root / "cache", np.random.default_rng(seed), learner.words()
    finish(words, root / "whole", cache)
    begin = time.monotonic()
    assert ended(start(words, root / "timed", cache, False))  # its programs are cached by now
    length, hit, out = time.monotonic() - begin, 0, root / "run"
    while hit < count:
        real = hit % REAL == 0
        hit += kill(words, out, cache, random.uniform(0, length), real)
        process = start(words, out, cache, real)
        assert ended(process, 600)
        code = process.returncode if real else process.exitcode
        assert code == 0, f"{name}: {code}"
        learner.check_same(out, root / "whole")
        shutil.rmtree(out)
    return hit


if sys.platform == "win32":
    raise ImportError("processes are forked here")
