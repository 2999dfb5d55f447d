"""Whole episodes step by step, with everything there is to show of each."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt8

from tsallax.envs.base import Environment
from tsallax.training.model import Model


class Moment(NamedTuple):
    """A state, what the agent makes of it, and the action it then takes."""

    picture: UInt8[np.ndarray, "height width 3"]
    step: int  # of the episode, 0 at its start
    total: float  # the return so far
    action: int | None  # none when the episode is over
    Q: Float[np.ndarray, "A"]
    pi: Float[np.ndarray, "A"]
    episode: int = 1


def moments(
    env: Environment,
    model: Model,
    *,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    steps: int = 1000,
) -> Iterator[Moment]:
    """The episodes that `evaluate` plays with this seed, each cut after `steps`.

    An episode of n steps gives n + 1 moments, the last one without an action.
    """
    for episode, key in enumerate(jax.random.split(jax.random.key(seed), episodes), start=1):
        k_reset, k_run = jax.random.split(key)
        state, total, over = _reset(env, k_reset), 0.0, False
        for t in range(steps + 1):
            observation, picture = _look(env, state)
            Q, pi = model.policy(np.asarray(observation))
            over = over or t == steps
            k_act, k_step = jax.random.split(jax.random.fold_in(k_run, t))
            action = None if over else int(_choose(greedy, Q, pi, k_act))
            yield Moment(np.asarray(picture), t, total, action, Q, pi, episode)
            if action is None:
                break
            state, reward, ended = _step(env, state, jnp.int32(action), k_step)
            total, over = total + float(reward), bool(ended)


@partial(jax.jit, static_argnames="env")
def _reset(env: Environment, key: PRNGKeyArray) -> Any:
    return env.reset(key)


@partial(jax.jit, static_argnames="env")
def _step(
    env: Environment, state: Any, action: Int[Array, ""], key: PRNGKeyArray
) -> tuple[Any, Float[Array, ""], Bool[Array, ""]]:
    state, outcome = env.step(state, action, key)
    return state, outcome.reward, outcome.terminated | outcome.truncated


@partial(jax.jit, static_argnames="env")
def _look(
    env: Environment, state: Any
) -> tuple[Shaped[Array, "..."], UInt8[Array, "height width 3"]]:
    return env.observe(state), env.render(state)


@partial(jax.jit, static_argnames="greedy")
def _choose(
    greedy: bool, Q: Float[Array, "A"], pi: Float[Array, "A"], key: PRNGKeyArray
) -> Int[Array, ""]:
    return jnp.argmax(Q) if greedy else jax.random.categorical(key, jnp.log(pi))
