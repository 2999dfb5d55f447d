"""Many JAX-native environments at once, without a replay: a period of rollouts as one program."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from tsallax.agents import Agent, AgentState
from tsallax.learners import Episodes, Metrics, epsilon_at, first_bad, policy_metrics
from tsallax.learners.device import Largest, Loop
from tsallax.learners.parallel_update import Played, Rollouts, act, learn, returns
from tsallax.types import Environment, HParams, Seen


class State(NamedTuple):
    """The complete state of a run between two periods, as stored in a checkpoint."""

    step: Int[Array, ""]
    agent: AgentState
    env: Any  # of every environment, like the fields below
    observation: Seen
    episodes: Episodes
    truncations: Int[Array, ""]
    diverged: Int[Array, ""]  # the first step with a loss or reward that is not finite, or -1
    key: PRNGKeyArray


class Finals(NamedTuple):
    """The final observations of truncated episodes, for bootstrapping."""

    observation: Seen
    step: Int[Array, "envs slots"]  # of the rollout; T in an empty slot
    used: Int[Array, "envs"]  # number of slots


def make_loop(env: Environment, agent: Agent, shape: Rollouts) -> Loop:
    """The loop of one cell."""
    slots = 0 if env.time_limit is None else -(-shape.length // env.time_limit)
    every = np.arange(shape.envs)

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

    def no_finals(observation: Seen) -> Finals:
        size = (shape.envs, slots)
        blank = jax.tree.map(lambda x: jnp.zeros((*size, *x.shape[1:]), x.dtype), observation)
        return Finals(blank, jnp.full(size, shape.length), jnp.zeros(shape.envs, jnp.int32))

    def play(
        run: State, finals: Finals, hp: HParams, t: Int[Array, ""], key: PRNGKeyArray
    ) -> tuple[State, Finals, Played]:
        """One step of every environment."""
        k_act, k_step, k_reset = jax.random.split(key, 3)
        action, Z = act(agent, run.agent, run.observation, run.step, hp, k_act)
        keys = jax.random.split(k_step, shape.envs)
        state, outcome = jax.vmap(env.step)(run.env, action, keys)
        done = outcome.terminated | outcome.truncated
        truncated = outcome.truncated & ~outcome.terminated
        if slots:
            at = jnp.where(truncated, finals.used, slots)  # writes beyond the last are dropped
            ends = jax.vmap(env.observe)(state)
            finals = Finals(
                jax.tree.map(
                    lambda x, new: x.at[every, at].set(new, mode="drop"), finals.observation, ends
                ),
                finals.step.at[every, at].set(t, mode="drop"),
                finals.used + truncated,
            )
        fresh = jax.vmap(env.reset)(jax.random.split(k_reset, shape.envs))

        def restart(new, old):
            return jnp.where(done.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

        state = jax.tree.map(restart, fresh, state)
        step = run.step + shape.envs
        seen = Played(run.observation, Z, action, outcome.reward, outcome.terminated, truncated)
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
        seen = jax.tree.map(
            lambda now, ends: jnp.concatenate([now, ends.reshape(-1, *now.shape[1:])]),
            run.observation,
            finals.observation,
        )
        after = agent.atoms(run.agent.params, seen)
        following = jnp.concatenate([Z[1:], after[None, : shape.envs]])
        if not slots:
            return following
        own = after[shape.envs :].reshape(shape.envs, slots, *after.shape[1:])
        return following.at[finals.step, every[:, None]].set(own, mode="drop")

    def rollout(run: State, hp: HParams, key: PRNGKeyArray) -> tuple[State, Float[Array, ""]]:
        """T steps of every environment, and the updates on them."""
        k_play, k_draw, k_learn = jax.random.split(key, 3)

        def step(carry, t):
            run, finals, seen = play(carry[0], carry[1], hp, t, jax.random.fold_in(k_play, t))
            return (run, finals), seen

        first = (run, no_finals(run.observation))
        (run, finals), seen = jax.lax.scan(step, first, jnp.arange(shape.length))
        Z_next = next_atoms(run, finals, seen.Z)
        y = returns(agent, shape, run.agent, seen, Z_next, hp, k_draw)
        state, loss = learn(agent, shape, run.agent, seen, y, run.step, hp, k_learn)
        return run._replace(agent=state, diverged=first_bad(run.diverged, loss, run.step)), loss

    def period(
        run: State, hp: HParams, numbers: int | Int[Array, ""], largest: Largest = lambda n: n
    ) -> tuple[State, Metrics]:
        """`numbers` rollouts, and their metrics."""
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

    # At level 1 the program is as fast and compiles in five sixths of the time.
    return Loop(init, period, optimisation=1)
