"""Many environments at once, and no replay: the network learns at once from what was just played.

The scaffold is that of PQN (Gallici et al. 2024): N environments play T steps with the current
network, then a few epochs of minibatches follow on the lambda-returns of that rollout. Values and
bonuses are those of the network that played: there is no frozen target, except, if asked for, for
the bonus. docs/parallel.md says how this differs from Algorithm 1.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from tsallax import policies
from tsallax.agents import Agent, AgentState
from tsallax.learners import Episodes, Metrics, epsilon_at, first_bad, policy_metrics
from tsallax.learners.device import Largest, Loop
from tsallax.operators.returns import lambda_returns
from tsallax.operators.targets import action_values
from tsallax.types import Bootstrap, Environment, HParams


class Rollouts(NamedTuple):
    """The shape of the experience between two rounds of learning: all static."""

    steps: int  # environment steps of the whole run
    envs: int  # N, side by side
    length: int  # T, steps of each in a rollout
    epochs: int
    minibatches: int
    period: int  # environment steps between metrics, and between copies of the frozen network
    clip_rewards: bool = False
    frozen_bonus: bool = False  # the bonus by the frozen copy instead of the network that played

    @property
    def frames(self) -> int:
        """Environment steps of one rollout."""
        return self.envs * self.length


class State(NamedTuple):
    """Everything that a run is between two periods: what a checkpoint holds."""

    step: Int[Array, ""]
    agent: AgentState
    env: Any  # of every environment, as all that follows
    observation: Shaped[Array, "envs ..."]
    episodes: Episodes
    truncations: Int[Array, ""]
    diverged: Int[Array, ""]  # the first step with a loss or reward that is not finite, or -1
    key: PRNGKeyArray


class Step(NamedTuple):
    """What one step of all environments gave."""

    observation: Shaped[Array, "envs ..."]
    Z: Float[Array, "envs A *N"]  # of the network that played
    action: Int[Array, "envs"]
    reward: Float[Array, "envs"]
    terminated: Bool[Array, "envs"]
    truncated: Bool[Array, "envs"]


class Finals(NamedTuple):
    """The last observations of truncated episodes, which are bootstrapped from."""

    observation: Shaped[Array, "envs slots ..."]
    step: Int[Array, "envs slots"]  # of the rollout; T where there is none
    used: Int[Array, "envs"]  # slots


def plan(rollouts: Rollouts, done: int) -> Iterator[int]:
    """How many rollouts each period after step `done` has."""
    for start in range(done, rollouts.steps, rollouts.period):
        yield min(rollouts.period, rollouts.steps - start) // rollouts.frames


def make_loop(env: Environment, agent: Agent, shape: Rollouts) -> Loop:
    """The loop of one cell."""
    slots = 0 if env.time_limit is None else -(-shape.length // env.time_limit)
    every = jnp.arange(shape.envs)

    def init(key: PRNGKeyArray) -> State:
        k_agent, k_reset, k_run = jax.random.split(key, 3)
        state = jax.vmap(env.reset)(jax.random.split(k_reset, shape.envs))
        none = jnp.zeros((), jnp.int32)
        return State(
            none,
            agent.init(k_agent),
            state,
            jax.vmap(env.observe)(state),
            jax.tree.map(lambda x: jnp.zeros(shape.envs, x.dtype), Episodes.none()),
            none,
            none - 1,
            k_run,
        )

    def no_finals(observation: Shaped[Array, "envs ..."]) -> Finals:
        size = (shape.envs, slots)
        blank = jnp.zeros((*size, *observation.shape[1:]), observation.dtype)
        return Finals(blank, jnp.full(size, shape.length), jnp.zeros(shape.envs, jnp.int32))

    def play(
        run: State, finals: Finals, hp: HParams, t: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[State, Finals, Step]:
        """One step of every environment."""
        k_act, k_step, k_reset = jax.random.split(key, 3)
        Z = agent.atoms(run.agent.params, run.observation)
        pi = jax.vmap(agent.behaviour, (0, None))(jax.vmap(action_values)(Z), hp)
        epsilon = epsilon_at(run.step, hp)
        action = policies.sample(k_act, policies.epsilon_greedy(pi, epsilon))
        keys = jax.random.split(k_step, shape.envs)
        state, outcome = jax.vmap(env.step)(run.env, action, keys)
        done = outcome.terminated | outcome.truncated
        truncated = outcome.truncated & ~outcome.terminated
        if slots:
            at = jnp.where(truncated, finals.used, slots)  # beyond the last one is dropped
            finals = Finals(
                finals.observation.at[every, at].set(jax.vmap(env.observe)(state), mode="drop"),
                finals.step.at[every, at].set(t, mode="drop"),
                finals.used + truncated,
            )
        fresh = jax.vmap(env.reset)(jax.random.split(k_reset, shape.envs))

        def restart(new, old):
            return jnp.where(done.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

        state = jax.tree.map(restart, fresh, state)
        step = run.step + shape.envs
        seen = Step(run.observation, Z, action, outcome.reward, outcome.terminated, truncated)
        run = run._replace(
            step=step,
            env=state,
            observation=jax.vmap(env.observe)(state),
            episodes=run.episodes.add(outcome.reward, done),
            truncations=run.truncations + jnp.sum(truncated, dtype=jnp.int32),
            diverged=first_bad(run.diverged, jnp.sum(outcome.reward), step),
        )
        return run, finals, seen

    def next_atoms(run: State, finals: Finals, Z: Float[Array, "T envs A *N"]):
        """The atoms at each step's true next state, by the network that played."""
        ends = finals.observation.reshape(-1, *run.observation.shape[1:])
        after = agent.atoms(run.agent.params, jnp.concatenate([run.observation, ends]))
        following = jnp.concatenate([Z[1:], after[None, : shape.envs]])
        if not slots:
            return following
        own = after[shape.envs :].reshape(shape.envs, slots, *after.shape[1:])
        return following.at[finals.step, every[:, None]].set(own, mode="drop")

    def returns(
        run: State, finals: Finals, seen: Step, hp: HParams, key: PRNGKeyArray
    ) -> Float[Array, "T envs *N"]:
        """The lambda-returns of a rollout."""
        Z_next = next_atoms(run, finals, seen.Z)
        reward = jnp.clip(seen.reward, -1, 1) if shape.clip_rewards else seen.reward
        reward = hp.reward_scale * reward
        discount = hp.gamma * (1 - seen.terminated.astype(jnp.float32))
        Z = seen.Z
        if shape.frozen_bonus:
            Z = jax.vmap(agent.atoms, (None, 0))(run.agent.target_params, seen.observation)
        keys = jnp.broadcast_to(key, reward.shape)  # SAL draws once per rollout
        Q = jax.vmap(jax.vmap(action_values))(Z)
        x = Bootstrap(Q, seen.action, reward, discount, Z_next, keys)
        both = jax.vmap(jax.vmap(agent.bonus, (0, None)), (0, None))
        value = jax.vmap(jax.vmap(agent.value, (0, None)), (0, None))(Z_next, hp)
        last = jnp.arange(shape.length)[:, None] == shape.length - 1
        back = jax.vmap(lambda_returns, (1, 1, 1, 1, 1, None), 1)
        return back(reward, both(x, hp), discount, value, seen.truncated | last, hp.lambda_)

    def learn(
        run: State, seen: Step, y: Float[Array, "T envs *N"], hp: HParams, key: PRNGKeyArray
    ) -> tuple[State, Float[Array, ""]]:
        """A few epochs of minibatches; their mean loss."""
        share = run.step / hp.total_steps
        rate = hp.learning_rate + share * (hp.learning_rate_end - hp.learning_rate)
        hp = hp._replace(learning_rate=rate)
        rows = jax.tree.map(
            lambda x: x.reshape(shape.frames, *x.shape[2:]), (seen.observation, seen.action, y)
        )
        orders = jax.vmap(lambda k: jax.random.permutation(k, shape.frames))(
            jax.random.split(key, shape.epochs)
        )

        def fit(state, chosen):
            return agent.fit(state, *jax.tree.map(lambda x: x[chosen], rows), hp)

        batches = orders.reshape(shape.epochs * shape.minibatches, -1)
        state, losses = jax.lax.scan(fit, run.agent, batches)
        loss = jnp.mean(losses)
        return run._replace(agent=state, diverged=first_bad(run.diverged, loss, run.step)), loss

    def rollout(run: State, hp: HParams, key: PRNGKeyArray) -> tuple[State, Float[Array, ""]]:
        """T steps of every environment, and what is learned from them."""
        k_play, k_draw, k_learn = jax.random.split(key, 3)

        def step(carry, t):
            run, finals, seen = play(carry[0], carry[1], hp, t, jax.random.fold_in(k_play, t))
            return (run, finals), seen

        first = (run, no_finals(run.observation))
        (run, finals), seen = jax.lax.scan(step, first, jnp.arange(shape.length))
        y = returns(run, finals, seen, hp, k_draw)
        return learn(run, seen, y, hp, k_learn)

    def period(
        run: State, hp: HParams, numbers: int | Int[Array, ""], largest: Largest = lambda n: n
    ) -> tuple[State, Metrics]:
        """So many rollouts, and the metrics of them."""
        del largest
        k_rollouts, k_next = jax.random.split(run.key)

        def one(i, carry):
            run, total = carry
            run, loss = rollout(run, hp, jax.random.fold_in(k_rollouts, i))
            return run, total + loss

        run, total = jax.lax.fori_loop(0, numbers, one, (run, jnp.zeros(())))
        every_env = Episodes(*(jnp.sum(x) for x in run.episodes))
        metrics = Metrics(
            step=run.step,
            loss=total / numbers,
            epsilon=epsilon_at(run.step, hp),
            diverged=run.diverged,
            **every_env.means(),
            **policy_metrics(agent, run.agent, run.observation, hp),
        )
        state = agent.copy_target(run.agent)
        return run._replace(agent=state, episodes=run.episodes.clear(), key=k_next), metrics

    return Loop(init, period)
