"""Evaluation: whole episodes from fixed seeds, every cell at once."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from tsallax.agents import Agent
from tsallax.envs.base import Environment
from tsallax.networks import Params
from tsallax.policies import sample
from tsallax.types import HParams

CAP = 10_000  # steps, for environments without a time limit; a longer episode is cut there


def episode_return(
    env: Environment, agent: Agent, greedy: bool, params: Params, hp: HParams, key: PRNGKeyArray
) -> Float[Array, ""]:
    """One episode's return, acting by pi, or greedily by the largest value."""
    k_reset, k_run = jax.random.split(key)

    def running(carry: Any):
        return ~carry[2] & (carry[3] < (env.time_limit or CAP))

    def step(carry):
        state, total, _, t = carry
        k_act, k_step = jax.random.split(jax.random.fold_in(k_run, t))
        Q, pi = agent.policy(params, env.observe(state), hp)
        action = jnp.argmax(Q) if greedy else sample(k_act, pi)
        state, outcome = env.step(state, action, k_step)
        done = outcome.terminated | outcome.truncated
        return state, total + outcome.reward, done, t + 1

    start = (env.reset(k_reset), jnp.zeros(()), jnp.zeros((), bool), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(running, step, start)[1]


@partial(jax.jit, static_argnames=("env", "agent", "episodes", "greedy"))
def evaluate(
    env: Environment,
    agent: Agent,
    hp: HParams,
    params: Params,
    episodes: int,
    greedy: bool,
    seed: int | Int[Array, ""] = 0,
) -> Float[Array, "cells {episodes}"]:
    """Returns of the same `episodes` seeds for every cell (the leading axis of `params`, `hp`)."""
    keys = jax.random.split(jax.random.key(seed), episodes)
    one = partial(episode_return, env, agent, greedy)
    return jax.vmap(jax.vmap(one, (None, None, 0)), (0, 0, None))(params, hp, keys)
