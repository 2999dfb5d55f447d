"""Algorithm 1 as one compiled program over one seed; `vmap` makes it many.

Nested loops instead of branches: target period > train period > environment steps. A branch around
the update would copy the carry, replay included (docs/jax-versions.md).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from tsallax.agents import Agent, Learner
from tsallax.envs.base import Environment
from tsallax.policies import kl_divergence, shannon_entropy
from tsallax.replay import Ring, know
from tsallax.types import HParams


class Schedule(NamedTuple):
    """The shape of a block: all static."""

    batch: int
    train_period: int  # C, environment steps an update
    clip_rewards: bool = False
    reuse: bool = False  # the target network's values, within a target period
    updates: int = 1  # per train period


class Episode(NamedTuple):
    """The running episode's return and length, and the sums over those that ended this cycle."""

    current: Float[Array, ""]
    length: Int[Array, ""]
    ended: Int[Array, ""]
    return_sum: Float[Array, ""]
    length_sum: Int[Array, ""]


class RunState(NamedTuple):
    """Everything that a run is: what a checkpoint would hold."""

    step: Int[Array, ""]
    learner: Learner
    replay: Any
    env: Any
    observation: Shaped[Array, "..."]
    episode: Episode
    diverged: Int[Array, ""]  # the first step with a loss or reward that is not finite, or -1
    key: PRNGKeyArray


class Metrics(NamedTuple):
    """One row a cycle, that is a target period."""

    step: Int[Array, ""]
    episodes: Int[Array, ""]
    episode_return: Float[Array, ""]  # mean over the episodes that ended, NaN if none did
    episode_length: Float[Array, ""]
    loss: Float[Array, ""]  # mean over the updates
    max_q: Float[Array, ""]  # from here on: means over one batch, before the target is copied
    action_gap: Float[Array, ""]
    entropy: Float[Array, ""]  # Shannon's, in nats
    support: Float[Array, ""]
    kl: Float[Array, ""]  # of the new target's policy to the last one's
    epsilon: Float[Array, ""]
    diverged: Int[Array, ""]  # the first step with a loss or reward that is not finite, or -1


Count: TypeAlias = int | Int[Array, ""]


class Draws(NamedTuple):
    """The randomness of a block: drawn for the whole period, so that what it will need is known."""

    steps: PRNGKeyArray
    slots: Int[Array, "updates batch"]
    update: PRNGKeyArray


class Period(NamedTuple):
    """A target period. But for `most` these are numbers of the program: one serves all periods."""

    idle: Count  # blocks of C steps without an update, before those with one
    updates: Count
    copy: bool | Bool[Array, ""]  # whether the target network is copied at the end
    steps: Count  # C
    most: int  # blocks there can be


Most: TypeAlias = Callable[[Int[Array, ""]], Int[Array, ""]]


class Loop(NamedTuple):
    init: Callable[[PRNGKeyArray], RunState]
    cycle: Callable[..., tuple[RunState, Metrics]]


def epsilon_at(step: Int[Array, ""], hp: HParams) -> Float[Array, ""]:
    """1 for the first `random_steps`; else linear from `epsilon` to `epsilon_end`."""
    share = jnp.clip(step / hp.epsilon_steps, 0, 1)
    decayed = hp.epsilon + share * (hp.epsilon_end - hp.epsilon)
    return jnp.where(step < hp.random_steps, 1.0, decayed)


def first_bad(
    found: Int[Array, ""], number: Float[Array, ""], step: Int[Array, ""]
) -> Int[Array, ""]:
    """`step` if this is the first `number` that is not finite."""
    return jnp.where((found < 0) & ~jnp.isfinite(number), step, found)


def look_at_policy(
    agent: Agent, learner: Learner, seen: Shaped[Array, "batch ..."], hp: HParams
) -> dict[str, Float[Array, ""]]:
    """What the policy is like on a batch of observations, before the target is copied."""
    look = jax.vmap(agent.policy, (None, 0, None))
    Q, pi = look(learner.params, seen, hp)
    _, previous = look(learner.target_params, seen, hp)
    top = jax.lax.top_k(Q, min(2, Q.shape[-1]))[0]  # a single action has no gap
    return {
        "max_q": jnp.mean(top[:, 0]),
        "action_gap": jnp.mean(top[:, 0] - top[:, -1]),
        "entropy": jnp.mean(shannon_entropy(pi)),
        "support": jnp.mean(jnp.sum(pi > 0, -1, dtype=jnp.float32)),
        "kl": jnp.mean(kl_divergence(pi, previous + hp.delta)),  # finite for sparse policies
    }


