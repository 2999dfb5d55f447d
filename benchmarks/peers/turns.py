"""A contender's side of the race: lines of JSON on standard input and output.

A contender reports that it is ready once it learns at full speed. On a line `{"go": N}` it takes
at least N steps, and answers with their number and duration; `{"end": true}` asks for its memory.
Only the standard library is used, as every contender imports it in its own environment.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from works import WORKS, Work

PACE = 1.0  # least duration of the measurement of the pace, in seconds
COMPILED = "/jax/core/compile/backend_compile_duration"


def arguments() -> tuple[Work, argparse.Namespace]:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--algo", default="dqn")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--buffer", type=int, help="instead of the work's own")
    options = parser.parse_args()
    work = WORKS[options.work]
    return work._replace(buffer=options.buffer or work.buffer), options


def age() -> float:
    """Seconds since this process started, interpreter and imports included."""
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")


def peak_bytes() -> int:
    """Peak memory of this program alone; `ru_maxrss` would include the process before `exec`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


class Turns:
    """Counts steps; at the end of a turn, answers and waits.

    Args:
        warmup: steps before the first update.
        block: steps up to and including an update.
        settle: further steps before the pace is measured, in which the rest is compiled.
        fill: allocates the memory of a full replay; called at the end.
    """

    def __init__(
        self, warmup: int, block: int, settle: int = 0, fill: Callable[[], object] | None = None
    ):
        self.warmup, self.first, self.settle, self.fill = warmup, warmup + block, settle, fill
        self.answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # redirects what a library prints
        self.compiling = 0.0
        if "jax" in sys.modules:
            import jax

            jax.monitoring.register_event_duration_secs_listener(self._compiled)
        self.count = 0
        self.phases = self._phases()
        self.goal = next(self.phases)

    def done(self, steps: int = 1) -> None:
        """Report that `steps` steps are complete, with no work left in a queue."""
        self.count += steps
        if self.count >= self.goal:
            self.goal = self.count + next(self.phases)

    def _phases(self) -> Iterator[int]:
        """Yields the numbers of steps to take, and acts between them."""
        yield self.first
        first, late = age(), self.count - self.warmup
        if self.settle:
            yield self.settle
        pace = yield from self._pace()
        # The start of a compiled program is only known from its end.
        self._say(ready=first - late / pace, compile=self.compiling, pace=pace)
        busy = time.process_time()
        while steps := json.loads(sys.stdin.readline() or "{}").get("go"):
            begin, count = time.perf_counter(), self.count
            idle = time.process_time() - busy  # seconds of work since the last turn
            yield steps
            seconds, busy = time.perf_counter() - begin, time.process_time()
            self._say(steps=self.count - count, seconds=seconds, idle=idle)
        if self.fill:
            self.fill()
        self._say(bytes=peak_bytes())
        os._exit(0)  # from within a callback: a benchmark needs no cleanup

    def _pace(self) -> Iterator[int]:
        begin, count = time.perf_counter(), self.count
        while time.perf_counter() - begin < PACE:
            yield 1
        return (self.count - count) / (time.perf_counter() - begin)

    def _compiled(self, event: str, seconds: float, **_: object) -> None:
        if event == COMPILED:
            self.compiling += seconds

    def _say(self, **answer: object) -> None:
        print(json.dumps(answer), file=self.answers, flush=True)
