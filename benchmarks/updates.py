"""Compiled updates alone, many in one program, each on its own data.

With the same data for all, XLA would compute targets and policies, which depend on it, only once.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp

from tsallax.agents import Agent
from tsallax.types import HParams, Policy, Transition

COUNT = 100  # updates per program
SCALE = 0.05  # of the action values: similar to the regularisation, so that policies are mixed


def ends(batch: int, actions: int) -> tuple[jax.Array, jax.Array]:
    """The target network's values at s and s' for every update."""
    both = SCALE * jax.random.normal(jax.random.key(0), (2, COUNT, batch, actions))
    return both[0], both[1]


def transitions(observation: Any, batch: int, actions: int) -> Transition:
    k_seen, k_action = jax.random.split(jax.random.key(1))
    seen = jax.random.normal(k_seen, (COUNT, batch, *observation.shape)).astype(observation.dtype)
    zeros = jnp.zeros((COUNT, batch))
    chosen = jax.random.randint(k_action, zeros.shape, 0, actions)
    return Transition(seen, chosen, zeros, zeros > 0, seen[::-1])


def update_timer(
    agent: Agent, hp: HParams, observation: Any, batch: int, actions: int
) -> Callable[[], float]:
    """Seconds per update, with the target network's values cached, as in the compiled loop."""
    key = jax.random.key(2)

    @jax.jit
    def program(learner, data):
        def body(learner, data):
            return agent.update(learner, data[0], hp, key, data[1])

        return jax.lax.scan(body, learner, data)

    data = transitions(observation, batch, actions), ends(batch, actions)
    return timer(program, agent.init(key), data)


def policies_timer(policy: Policy, hp: HParams, batch: int, actions: int) -> Callable[[], float]:
    """Seconds for the two policies of a TAL update, at s and s', and the averages over them."""

    def average(Q):
        return jnp.vdot(policy(Q, hp), Q)

    @jax.jit
    def program(data):
        return jax.lax.scan(lambda _, both: (0, jax.tree.map(jax.vmap(average), both)), 0, data)

    return timer(program, ends(batch, actions))


def timer(program: Callable, *arguments: Any) -> Callable[[], float]:
    jax.block_until_ready(program(*arguments))

    def measure() -> float:
        begin = perf_counter()
        jax.block_until_ready(program(*arguments))
        return (perf_counter() - begin) / COUNT

    return measure
