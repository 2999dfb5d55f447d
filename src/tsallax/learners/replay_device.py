"""Algorithm 1 with its replay on the device: a target period of all cells is one program.

It has nested loops instead of branches: target period > train period > environment steps. A branch
around the update would copy the carry, replay included (docs/jax-versions.md).
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from tsallax.agents import AgentState
from tsallax.learners import (
    ActorMetrics,
    AnyAgent,
    Episodes,
    Metrics,
    Schedule,
    epsilon_at,
    first_bad,
    metrics_of,
    periods,
    policy_metrics,
)
from tsallax.learners.device import Largest, Loop
from tsallax.replay.priorities import (
    LEVELS,
    draw,
    enter,
    importance_at,
    importance_weights,
    no_priorities,
    priority_of,
    renew,
)
from tsallax.replay.ring import Ring, cache_target_values
from tsallax.types import Environment, HParams, Seen, Segment, Transition

Count: TypeAlias = int | Int[Array, ""]


class State(NamedTuple):
    """The complete state of a run between two periods, as stored in a checkpoint."""

    step: Int[Array, ""]
    agent: AgentState
    replay: Any
    env: Any
    observation: Seen
    episodes: Episodes
    diverged: Int[Array, ""]  # the first step with a loss or reward that is not finite, or -1
    key: PRNGKeyArray
    priorities: Any = ()  # of the stored transitions, if the replay is prioritised

    @property
    def truncations(self) -> Int[Array, "*cells"]:
        return self.replay.truncations


class Numbers(NamedTuple):
    """A `PeriodShape` and C as arguments of the program, so that one serves all periods."""

    idle: Count
    updates: Count
    copy: bool | Bool[Array, ""]
    train_period: Count


class Draws(NamedTuple):
    """The randomness of a block, drawn ahead for the period, so that its slots are known."""

    steps: PRNGKeyArray
    picks: Int[Array, "updates batch"] | Float[Array, "updates levels batch"]  # slots, or shares
    update: PRNGKeyArray


def make_loop(
    env: Environment, agent: AnyAgent, replay: Ring, schedule: Schedule, reuse: bool = False
) -> Loop:
    """The loop of one cell.

    Args:
        env: the environment.
        agent: the agent.
        replay: the ring buffer of transitions.
        schedule: when the agent acts, updates and copies its target network.
        reuse: cache the target network's values of stored states within a target period.
    """
    value_agent: Any = agent  # only a value agent has reusable atoms and weighted updates

    def init(key: PRNGKeyArray) -> State:
        k_agent, k_reset, k_run = jax.random.split(key, 3)
        state = env.reset(k_reset)
        observation = env.observe(state)
        none = jnp.zeros((), jnp.int32)
        stored = replay.init(observation)
        initial = agent.init(k_agent)
        priorities = no_priorities(len(stored.rewards)) if schedule.prioritised else ()
        first = State(none, initial, stored, state, observation, Episodes.none(), none - 1, k_run)
        return first._replace(priorities=priorities)

    def environment_step(run: State, hp: HParams, key: PRNGKeyArray) -> State:
        k_act, k_step, k_reset = jax.random.split(key, 3)
        epsilon = epsilon_at(run.step, hp)
        action = agent.act(run.agent.params, run.observation, epsilon, hp, k_act)
        state, outcome = env.step(run.env, action, k_step)
        done = outcome.terminated | outcome.truncated
        fresh = env.reset(k_reset)
        following = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, state)
        observation = env.observe(following)
        reward = outcome.reward
        stored = replay.add(
            run.replay,
            action,
            jnp.clip(reward, -1, 1) if schedule.clip_rewards else reward,
            outcome.terminated,
            outcome.truncated & ~outcome.terminated,
            env.observe(state),
            observation,
        )
        return run._replace(
            step=run.step + 1,
            replay=stored,
            env=following,
            observation=observation,
            episodes=run.episodes.add(reward, done),
            diverged=first_bad(run.diverged, reward, run.step + 1),
        )

    def steps(run: State, hp: HParams, key: PRNGKeyArray, number: Count) -> State:
        """C environment steps.

        XLA would unroll a loop of one step, fuse its writes with the reads that follow and copy
        the replay for that: therefore the number is an argument of the program.
        """

        def step(i, run):
            return environment_step(run, hp, jax.random.fold_in(key, i))

        run = jax.lax.fori_loop(0, number, step, run)
        return entered(run) if schedule.prioritised else run

    def entered(run: State) -> State:
        """Give the newest transitions their first priority, and the next slot to write none."""
        slots = len(run.replay.rewards)
        count = min(schedule.train_period, slots - 1)
        fresh = (run.replay.added - count + jnp.arange(count)) % slots
        free = run.replay.added % slots
        return run._replace(priorities=enter(run.priorities, fresh, free))

    def batch_of(
        run: State, cache: Array | None, slots: Int[Array, "batch"]
    ) -> tuple[Transition | Segment, tuple[Array, Array] | None]:
        """A batch, and the target network's values of it if they are cached."""
        if schedule.n_step == 1:
            ends = None
            if cache is not None:
                ends = cache[slots], cache[replay.following(run.replay, slots)]
            return replay.take(run.replay, slots, run.observation), ends
        chain = replay.chain(run.replay, slots, schedule.n_step)
        ends = None if cache is None else (cache[chain.slots], cache[chain.last])
        return replay.segment(run.replay, chain, run.observation), ends

    def update(
        run: State,
        cache: Array | None,
        learned: tuple[AgentState, Any],
        picks: Array,
        hp: HParams,
        key: PRNGKeyArray,
    ) -> tuple[tuple[AgentState, Any], Float[Array, ""]]:
        """One update of the agent, and of the priorities if there are any."""
        state, priorities = learned
        if not schedule.prioritised:
            batch, ends = batch_of(run, cache, picks)
            state, loss = agent.update(state, batch, hp, key, ends)
            return (state, priorities), loss
        # Sorting forces the read here: XLA would otherwise read after the write, from a copy.
        slots, leaves = jax.lax.sort(draw(priorities.sums, picks), num_keys=1)
        weights = importance_weights(leaves, importance_at(run.step, hp))
        batch, _ = batch_of(run, None, slots)
        state, loss, errors = value_agent.weighted_update(state, batch, hp, key, weights)
        return (state, renew(priorities, slots, priority_of(errors, hp))), loss

    def block(
        run: State, cache: Array | None, draws: Draws, hp: HParams, number: Count
    ) -> tuple[State, Array | None, Float[Array, ""]]:
        """C environment steps and the updates that follow them, with their mean loss."""
        fresh = replay.newest(run.replay, schedule.train_period)
        run = steps(run, hp, draws.steps, number)
        if cache is not None:
            seen = replay.look(run.replay, fresh, run.observation)
            cache = cache.at[fresh].set(value_agent.atoms(run.agent.target_params, seen))

        def one_of_several(i, carry):
            state, total = carry
            key = jax.random.fold_in(draws.update, i)
            state, loss = update(run, cache, state, draws.picks[i], hp, key)
            return state, total + loss

        state = run.agent, run.priorities
        if schedule.updates == 1:
            state, loss = update(run, cache, state, draws.picks[0], hp, draws.update)
        else:
            first = (state, jnp.zeros(()))
            state, total = jax.lax.fori_loop(0, schedule.updates, one_of_several, first)
            loss = total / schedule.updates
        diverged = first_bad(run.diverged, loss, run.step)
        run = run._replace(agent=state[0], priorities=state[1], diverged=diverged)
        return run, cache, loss

    def pick(key: PRNGKeyArray, added: Int[Array, ""]) -> Array:
        """The draws of a block: slots or, if prioritised, shares of the sum of priorities."""
        if schedule.prioritised:
            return jax.random.uniform(key, (schedule.updates, LEVELS, schedule.batch))
        several = schedule.updates, schedule.batch
        return replay.draw(key, math.prod(several), added).reshape(several)

    def blocks(
        run: State, hp: HParams, key: PRNGKeyArray, numbers: Numbers, largest: Largest
    ) -> tuple[State, Float[Array, ""]]:
        """The updates of a period and their mean loss."""
        every = jnp.arange(schedule.blocks)
        keys = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(key, i), 3))(every)
        added = run.replay.added + schedule.train_period * (1 + every)
        draws = Draws(keys[:, 0], jax.vmap(pick)(keys[:, 1], added), keys[:, 2])
        cache = None
        if reuse:
            apply = partial(value_agent.atoms, run.agent.target_params)
            needed = lambda n: jnp.where(numbers.updates > 0, largest(n), 0)  # noqa: E731
            drawn = replay.reach(draws.picks.ravel(), schedule.n_step)
            cache = cache_target_values(replay, run.replay, drawn, apply, run.observation, needed)

        def one(i, carry):
            run, cache, total = carry
            now = jax.tree.map(lambda x: x[i], draws)
            run, cache, loss = block(run, cache, now, hp, numbers.train_period)
            return run, cache, total + loss

        run, _, total = jax.lax.fori_loop(0, numbers.updates, one, (run, cache, jnp.zeros(())))
        return run, total / numbers.updates

    def period(
        run: State, hp: HParams, numbers: Numbers, largest: Largest = lambda n: n
    ) -> tuple[State, Metrics | ActorMetrics]:
        """One target period. `largest` is the maximum over the vmapped cells."""
        k_idle, k_blocks, k_probe, k_next = jax.random.split(run.key, 4)

        def wait(i, run):
            return steps(run, hp, jax.random.fold_in(k_idle, i), numbers.train_period)

        run = jax.lax.fori_loop(0, numbers.idle, wait, run)
        run, loss = blocks(run, hp, k_blocks, numbers, largest)
        seen = replay.sample(run.replay, k_probe, schedule.batch, run.observation).observation
        metrics = metrics_of(agent)(
            step=run.step,
            loss=loss,
            epsilon=epsilon_at(run.step, hp),
            diverged=run.diverged,
            **run.episodes.means(),
            **policy_metrics(agent, run.agent, seen, hp),
        )
        copied = agent.copy_target(run.agent)
        state = jax.tree.map(lambda new, old: jnp.where(numbers.copy, new, old), copied, run.agent)
        return run._replace(agent=state, episodes=run.episodes.clear(), key=k_next), metrics

    return Loop(init, period)


def plan(schedule: Schedule, done: int) -> Iterator[Numbers]:
    """The arguments of the program for each period after step `done`."""
    for shape in periods(schedule, done):
        yield Numbers(*shape, train_period=schedule.train_period)
