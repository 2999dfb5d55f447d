"""`tsallax bench`: the speed of the compiled loop, as ratios measured in one run."""

import dataclasses
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from tsallax.training.build import Run, make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

STEPS = 1_000_000  # in the configuration; only a few target periods are run


def run(rounds: int = 3) -> None:
    """Measure the compiled loop against this machine's matrix products, and its scaling.

    The scaling is that with the size of the buffer and with the number of seeds.

    Args:
        rounds: number of interleaved repetitions, of which the fastest counts.
    """
    gym = resolve(Config("CartPole-v1", preset="paper", steps=STEPS))
    small, large = (dataclasses.replace(gym, buffer=n) for n in (10_000, 1_000_000))
    loops = {"gym": gym, "1e4": small, "1e6": large, "8 seeds": dataclasses.replace(gym, seeds=8)}
    timers: dict[str, Callable[[], float]] = {k: loop_timer(make_run(c)) for k, c in loops.items()}
    timers["matmul"] = matmul_timer(gym)
    best = dict.fromkeys(timers, float("inf"))
    for _ in range(rounds):
        best = {name: min(best[name], timer()) for name, timer in timers.items()}
    table = Table(title="tsallax bench", title_justify="left", box=None, header_style="dim")
    for column in ("quantity", "measured", "ratio", "target"):
        table.add_column(column, justify="left" if column == "quantity" else "right")
    speed, limit = (gym.train_period / best[name] for name in ("gym", "matmul"))
    table.add_row("matrix products of a plain TAL update, steps/s", f"{limit:,.0f}", "", "")
    table.add_row(
        "gym preset, TAL, one seed, steps/s", f"{speed:,.0f}", f"{speed / limit:.2f}", ">= 0.65"
    )
    for size in ("1e4", "1e6"):  # in a small replay the same observations are drawn repeatedly
        speed = gym.train_period / best[size]
        row = f"the same with a buffer of {size}"
        table.add_row(row, f"{speed:,.0f}", f"{speed / limit:.2f}", ">= 0.65")
    crowd = best["8 seeds"] / 8 / best["gym"]
    table.add_row("cost per seed, 8 vmapped seeds against 1", "", f"{crowd:.2f}", "<= 1.15")
    megabytes = replay_bytes("MinAtar/Breakout") / 1e6
    table.add_row("MinAtar Breakout replay of 1e5, MB per seed", f"{megabytes:.1f}", "", "<= 25")
    Console().print(table)


def loop_timer(built: Run) -> Callable[[], float]:
    """Seconds per update of all cells, over a whole target period with a full replay."""
    config = built.config
    state = built.learner.start()
    full = jnp.full_like(state.replay.added, config.buffer)  # full of blank observations
    state = state._replace(replay=state.replay._replace(added=full))
    periods = (period.metrics for period in built.learner.train(state, lambda *_: None))
    for _ in range(1 + -(-config.warmup // config.target_period)):  # compile, and pass the warm-up
        jax.block_until_ready(next(periods))

    def measure() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(next(periods))
        return (time.perf_counter() - begin) / (config.target_period / config.train_period)

    return measure


def matmul_timer(config: Config, repeats: int = 200) -> Callable[[], float]:
    """Seconds for the matrix products alone of one TAL update.

    Three forward passes (target at s and s', online at s) and the backward pass, which needs the
    weights' gradient in every layer and the inputs' in all but the first.
    """
    sizes = (4, *config.hidden, 2)
    pairs = list(pairwise(sizes))
    batch = config.batch
    x = [jnp.ones((batch, i)) * 0.1 for i, _ in pairs]
    w = [jnp.ones((i, o)) * 0.1 for i, o in pairs]
    g = [jnp.ones((batch, o)) * 0.1 for _, o in pairs]

    @jax.jit
    def program(x, w, g):
        def update(carry, _):
            # A number from the last round scales each factor, so that XLA cannot hoist any of them.
            out = [((1 + carry) * xi) @ wi for xi, wi in zip(x, w, strict=True)]
            out += [((2 + carry) * xi) @ wi for xi, wi in zip(x, w, strict=True)]
            out += [((3 + carry) * xi) @ wi for xi, wi in zip(x, w, strict=True)]
            out += [((1 + carry) * xi).T @ gi for xi, gi in zip(x, g, strict=True)]
            out += [((1 + carry) * gi) @ wi.T for gi, wi in zip(g[1:], w[1:], strict=True)]
            return carry + 1e-9 * sum(o[0, 0] for o in out), None

        return jax.lax.scan(update, jnp.zeros(()), None, length=repeats)[0]

    program(x, w, g).block_until_ready()

    def measure() -> float:
        begin = time.perf_counter()
        program(x, w, g).block_until_ready()
        return (time.perf_counter() - begin) / repeats

    return measure


def replay_bytes(env: str) -> int:
    """The size of one seed's replay in bytes, from its shapes."""
    built = make_run(resolve(Config(env, preset="paper", steps=STEPS)))
    learner: Any = built.learner
    state = learner.shapes().replay
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
