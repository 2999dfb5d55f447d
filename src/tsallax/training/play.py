"""Whole episodes step by step, with everything there is to show of each."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt8

from tsallax.envs.base import Environment
from tsallax.envs.host import HostEnvs
from tsallax.policies import sample
from tsallax.replay import HostRing
from tsallax.training.model import Model, draw_actions


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


def host_moments(
    envs: HostEnvs,
    model: Model,
    *,
    stack: int = 0,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    steps: int = 1000,
) -> Iterator[Moment]:
    """The same of one environment on the host, which must be made to render."""
    spec = envs.observation
    for episode in range(episodes):
        ring = HostRing(1, 1, spec.shape, spec.dtype, stack)
        ring.begin(envs.reset([seed + episode]))
        random = np.random.default_rng([seed, episode])
        total, over = 0.0, False
        for t in range(steps + 1):
            picture = envs.picture()
            Q, pi = (x[0] for x in model.policy(ring.current()))
            over = over or t == steps
            uniform = random.random()
            action = None if over else int(Q.argmax() if greedy else draw_actions(pi, uniform))
            yield Moment(picture, t, total, action, Q, pi, episode + 1)
            if action is None:
                break
            moves = envs.step(np.array([action]))
            if envs.failures:
                raise ValueError(f"the environment failed at step {t + 1}: {envs.failures[0]}")
            ring.follow(moves.over, moves.observation)
            total, over = total + float(moves.reward[0]), bool(moves.over[0])


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
    return jnp.argmax(Q) if greedy else sample(key, pi)
