"""Whole episodes of a trained agent: to evaluate it, and to look at it step by step.

An episode depends on its seed alone, so that what `evaluate` counts is what `play` shows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt8

from tsallax.agents import Agent
from tsallax.envs.host import HostEnvs
from tsallax.learners.host import FrameStack
from tsallax.networks import Params
from tsallax.policies import sample
from tsallax.types import Environment, HParams

CAP = 10_000  # steps, for environments without a time limit; a longer episode is cut there

# From observations to action values and the policy, on the host: (cells ...) to two of (cells, A).
HostPolicy = Callable[[Shaped[np.ndarray, "cells ..."]], tuple[Any, Any]]


class Moment(NamedTuple):
    """A state, what the agent makes of it, and the action it then takes."""

    picture: UInt8[np.ndarray, "height width 3"]
    step: int  # of the episode, 0 at its start
    total: float  # the return so far
    action: int | None  # none when the episode is over
    Q: Float[np.ndarray, "A"]
    pi: Float[np.ndarray, "A"]
    episode: int = 1


# Environments that are JAX functions --------------------------------------------------------------


class Episode(NamedTuple):
    """One under way."""

    env: Any
    total: Float[Array, ""]
    over: Bool[Array, ""]
    step: Int[Array, ""]
    key: PRNGKeyArray


def begin(env: Environment, key: PRNGKeyArray) -> Episode:
    k_reset, k_run = jax.random.split(key)
    nothing = jnp.zeros((), jnp.int32)
    return Episode(env.reset(k_reset), jnp.zeros(()), jnp.zeros((), bool), nothing, k_run)


def advance(
    env: Environment, agent: Agent, greedy: bool, params: Params, hp: HParams, now: Episode
) -> tuple[Episode, Int[Array, ""]]:
    """One step by pi, or greedily by the largest value, and the action that was taken."""
    k_act, k_step = jax.random.split(jax.random.fold_in(now.key, now.step))
    Q, pi = agent.policy(params, env.observe(now.env), hp)
    action = jnp.argmax(Q) if greedy else sample(k_act, pi)
    state, outcome = env.step(now.env, action, k_step)
    over = outcome.terminated | outcome.truncated
    return Episode(state, now.total + outcome.reward, over, now.step + 1, now.key), action


# Compiled in 0.4 of the time, and as fast; other devices ignore it.
COMPILED_SOON: dict[str, str | bool] = {
    "xla_backend_optimization_level": "1",
    "xla_cpu_use_fusion_emitters": False,
}


@partial(
    jax.jit,
    static_argnames=("env", "agent", "episodes", "greedy"),
    compiler_options=COMPILED_SOON,
)
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

    def episode_return(params, hp, key):
        def running(now: Episode):
            return ~now.over & (now.step < (env.time_limit or CAP))

        def step(now: Episode):
            return advance(env, agent, greedy, params, hp, now)[0]

        return jax.lax.while_loop(running, step, begin(env, key)).total

    keys = jax.random.split(jax.random.key(seed), episodes)
    return jax.vmap(jax.vmap(episode_return, (None, None, 0)), (0, 0, None))(params, hp, keys)


def moments(
    env: Environment,
    agent: Agent,
    params: Params,
    hp: HParams,
    *,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    steps: int = 1000,
) -> Iterator[Moment]:
    """The episodes that `evaluate` plays with this seed, each cut after `steps`.

    An episode of n steps gives n + 1 moments, the last one without an action. `params` and `hp` are
    those of one cell.
    """
    for number, key in enumerate(jax.random.split(jax.random.key(seed), episodes), start=1):
        now = _begin(env, key)
        for t in range(steps + 1):
            following, action, Q, pi, picture = _show(env, agent, greedy, params, hp, now)
            taken = None if bool(now.over) or t == steps else int(action)
            Q, pi, picture = map(np.asarray, (Q, pi, picture))
            yield Moment(picture, t, float(now.total), taken, Q, pi, number)
            if taken is None:
                break
            now = following


@partial(jax.jit, static_argnames="env")
def _begin(env: Environment, key: PRNGKeyArray) -> Episode:
    return begin(env, key)


@partial(jax.jit, static_argnames=("env", "agent", "greedy"))
def _show(env, agent, greedy, params, hp, now):
    Q, pi = agent.policy(params, env.observe(now.env), hp)
    return *advance(env, agent, greedy, params, hp, now), Q, pi, env.render(now.env)


# Environments on the host -------------------------------------------------------------------------


class HostMoment(NamedTuple):
    """One step of every cell's episode. Cells whose episode is over are stepped on, uncounted."""

    step: int
    total: Float[np.ndarray, "cells"]  # before the step
    going: Bool[np.ndarray, "cells"]
    action: Int[np.ndarray, "cells"]
    Q: Float[np.ndarray, "cells A"]
    pi: Float[np.ndarray, "cells A"]


def host_episode(
    envs: HostEnvs, policy: HostPolicy, stack: int, episode: int, seed: int, greedy: bool
) -> Iterator[HostMoment]:
    """The same episode of every cell; the last moment, when all are over, is not acted on."""
    cells = envs.count
    frames = FrameStack(envs.reset([seed + episode] * cells), stack)
    total, going = np.zeros(cells), np.ones(cells, bool)
    random = np.random.default_rng([seed, episode])
    limit = envs.time_limit or CAP
    for t in range(limit + 1):
        Q, pi = map(np.asarray, policy(frames.current))
        draw = random.random()  # shared: a cell's episode does not depend on the others
        action = Q.argmax(-1) if greedy else draw_actions(pi, draw)
        yield HostMoment(t, total.copy(), going.copy(), action, Q, pi)
        if not going.any() or t == limit:
            return
        moves = envs.step(action)
        total += np.where(going, moves.reward, 0)
        going &= ~moves.over
        going[list(envs.failures)] = False
        frames.push(moves.observation, moves.over)


def evaluate_host(
    envs: HostEnvs, policy: HostPolicy, stack: int, episodes: int, greedy: bool, seed: int
) -> Float[np.ndarray, "cells episodes"]:
    """Returns of the same `episodes` seeds for every cell; NaN where its environment failed."""
    found = []
    for episode in range(episodes):
        *_, last = host_episode(envs, policy, stack, episode, seed, greedy)
        last.total[list(envs.failures)] = np.nan
        found.append(last.total)
    return np.stack(found, -1)


def host_moments(
    envs: HostEnvs,
    policy: HostPolicy,
    *,
    stack: int = 0,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    steps: int = 1000,
) -> Iterator[Moment]:
    """The episodes of one environment, which must be made to render, each cut after `steps`."""
    for episode in range(episodes):
        for now in host_episode(envs, policy, stack, episode, seed, greedy):
            if envs.failures:
                raise ValueError(f"the environment failed at step {now.step}: {envs.failures[0]}")
            acts = bool(now.going[0]) and now.step < steps
            action = int(now.action[0]) if acts else None
            total = float(now.total[0])
            yield Moment(envs.picture(), now.step, total, action, now.Q[0], now.pi[0], episode + 1)
            if action is None:
                break


def draw_actions(
    pi: Float[np.ndarray, "*batch A"], uniform: Float[np.ndarray, "*batch"] | float
) -> Int[np.ndarray, "*batch"]:
    """The inverse distribution function at numbers of [0, 1): never an action of weight 0."""
    edges = np.cumsum(pi, -1, dtype=np.float64)
    return np.asarray(np.sum(np.expand_dims(uniform, -1) * edges[..., -1:] >= edges, -1))
