"""How experience is gathered and learned from: one protocol, one file per learner.

A run has *cells*: every seed with every combination of numbers. The leading axis of every array
that a learner takes or returns is its cells.

Below the protocol is what the learners share: schedules and metrics.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from tsallax.agents import Agent, AgentState
from tsallax.agents.actor_critic import ActorAgent
from tsallax.agents.actor_update import Weights
from tsallax.agents.discrete_actor import DiscreteActor
from tsallax.networks.dense import Params
from tsallax.policies.closed import kl_divergence, shannon_entropy
from tsallax.storage.tensors import Spec
from tsallax.types import HParams, Masked, Seen

AnyAgent: TypeAlias = Agent | ActorAgent | DiscreteActor
Arrays = dict[str, np.ndarray]
Notes = dict[str, Any]  # the part of a state that is not arrays, as JSON


@runtime_checkable
class Ended(Protocol):
    """The episodes that ended in the current period."""

    def means(self, cells: int) -> dict[str, Shaped[np.ndarray, "cells"]]: ...


@runtime_checkable
class Tick(Protocol):
    """Called occasionally within a period with the step and, if known, the episodes that ended."""

    def __call__(self, step: int, episodes: Ended | None = None, /) -> None: ...


class Metrics(NamedTuple):
    """One row per period."""

    step: Int[Array, ""]
    episodes: Int[Array, ""]
    episode_return: Float[Array, ""]  # mean over the episodes that ended, NaN if none did
    episode_length: Float[Array, ""]
    loss: Float[Array, ""]  # mean over the updates
    max_q: Float[Array, ""]  # this and the next: means over one batch, before the target is copied
    action_gap: Float[Array, ""]
    entropy: Float[Array, ""]  # Shannon's, in nats
    support: Float[Array, ""]
    kl: Float[Array, ""]  # from the new target's policy to the previous one's
    epsilon: Float[Array, ""]
    diverged: Int[Array, ""]  # the first step with a loss or reward that is not finite, or -1


class ActorMetrics(NamedTuple):
    """One row per period of an actor-critic: the columns of `Metrics`, and three more.

    A comment gives the meaning for continuous actions | for discrete actions.
    """

    step: Int[Array, ""]
    episodes: Int[Array, ""]
    episode_return: Float[Array, ""]
    episode_length: Float[Array, ""]
    loss: Float[Array, ""]  # of the critics
    max_q: Float[Array, ""]  # at the centre of the policy | as for `Metrics`
    action_gap: Float[Array, ""]  # from max_q to uniformly random actions | as for `Metrics`
    entropy: Float[Array, ""]
    support: Float[Array, ""]  # as a share of all actions | as for `Metrics`
    kl: Float[Array, ""]  # NaN: there is no copy of the policy | from the exact policy of Q
    epsilon: Float[Array, ""]
    diverged: Int[Array, ""]
    critic_gap: Float[Array, ""]  # mean distance between the two critics
    width: Float[Array, ""]  # standard deviation of actions in [-1, 1] | exp of the entropy
    temperature: Float[Array, ""]  # alpha in effect


def metrics_of(agent: AnyAgent) -> type[Metrics] | type[ActorMetrics]:
    return Metrics if isinstance(agent, Agent) else ActorMetrics


class Period(NamedTuple):
    """The results of one period of training."""

    step: int
    state: Any  # its buffers are donated to the next period
    params: Params
    metrics: Metrics | ActorMetrics
    failures: dict[int, str]  # cells whose environment failed, and the error


@runtime_checkable
class Learner(Protocol):
    """Trains all cells of a run, from one state to the next."""

    def start(self, params: Params | None = None) -> Any:
        """The initial state; with `params`, if given: one per cell, or one cell's for all."""
        ...

    def train(self, state: Any, tick: Tick) -> Iterator[Period]:
        """Train from a state, whose buffers are donated, to the end: one item per period."""
        ...

    def evaluate(
        self, params: Params, episodes: int, greedy: bool, seed: int = 0
    ) -> Float[np.ndarray, "cells episodes"]:
        """Returns of whole episodes, with the same initial states for every cell."""
        ...

    def params(self) -> Params:
        """The shapes of the parameters of all cells."""
        ...

    def save(self, state: Any) -> tuple[Arrays, Notes]:
        """A state as named arrays, and its other parts as notes."""
        ...

    def layout(self, notes: Mapping[str, Any]) -> dict[str, Spec]:
        """The arrays of a state saved with these notes; without notes, the largest possible."""
        ...

    def restore(self, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> Any:
        """The state from what `save` returned."""
        ...


def with_weights(state: AgentState, params: Params | None) -> AgentState:
    """Initial states with other weights, also in the target network; one cell's serve all."""
    if params is None:
        return state
    params = jax.tree.map(lambda x, own: jnp.broadcast_to(x, own.shape), params, state.params)
    copied = params.critics if isinstance(params, Weights) else params
    return state._replace(params=params, target_params=copied)


class Schedule(NamedTuple):
    """When a replay learner acts, updates and copies its target network, in environment steps.

    It also holds how transitions are sampled.
    """

    steps: int  # of the whole run
    batch: int  # transitions per update
    train_period: int  # C, steps between updates
    target_period: int  # I, steps between copies of the target network
    warmup: int = 0  # steps before the first update
    updates: int = 1  # per train period
    clip_rewards: bool = False  # to [-1, 1], for the learner
    n_step: int = 1  # consecutive transitions per target
    prioritised: bool = False  # sampled by their last errors, not uniformly

    @property
    def blocks(self) -> int:
        """The number of train periods per target period."""
        return self.target_period // self.train_period


class PeriodShape(NamedTuple):
    """A target period, in blocks of C steps."""

    idle: int  # blocks without updates, which come first
    updates: int
    copy: bool  # whether the target network is copied at the end


def periods(schedule: Schedule, done: int = 0) -> Iterator[PeriodShape]:
    """The target periods after step `done`; a period that was cut short is completed."""
    for start, end in spans(done, schedule.steps, schedule.target_period):
        length = end - start
        idle = min(max(schedule.warmup - start, 0), length) // schedule.train_period
        updates = length // schedule.train_period - idle
        yield PeriodShape(idle, updates, end % schedule.target_period == 0)


def spans(start: int, end: int, length: int) -> Iterator[tuple[int, int]]:
    """Split `start` to `end` into parts that end at the multiples of `length`."""
    while start < end:
        following = min(start - start % length + length, end)
        yield start, following
        start = following


class Episodes(NamedTuple):
    """Return and length of the running episode, and sums over the episodes that ended this period.

    They are those of one environment or of several.
    """

    current: Float[Array, "*envs"]
    length: Int[Array, "*envs"]
    ended: Int[Array, "*envs"]
    return_sum: Float[Array, "*envs"]
    length_sum: Int[Array, "*envs"]

    @classmethod
    def none(cls) -> "Episodes":
        zero, nothing = jnp.zeros(()), jnp.zeros((), jnp.int32)
        return cls(zero, nothing, nothing, zero, nothing)

    def add(self, reward: Float[Array, "*envs"], over: Bool[Array, "*envs"]) -> "Episodes":
        """Add one step; `over` tells whether it ended the episode."""
        total, length = self.current + reward, self.length + 1
        return Episodes(
            jnp.where(over, 0, total),
            jnp.where(over, 0, length),
            self.ended + over,
            self.return_sum + jnp.where(over, total, 0),
            self.length_sum + jnp.where(over, length, 0),
        )

    def means(self) -> dict[str, Array]:
        ended = self.ended
        return {
            "episodes": ended,
            "episode_return": jnp.where(ended > 0, self.return_sum / ended, jnp.nan),
            "episode_length": jnp.where(ended > 0, self.length_sum / ended, jnp.nan),
        }

    def clear(self) -> "Episodes":
        """Reset the sums, but not the running episode."""
        sums = (self.ended, self.return_sum, self.length_sum)
        return Episodes(self.current, self.length, *map(jnp.zeros_like, sums))


def epsilon_at(step: Int[Array, ""], hp: HParams) -> Float[Array, ""]:
    """1 for the first `random_steps`, otherwise linear from `epsilon` to `epsilon_end`."""
    share = jnp.clip(step / hp.epsilon_steps, 0, 1)
    decayed = hp.epsilon + share * (hp.epsilon_end - hp.epsilon)
    return jnp.where(step < hp.random_steps, 1.0, decayed)


def first_bad(
    found: Int[Array, ""], number: Float[Array, ""], step: Int[Array, ""]
) -> Int[Array, ""]:
    """`step` if `number` is the first that is not finite, else `found`."""
    return jnp.where((found < 0) & ~jnp.isfinite(number), step, found)


def policy_metrics(
    agent: AnyAgent, state: AgentState, seen: Seen, hp: HParams
) -> dict[str, Float[Array, ""]]:
    """Metrics of the policy on a batch of observations, before the target is copied."""
    if not isinstance(agent, Agent):
        return agent.metrics(state, seen, hp)
    look = jax.vmap(agent.policy, (None, 0, None))
    Q, pi = look(state.params, seen, hp)
    _, previous = look(state.target_params, seen, hp)
    top = jax.lax.top_k(Q, min(2, Q.shape[-1]))[0]  # a single action has no gap
    if isinstance(seen, Masked):
        top = jnp.where(jnp.isneginf(top), top[:, :1], top)
    return {
        "max_q": jnp.mean(top[:, 0]),
        "action_gap": jnp.mean(top[:, 0] - top[:, -1]),
        "entropy": jnp.mean(shannon_entropy(pi)),
        "support": jnp.mean(jnp.sum(pi > 0, -1, dtype=jnp.float32)),
        "kl": jnp.mean(kl_divergence(pi, previous + hp.delta)),  # finite for sparse policies
    }
