"""Runs side by side of which one goes bad: at a reward, or at a loss."""

import jax
import jax.numpy as jnp
import numpy as np

from support.probe_envs import clock
from tsallax.agents import make_agent
from tsallax.learners import Schedule
from tsallax.learners.replay_device import Numbers, State, make_loop
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay.ring import make_ring
from tsallax.types import Environment

SEEDS, SICK, STEP = 4, 2, 33


def poisoned() -> Environment:
    """The clock, whose reward is NaN once, at the step its state tells."""

    def reset(key):
        return jnp.zeros(2), jnp.int32(-1)

    def step(state, action, key):
        time, poison = state
        after, outcome = clock().step(time, action, key)
        bad = after[0].astype(jnp.int32) == poison
        return (after, poison), outcome._replace(reward=jnp.where(bad, jnp.nan, outcome.reward))

    return clock()._replace(reset=reset, step=step, observe=lambda state: state[0] / 100)


LOOP = make_loop(
    poisoned(),
    make_agent(mlp((2,), (3,), (8,)), get_algorithm("tal"), q=2.0),
    make_ring(100, None),
    Schedule(40, 8, 2, 20),
)


@jax.jit
@jax.vmap
def run(seed, poison, rate):
    hp = make_hparams("tal", learning_rate=rate, epsilon=0.5)
    state: State = LOOP.init(jax.random.key(seed))
    state = state._replace(env=(state.env[0], poison))
    state, _ = LOOP.period(state, hp, Numbers(10, 0, True, 2))
    return LOOP.period(state, hp, Numbers(0, 10, True, 2))


def outcome(poison=-1, rate=1e-3, seeds=SEEDS):
    poisons = np.full(seeds, -1, np.int32)
    rates = np.full(seeds, 1e-3, np.float32)
    poisons[SICK], rates[SICK] = poison, rate
    state, metrics = run(np.arange(seeds), poisons, rates)
    return state._replace(key=jax.random.key_data(state.key)), metrics


def same_but_for_the_sick(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        others = np.arange(len(a)) != SICK
        np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])
