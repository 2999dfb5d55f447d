"""How long jobs will take on this machine: their updates' operations at its matmul rate."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from tsallax.experiments.jobs import Job
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.types import Transition

SECONDS = 0.3  # of measuring
SIZE = 512


def core_hours(jobs: Iterable[Job]) -> float:
    """Core hours of all jobs together, without emulators and compilation."""
    costs: dict[tuple, float] = {}
    total = 0.0
    for job in jobs:
        config = job.config
        kind = (config.env, config.network, config.hidden, config.batch, config.head)
        if kind not in costs:
            costs[kind] = operations(config)
        total += costs[kind] * job.steps * config.updates / config.train_period
    return total / matmul_rate() / 3600 if total else 0.0


def operations(config: Config) -> float:
    """Operations of one update, as XLA counts them before it compiles."""
    run = make_run(replace(config, seeds=1, buffer=config.batch))
    x = run.observation
    row = jax.ShapeDtypeStruct((config.batch,), jnp.float32)
    many = jax.ShapeDtypeStruct((config.batch, *x.shape), x.dtype)
    fields: list[Any] = [many, jax.ShapeDtypeStruct(row.shape, jnp.int32), row, row, many]
    batch = Transition(*fields)
    learner = jax.eval_shape(run.agent.init, jax.random.key(0))
    hp = jax.tree.map(lambda n: jax.ShapeDtypeStruct(n.shape[1:], n.dtype), run.hp)
    lowered = jax.jit(run.agent.update).lower(learner, batch, hp, jax.random.key(0))
    return float((lowered.cost_analysis() or {}).get("flops", 0.0))


def matmul_rate() -> float:
    """Operations per second of one core in float32, by processor time: the machine may be busy."""
    a, b = jnp.ones((SIZE, SIZE)), jnp.eye(SIZE)
    product = jax.jit(lambda a, b: a @ b)
    product(a, b).block_until_ready()
    begin, calls = time.process_time(), 0
    while time.process_time() - begin < SECONDS:
        a = product(a, b).block_until_ready()
        calls += 1
    return 2 * SIZE**3 * calls / (time.process_time() - begin)
