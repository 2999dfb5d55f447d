"""Whole episodes of a trained agent, to evaluate it or to watch it step by step.

An episode depends on its seed alone, so that `evaluate` counts the episodes that `play` shows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt8

from tsallax.agents.actor_critic import ActorAgent
from tsallax.envs.actions import nobody
from tsallax.envs.host import HostEnvs
from tsallax.learners import AnyAgent
from tsallax.learners.host import FrameStack, chosen_rows, in_cells
from tsallax.networks import Params
from tsallax.policies import sample
from tsallax.types import Box, Environment, HParams, Seen

CAP = 10_000  # steps, for environments without a time limit; a longer episode is cut there
SEATS = 16  # host environments per evaluation, or one per cell if there are more cells

# Maps observations, perhaps `Masked`, to action values and the policy: (* ...) to two (*, A).
HostPolicy = Callable[[Any], tuple[Any, Any]]
# Maps observations and numbers in [0, 1) to actions: (observations, uniform, greedy).
HostActing = Callable[[Any, Any, bool], Any]


class Moment(NamedTuple):
    """A state, the agent's values and policy there, and the action that it takes."""

    picture: UInt8[np.ndarray, "height width 3"]
    step: int  # of the episode, 0 at its start
    total: float  # the return so far
    action: int | Float[np.ndarray, "D"] | None  # None when the episode is over
    Q: Float[np.ndarray, "A"]  # -inf if not allowed; continuous actions: the centre's value only
    pi: Float[np.ndarray, "A *points"]  # or a density per dimension, at points in [-1, 1]
    episode: int = 1


# Environments that are JAX functions --------------------------------------------------------------


class Episode(NamedTuple):
    """A running episode."""

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
    env: Environment, agent: AnyAgent, greedy: bool, params: Params, hp: HParams, now: Episode
) -> tuple[Episode, Shaped[Array, "..."]]:
    """One step by pi, or greedily by the largest value; also returns the action taken."""
    k_act, k_step = jax.random.split(jax.random.fold_in(now.key, now.step))
    action = _choose(agent, params, env.observe(now.env), hp, k_act, greedy)
    state, outcome = env.step(now.env, action, k_step)
    over = outcome.terminated | outcome.truncated
    return Episode(state, now.total + outcome.reward, over, now.step + 1, now.key), action


def _choose(
    agent: AnyAgent,
    params: Params,
    observation: Seen,
    hp: HParams,
    key: PRNGKeyArray,
    greedy: bool,
) -> Shaped[Array, "..."]:
    if isinstance(agent, ActorAgent):
        uniform = jax.random.uniform(key, (2, agent.dimensions))
        return agent.choose(params, observation, hp, uniform, greedy)
    Q, pi = agent.policy(params, observation, hp)
    return jnp.argmax(Q) if greedy else sample(key, pi)


# As fast at 0.4 of the compile time; devices other than CPUs ignore it.
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
    agent: AnyAgent,
    hp: HParams,
    params: Params,
    episodes: int,
    greedy: bool,
    seed: int | Int[Array, ""] = 0,
) -> Float[Array, "cells {episodes}"]:
    """Returns of the same `episodes` seeds for every cell (the leading axis of `params`, `hp`)."""
    most = max(env.time_limit or CAP, CAP)  # a time limit is the least that truncates, not the most

    def episode_return(params, hp, key):
        def running(now: Episode):
            return ~now.over & (now.step < most)

        def step(now: Episode):
            return advance(env, agent, greedy, params, hp, now)[0]

        return jax.lax.while_loop(running, step, begin(env, key)).total

    keys = jax.random.split(jax.random.key(seed), episodes)
    return jax.vmap(jax.vmap(episode_return, (None, None, 0)), (0, 0, None))(params, hp, keys)


def moments(
    env: Environment,
    agent: AnyAgent,
    params: Params,
    hp: HParams,
    *,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    steps: int = 1000,
) -> Iterator[Moment]:
    """The episodes that `evaluate` plays with this seed, each cut after `steps`.

    An episode of n steps has n + 1 moments, the last one without an action. `params` and `hp` are
    those of one cell.
    """
    for number, key in enumerate(jax.random.split(jax.random.key(seed), episodes), start=1):
        now = _begin(env, key)
        for t in range(steps + 1):
            following, action, Q, pi, picture = _show(env, agent, greedy, params, hp, now)
            taken = None if bool(now.over) or t == steps else _plain(np.asarray(action))
            Q, pi, picture = map(np.asarray, (Q, pi, picture))
            yield Moment(picture, t, float(now.total), taken, Q, pi, number)
            if taken is None:
                break
            now = following


def _plain(action: Shaped[np.ndarray, "..."]) -> int | Float[np.ndarray, "D"]:
    return action if action.ndim else int(action)


@partial(jax.jit, static_argnames="env")
def _begin(env: Environment, key: PRNGKeyArray) -> Episode:
    return begin(env, key)


@partial(jax.jit, static_argnames=("env", "agent", "greedy"))
def _show(env, agent, greedy, params, hp, now):
    Q, pi = agent.policy(params, env.observe(now.env), hp)
    return *advance(env, agent, greedy, params, hp, now), Q, pi, env.render(now.env)


