"""Estimates the duration of jobs on this machine: operations per update at its matmul rate."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from tsallax.agents import Agent
from tsallax.agents.actor_critic import ActorAgent
from tsallax.experiments.jobs import Job
from tsallax.training.build import make_run, shape_of
from tsallax.training.config import Config
from tsallax.types import Transition

SECONDS = 0.3  # duration of the measurement
SIZE = 512


def core_hours(jobs: Iterable[Job]) -> float:
    """Core hours of what is left of all jobs, without emulators and compilation."""
    costs: dict[Config, float] = {}
    total = 0.0
    for job in jobs:
        kind = shape_of(job.config)
        if kind not in costs:
            costs[kind] = operations(job.config)
        total += costs[kind] * job.cells * max(0, job.config.steps - job.step())
    return total / matmul_rate() / 3600 if total else 0.0


def operations(config: Config) -> float:
    """Operations of the network per environment step, as XLA counts them before compilation."""
    run = make_run(replace(config, seeds=1))
    agent = jax.eval_shape(run.agent.init, jax.random.key(0))
    hp = jax.tree.map(lambda n: jax.ShapeDtypeStruct(n.shape[1:], n.dtype), run.hp)

    def observations(size: int) -> Any:
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((size, *x.shape), x.dtype), run.observation
        )

    def numbers(size: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((size,), dtype)

    if config.learner == "parallel" and isinstance(run.agent, Agent):
        frames = config.num_envs * config.rollout
        size = frames // config.minibatches
        Z = jax.eval_shape(run.agent.atoms, agent.params, observations(size))
        y = jax.ShapeDtypeStruct((size, *Z.shape[2:]), Z.dtype)
        learning = _flops(run.agent.fit, agent, observations(size), numbers(size, jnp.int32), y, hp)
        acting = _flops(run.agent.atoms, agent.params, observations(size))
        return learning * config.epochs * config.minibatches / frames + acting / size
    size = config.batch
    seen, row = observations(size), numbers(size)
    action = numbers(size, jnp.int32)
    if isinstance(run.agent, ActorAgent):
        action = jax.ShapeDtypeStruct((size, run.agent.dimensions), jnp.float32)
    fields: list[Any] = [seen, action, row, row, seen]
    batch = Transition(*fields)
    key = jax.eval_shape(lambda: jax.random.key(0))
    return _flops(run.agent.update, agent, batch, hp, key) * config.updates / config.train_period


def _flops(function: Callable[..., Any], *arguments: Any) -> float:
    return float((jax.jit(function).lower(*arguments).cost_analysis() or {}).get("flops", 0.0))


def matmul_rate() -> float:
    """float32 operations per second of one core, by processor time, as the machine may be busy."""
    a, b = jnp.ones((SIZE, SIZE)), jnp.eye(SIZE)
    product = jax.jit(lambda a, b: a @ b)
    product(a, b).block_until_ready()
    begin, calls = time.process_time(), 0
    while time.process_time() - begin < SECONDS:
        a = product(a, b).block_until_ready()
        calls += 1
    return 2 * SIZE**3 * calls / (time.process_time() - begin)
