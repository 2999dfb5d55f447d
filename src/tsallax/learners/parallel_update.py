"""The updates on one rollout of many environments: epochs of minibatches on lambda-returns.

The structure is that of PQN (Gallici et al. 2024): N environments play T steps with the current
network, then a few epochs of minibatches follow on the lambda-returns of that rollout. Values and
bonuses are those of the network that played: there is no target network, except optionally for
the bonus. docs/parallel.md explains how this differs from Algorithm 1.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from tsallax import policies
from tsallax.agents import Agent, AgentState
from tsallax.learners import epsilon_at, spans
from tsallax.operators.returns import lambda_returns
from tsallax.operators.targets import action_values
from tsallax.types import Bootstrap, HParams, Seen, allowed_at


class Rollouts(NamedTuple):
    """The shape of the experience between two rounds of updates; all fields are static."""

    steps: int  # environment steps of the whole run
    envs: int  # N, parallel environments
    length: int  # T, steps of each per rollout
    epochs: int
    minibatches: int
    period: int  # environment steps between metrics, and between copies of the frozen network
    clip_rewards: bool = False
    frozen_bonus: bool = False  # the bonus uses the frozen copy, not the network that played

    @property
    def frames(self) -> int:
        """Environment steps per rollout."""
        return self.envs * self.length


class Played(NamedTuple):
    """One step of all environments; for a rollout there is a leading axis of T steps."""

    observation: Seen
    Z: Float[Array, "..."]  # of the network that played
    action: Int[Array, "*T envs"]
    reward: Float[Array, "*T envs"]
    terminated: Bool[Array, "*T envs"]
    truncated: Bool[Array, "*T envs"]  # and not terminated


def plan(rollouts: Rollouts, done: int) -> Iterator[int]:
    """The number of rollouts in each period after step `done`."""
    for start, end in spans(done, rollouts.steps, rollouts.period):
        yield (end - start) // rollouts.frames


def act(
    agent: Agent,
    state: AgentState,
    observation: Seen,
    step: Int[Array, ""],
    hp: HParams,
    key: PRNGKeyArray,
) -> tuple[Int[Array, "envs"], Float[Array, "envs A *N"]]:
    """An action for every environment, and the network's output."""
    Z = agent.atoms(state.params, observation)
    pi = jax.vmap(agent.behaviour, (0, None))(jax.vmap(action_values)(Z), hp)
    mixed = policies.epsilon_greedy(pi, epsilon_at(step, hp), allowed_at(observation))
    return policies.sample(key, mixed), Z


def returns(
    agent: Agent,
    shape: Rollouts,
    state: AgentState,
    seen: Played,
    Z_next: Float[Array, "T envs A *N"],
    hp: HParams,
    key: PRNGKeyArray,
) -> Float[Array, "T envs *N"]:
    """The lambda-returns of a rollout; `Z_next` is at each step's true next state."""
    reward = jnp.clip(seen.reward, -1, 1) if shape.clip_rewards else seen.reward
    reward = hp.reward_scale * reward
    discount = hp.gamma * (1 - seen.terminated.astype(jnp.float32))
    Z = seen.Z
    if shape.frozen_bonus:
        Z = jax.vmap(agent.atoms, (None, 0))(state.target_params, seen.observation)
    keys = jnp.broadcast_to(key, reward.shape)  # SAL draws once per rollout
    x = Bootstrap(jax.vmap(jax.vmap(action_values))(Z), seen.action, reward, discount, Z_next, keys)
    bonus = jax.vmap(jax.vmap(agent.bonus, (0, None)), (0, None))(x, hp)
    value = jax.vmap(jax.vmap(agent.value, (0, None)), (0, None))(Z_next, hp)
    last = jnp.arange(shape.length)[:, None] == shape.length - 1
    back = jax.vmap(lambda_returns, (1, 1, 1, 1, 1, None), 1)
    return back(reward, bonus, discount, value, seen.truncated | last, hp.lambda_)


def step_size_at(step: Int[Array, ""], hp: HParams) -> Float[Array, ""]:
    """Linear from `learning_rate` to `learning_rate_end`, constant afterwards."""
    share = jnp.minimum(step / hp.total_steps, 1)
    return hp.learning_rate + share * (hp.learning_rate_end - hp.learning_rate)


def learn(
    agent: Agent,
    shape: Rollouts,
    state: AgentState,
    seen: Played,
    y: Float[Array, "T envs *N"],
    step: Int[Array, ""],
    hp: HParams,
    key: PRNGKeyArray,
) -> tuple[AgentState, Float[Array, ""]]:
    """A few epochs of minibatches towards the returns `y`; also returns their mean loss."""
    hp = hp._replace(learning_rate=step_size_at(step, hp))
    rows = jax.tree.map(
        lambda x: x.reshape(shape.frames, *x.shape[2:]), (seen.observation, seen.action, y)
    )
    orders = jax.vmap(lambda k: jax.random.permutation(k, shape.frames))(
        jax.random.split(key, shape.epochs)
    )

    def fit(state, chosen):
        return agent.fit(state, *jax.tree.map(lambda x: x[chosen], rows), hp)

    batches = orders.reshape(shape.epochs * shape.minibatches, -1)
    state, losses = jax.lax.scan(fit, state, batches)
    return state, jnp.mean(losses)