# Environments on the host -------------------------------------------------------------------------


def side_by_side(cells: int, episodes: int) -> int:
    """The number of episodes of each cell that are played at once."""
    return max(1, min(episodes, SEATS // cells))


def evaluate_host(
    envs: HostEnvs,
    act: HostActing,
    cells: int,
    stack: int,
    episodes: int,
    greedy: bool,
    seed: int,
) -> Float[np.ndarray, "cells episodes"]:
    """Returns of the same `episodes` seeds for every cell; the cells share `envs` equally.

    One call of `act` serves all environments, and an environment whose episode is over takes the
    next one. Each episode has its own start and draws: the number played at once changes a return
    only where the rounding of a larger product decides an action. Returns are NaN from the episode
    on in which a cell's environment failed.
    """
    cell = np.repeat(np.arange(cells), envs.count // cells)
    waiting = [iter(range(episodes)) for _ in range(cells)]
    number = np.array([next(waiting[c]) for c in cell])
    random = [np.random.default_rng([seed, n]) for n in number]
    frames = FrameStack(envs.reset((seed + number).tolist()), stack)
    total, length = np.zeros(envs.count), np.zeros(envs.count, int)
    going = np.ones(envs.count, bool)
    found, failed = np.full((cells, episodes), np.nan), np.full(cells, episodes)
    while going.any():
        seen = in_cells(frames.current, cells)
        draws = np.array([uniform(own, envs.action_box) for own in random])
        taken = np.asarray(act(seen, draws.reshape(cells, -1, *draws.shape[1:]), greedy))
        taken = taken.reshape(envs.count, *taken.shape[2:])
        idle = ~going.reshape(-1, *(1,) * (taken.ndim - 1))
        moves = envs.step(np.where(idle, nobody(envs.action_box), taken))
        total, length = total + np.where(going, moves.reward, 0), length + going
        broken = np.isin(np.arange(envs.count), list(envs.failures))
        over = going & (moves.over | broken | (length == (envs.time_limit or CAP)))
        starts: list[int | None] = [None] * envs.count
        for i in np.flatnonzero(over):
            c = cell[i]
            if broken[i]:
                failed[c], waiting[c] = min(failed[c], number[i]), iter(())
            else:
                found[c, number[i]] = total[i]
            number[i] = next(waiting[c], episodes)
            going[i] = number[i] < episodes and not broken[i]
            if going[i]:
                starts[i], total[i], length[i] = seed + int(number[i]), 0, 0
                random[i] = np.random.default_rng([seed, number[i]])
        observation = moves.observation
        if any(start is not None for start in starts):
            observation = chosen_rows(over & going, envs.reset(starts), observation)
        frames.push(observation, over)
    return np.where(np.arange(episodes) < failed[:, None], found, np.nan)


def host_moments(
    envs: HostEnvs,
    policy: HostPolicy,
    act: HostActing,
    *,
    stack: int = 0,
    episodes: int = 1,
    seed: int = 0,
    greedy: bool = False,
    steps: int = 1000,
) -> Iterator[Moment]:
    """The episodes of one environment, which must be made to render, each cut after `steps`."""
    most = min(steps, envs.time_limit or CAP)
    for episode in range(episodes):
        frames = FrameStack(envs.reset([seed + episode]), stack)
        random, total, going = np.random.default_rng([seed, episode]), 0.0, True
        for t in range(most + 1):
            if envs.failures:
                raise ValueError(f"the environment failed at step {t}: {envs.failures[0]}")
            Q, pi = map(np.asarray, policy(frames.current))
            action = np.asarray(act(frames.current, uniform(random, envs.action_box)[None], greedy))
            taken = _plain(np.asarray(action[0])) if going and t < most else None
            yield Moment(envs.picture(), t, total, taken, Q[0], pi[0], episode + 1)
            if taken is None:
                break
            moves = envs.step(action)
            total, going = total + float(moves.reward[0]), not moves.over[0]
            frames.push(moves.observation, moves.over)


def uniform(random: np.random.Generator, box: Box | None) -> Float[np.ndarray, "..."]:
    """The uniform numbers to sample one action: one if discrete, else two per dimension."""
    if box is None:
        return np.asarray(random.random())
    return random.random((2, len(box.low)), np.float32)  # float64 could be rounded to 1


def by_policy(policy: HostPolicy) -> HostActing:
    """Discrete actions, by the largest value or by pi."""

    def act(seen, uniform, greedy):
        Q, pi = map(np.asarray, policy(seen))
        return Q.argmax(-1) if greedy else draw_actions(pi, uniform)

    return act


def draw_actions(
    pi: Float[np.ndarray, "*batch A"], uniform: Float[np.ndarray, "*batch"] | float
) -> Int[np.ndarray, "*batch"]:
    """The inverse CDF at numbers in [0, 1): never an action of probability 0."""
    edges = np.cumsum(pi, -1, dtype=np.float64)
    return np.asarray(np.sum(np.expand_dims(uniform, -1) * edges[..., -1:] >= edges, -1))