def make_loop(env: Environment, agent: Agent, replay: Ring, schedule: Schedule) -> Loop:
    def init(key: PRNGKeyArray) -> RunState:
        k_learner, k_reset, k_run = jax.random.split(key, 3)
        state = env.reset(k_reset)
        observation = env.observe(state)
        zero = jnp.zeros(())
        none = jnp.zeros((), jnp.int32)
        return RunState(
            none,
            agent.init(k_learner),
            replay.init(observation),
            state,
            observation,
            Episode(zero, none, none, zero, none),
            none - 1,
            k_run,
        )

    def environment_step(run: RunState, hp: HParams, key: PRNGKeyArray) -> RunState:
        k_act, k_step, k_reset = jax.random.split(key, 3)
        params = run.learner.params
        epsilon = epsilon_at(run.step, hp)
        action = agent.act(params, run.observation, epsilon, hp, k_act)
        state, outcome = env.step(run.env, action, k_step)
        done = outcome.terminated | outcome.truncated
        fresh = env.reset(k_reset)
        following = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, state)
        observation = env.observe(following)
        truncated = outcome.truncated & ~outcome.terminated
        reward = outcome.reward
        stored = replay.add(
            run.replay,
            action,
            jnp.clip(reward, -1, 1) if schedule.clip_rewards else reward,
            outcome.terminated,
            truncated,
            env.observe(state),
            observation,
        )
        old = run.episode
        total, length = old.current + reward, old.length + 1
        episode = Episode(
            jnp.where(done, 0, total),
            jnp.where(done, 0, length),
            old.ended + done,
            old.return_sum + jnp.where(done, total, 0),
            old.length_sum + jnp.where(done, length, 0),
        )
        return run._replace(
            step=run.step + 1,
            replay=stored,
            env=following,
            observation=observation,
            episode=episode,
            diverged=first_bad(run.diverged, reward, run.step + 1),
        )

    def steps(run: RunState, hp: HParams, key: PRNGKeyArray, number: Count) -> RunState:
        """C environment steps.

        XLA would unroll a loop of one, fuse its writes with the reads that follow and copy the
        replay to do so: a run passes the number as an argument of its program.
        """

        def step(i, run):
            return environment_step(run, hp, jax.random.fold_in(key, i))

        return jax.lax.fori_loop(0, number, step, run)

    def block(
        run: RunState, known: Array | None, draws: Draws, hp: HParams, number: Count
    ) -> tuple[RunState, Array | None, Float[Array, ""]]:
        """C environment steps and the updates that follow them, with their mean loss."""
        fresh = replay.newest(run.replay, schedule.train_period)
        run = steps(run, hp, draws.steps, number)
        if known is not None:
            seen = replay.look(run.replay, fresh, run.observation)
            known = known.at[fresh].set(agent.atoms(run.learner.target_params, seen))

        def update(learner: Learner, slots: Int[Array, "batch"], key: PRNGKeyArray):
            batch = replay.take(run.replay, slots, run.observation)
            ends = None
            if known is not None:
                ends = known[slots], known[replay.following(run.replay, slots)]
            return agent.update(learner, batch, hp, key, ends)

        def one_of_several(i, carry):
            learner, total = carry
            key = jax.random.fold_in(draws.update, i)
            learner, loss = update(learner, draws.slots[i], key)
            return learner, total + loss

        if schedule.updates == 1:
            learner, loss = update(run.learner, draws.slots[0], draws.update)
        else:
            first = (run.learner, jnp.zeros(()))
            learner, total = jax.lax.fori_loop(0, schedule.updates, one_of_several, first)
            loss = total / schedule.updates
        diverged = first_bad(run.diverged, loss, run.step)
        return run._replace(learner=learner, diverged=diverged), known, loss

    def blocks(
        run: RunState, hp: HParams, key: PRNGKeyArray, period: Period, most: Most
    ) -> tuple[RunState, Float[Array, ""]]:
        """The updates of a period and their mean loss."""
        every = jnp.arange(period.most)
        keys = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(key, i), 3))(every)
        added = run.replay.added + schedule.train_period * (1 + every)
        several = schedule.updates, schedule.batch
        draw = jax.vmap(lambda k, n: replay.draw(k, math.prod(several), n).reshape(several))
        draws = Draws(keys[:, 0], draw(keys[:, 1], added), keys[:, 2])
        known = None
        if schedule.reuse:
            apply = partial(agent.atoms, run.learner.target_params)
            needed = lambda n: jnp.where(period.updates > 0, most(n), 0)  # noqa: E731
            known = know(replay, run.replay, draws.slots.ravel(), apply, run.observation, needed)

        def one(i, carry):
            run, known, total = carry
            now = jax.tree.map(lambda x: x[i], draws)
            run, known, loss = block(run, known, now, hp, period.steps)
            return run, known, total + loss

        run, _, total = jax.lax.fori_loop(0, period.updates, one, (run, known, jnp.zeros(())))
        return run, total / period.updates

    def cycle(
        run: RunState, hp: HParams, period: Period, most: Most = lambda n: n
    ) -> tuple[RunState, Metrics]:
        """One target period. `most` is the largest of a number over cells that run side by side."""
        k_idle, k_blocks, k_probe, k_next = jax.random.split(run.key, 4)

        def wait(i, run):
            return steps(run, hp, jax.random.fold_in(k_idle, i), period.steps)

        run = jax.lax.fori_loop(0, period.idle, wait, run)
        run, loss = blocks(run, hp, k_blocks, period, most)
        ended = run.episode.ended
        seen = replay.sample(run.replay, k_probe, schedule.batch, run.observation).observation
        metrics = Metrics(
            step=run.step,
            episodes=ended,
            episode_return=jnp.where(ended > 0, run.episode.return_sum / ended, jnp.nan),
            episode_length=jnp.where(ended > 0, run.episode.length_sum / ended, jnp.nan),
            loss=loss,
            epsilon=epsilon_at(run.step, hp),
            diverged=run.diverged,
            **look_at_policy(agent, run.learner, seen, hp),
        )
        cleared = run.episode._replace(
            ended=jnp.zeros_like(ended),
            return_sum=jnp.zeros_like(run.episode.return_sum),
            length_sum=jnp.zeros_like(run.episode.length_sum),
        )
        copied = agent.copy_target(run.learner)
        learner = jax.tree.map(
            lambda new, old: jnp.where(period.copy, new, old), copied, run.learner
        )
        return run._replace(learner=learner, episode=cleared, key=k_next), metrics

    return Loop(init, cycle)
