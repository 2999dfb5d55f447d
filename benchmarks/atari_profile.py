"""The time per step of the Atari loop by its parts: Pong, the atari preset, quantiles.

    taskset -c 0 python benchmarks/atari_profile.py

The parts are called as in the loop, and each is waited for.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import tyro

from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve


class EnoughError(Exception):
    """The steps are done."""


seconds: dict[str, float] = defaultdict(float)


def timed(name: str, function: Callable) -> Callable:
    def call(*arguments):
        begin = perf_counter()
        out = jax.block_until_ready(function(*arguments))
        seconds[name] += perf_counter() - begin
        return out

    return call


def main(algos: tuple[str, ...] = ("tal", "dqn"), steps: int = 400, buffer: int = 10_000) -> None:
    """Print the milliseconds per step of each part.

    Args:
        algos: the algorithms.
        steps: steps to measure, after the warm-up and as many other steps.
        buffer: capacity of the replay, which does not affect the times.
    """
    print("| ms per step | act | update | batch | emulator | rest |\n|---|---|---|---|---|---|")
    for algo in algos:
        config = Config(
            "ALE/Pong-v5", preset="paper", algo=algo, q=(2.0,), buffer=buffer, steps=10**9
        )
        run = make_run(resolve(config))
        learner: Any = run.learner
        own = {name: timed(name, getattr(learner.programs, name)) for name in ("act", "update")}
        learner.programs = learner.programs._replace(**own)
        state = learner.start()
        learner.envs.step = timed("emulator", learner.envs.step)
        state.replay.sample = timed("batch", state.replay.sample)
        print(f"| {algo} | {' | '.join(parts(run, state, steps))} |", flush=True)


def parts(run, state, steps: int) -> list[str]:
    """Act, update, batch, emulator and the rest, with their shares."""
    first = run.config.warmup + steps
    begin = 0.0

    def tick(step: int) -> None:
        nonlocal begin
        if step == first:
            begin = perf_counter()
            seconds.clear()
        if step == first + steps:
            raise EnoughError

    with contextlib.suppress(EnoughError):
        next(run.learner.train(state, tick))
    whole = perf_counter() - begin
    found = [seconds[name] for name in ("act", "update", "batch", "emulator")]
    return [f"{1e3 * x / steps:.2f} ({x / whole:.0%})" for x in (*found, whole - sum(found))]


if __name__ == "__main__":
    tyro.cli(main)
