"""Memory over thousands of periods: whether it grows."""

import os
import time
from pathlib import Path

import numpy as np

from support.faults.learners import LEARNERS
from support.faults.processes import train, warm

EVERY = 0.2  # seconds between two looks
MOST = 1e-4  # of its memory that a process may gain per second: a third in an hour


def resident(pid: int) -> int:
    """Bytes that a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def soak(name: str, seconds: int, root: Path) -> str:
    """A run of so many seconds: the slope of its memory over the second half.

    In its first minute or so a process still takes some megabytes more, and then no more.
    """
    learner = LEARNERS[name]
    words = learner.words(2 * 10**9, eval_every=10**6, save_seconds=2, save_steps=1)
    warm()
    child = train(words, root / "run", root / "log")
    table = root / "run" / "timing.csv"
    while not (table.exists() and table.stat().st_size > 200):
        assert child.wait(0.1) is None, (root / "log").read_text()[-500:]
    begin, seen = time.monotonic(), []
    while (now := time.monotonic() - begin) < seconds:
        seen.append((now, resident(child.pid)))
        assert child.wait(EVERY) is None, (root / "log").read_text()[-500:]
    child.end()
    periods = len(table.read_text().splitlines()) - 1
    t, memory = np.array(seen[len(seen) // 2 :]).T
    slope = np.polyfit(t, memory, 1)[0]
    share = slope / memory.mean()
    assert share < MOST, f"{slope / 1e3:.1f} kB/s of {memory.mean() / 1e6:.0f} MB"
    return f"{periods:,} periods, {slope / 1e3:+.2f} kB/s of {memory.mean() / 1e6:.0f} MB"
