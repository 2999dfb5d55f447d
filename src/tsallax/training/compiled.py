"""The compiled run: a target period of every cell is one program."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from jaxtyping import Int

from tsallax.training.config import Config
from tsallax.training.loop import Loop, Metrics, Period, RunState
from tsallax.types import HParams

CELLS = "cells"  # the name of the axis, for what they decide together


def cycles(config: Config, done: int = 0) -> Iterator[dict[str, Any]]:
    """The target periods after step `done`: idle blocks, updates, whether they end with a copy."""
    for start in range(done, config.steps, config.target_period):
        length = min(config.target_period, config.steps - start)
        idle = min(max(config.warmup - start, 0), length) // config.train_period
        updates = length // config.train_period - idle
        yield {"idle": idle, "updates": updates, "copy": length == config.target_period}


def start(loop: Loop, seeds: Int[np.ndarray, "cells"]) -> RunState:
    """The state before the first step. Equal seeds start alike, whatever their numbers."""
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    state = _init(loop)(keys)
    return jax.tree.map(jnp.copy, state)  # no two leaves share a buffer: all are donated


@lru_cache(maxsize=32)
def _init(loop: Loop) -> Callable[..., RunState]:
    return jax.jit(jax.vmap(loop.init))


def over_cells(function: Callable[..., Any], cells: int) -> Callable[..., Any]:
    """`vmap`, but for one cell: products in a batch of one take the CPU twice as long."""
    if cells > 1:
        return jax.vmap(function, axis_name=CELLS)

    def alone(*arguments):
        out = function(*jax.tree.map(lambda x: x[0], arguments))
        return jax.tree.map(lambda x: x[None], out)

    return alone


def train(
    loop: Loop,
    config: Config,
    hp: HParams,
    state: RunState,
    tick: Callable[[int], None] | None = None,
    devices: int = 1,
    time_limit: int | None = None,
) -> Iterator[tuple[RunState, Metrics]]:
    """The states and metrics after each target period; the state passed in is used up.

    A period is one program, so there is nothing to tell `tick` in between. An environment that
    truncates more often than its `time_limit` says would learn from wrong observations.
    """
    del tick
    most = config.target_period // config.train_period
    for shape in cycles(config, int(state.step[0])):
        period = Period(**shape, steps=config.train_period, most=most)
        state, metrics = program(loop, len(state.step), most, devices)(state, hp, period)
        seen, step = int(np.max(state.replay.truncations)), int(metrics.step[0])
        if seen > (step // time_limit if time_limit else 0):
            declared = f"one in {time_limit} steps at most" if time_limit else "none"
            raise ValueError(
                f"{config.env} truncated {seen} episodes in {step} steps and declares {declared}: "
                "give its Environment the right time_limit"
            )
        yield state, jax.tree.map(np.asarray, metrics)


@lru_cache(maxsize=32)
def program(loop: Loop, cells: int, most: int, devices: int = 1) -> Callable[..., Any]:
    """A target period of all cells, compiled when it is first called.

    On several devices each has its share of the cells, and they have nothing to say to each other.
    """
    share = cells // devices
    largest = {"most": lambda n: jax.lax.pmax(n, CELLS)} if share > 1 else {}

    def run(state: RunState, hp: HParams, period: Period) -> tuple[RunState, Metrics]:
        cycle = partial(loop.cycle, period=period._replace(most=most), **largest)
        return over_cells(cycle, share)(state, hp)

    if devices > 1:
        mesh = jax.make_mesh((devices,), ("devices",), axis_types=(AxisType.Auto,))
        own = P("devices")
        run = jax.shard_map(
            run, mesh=mesh, in_specs=(own, own, P()), out_specs=own, check_vma=False
        )
    return jax.jit(run, donate_argnums=0)
