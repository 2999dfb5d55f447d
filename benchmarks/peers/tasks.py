"""The tasks of the time to solve, and a contender's side of it: one line of JSON at the end.

Only the standard library is used, as every contender imports it in its own environment.
"""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Task(NamedTuple):
    title: str
    env: str
    goal: float  # the mean return that solves it
    limit: float  # seconds of processor time after which it counts as not solved


TASKS = {
    "cartpole": Task("CartPole-v1 to a mean return of 475", "CartPole-v1", 475.0, 900.0),
    "acrobot": Task("Acrobot-v1 to a mean return of -100", "Acrobot-v1", -100.0, 900.0),
    "lunarlander": Task("LunarLander-v3 to a mean return of 200", "LunarLander-v3", 200.0, 1800.0),
    "breakout": Task("MinAtar Breakout to a mean return of 10", "MinAtar/Breakout", 10.0, 1800.0),
}


class Attempt(NamedTuple):
    """The arguments of an attempt."""

    name: str  # of the task
    task: Task
    seed: int
    limit: float
    checkout: str  # path of the code of a contender that is not a package


def attempt() -> Attempt:
    """Parse the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, help="seconds, instead of the task's own")
    parser.add_argument("--checkout", default="")
    options = parser.parse_args()
    task = TASKS[options.task]
    limit = task.limit if options.limit is None else options.limit
    return Attempt(options.task, task, options.seed, limit, options.checkout)


class Stopwatch:
    """Processor time of this process and its ended children, except for what is left out.

    Contenders have one core: on an idle machine it is the time since the start, imports included.
    """

    def __init__(self) -> None:
        self.outside = 0.0

    def seconds(self) -> float:
        return _processor() - self.outside

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """A context for an evaluation, whose time does not count."""
        begin = _processor()
        yield
        self.outside += _processor() - begin


def _processor() -> float:
    return sum(os.times()[:4])


def answer(solved: bool, seconds: float, steps: int, mean: float) -> None:
    """Print the result; the mean return is that of the last evaluation."""
    found = {"solved": solved, "seconds": round(seconds, 2), "steps": steps}
    print(json.dumps({**found, "return": round(mean, 2)}), flush=True)
