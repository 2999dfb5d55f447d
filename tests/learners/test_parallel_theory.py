"""The parallel learner with a table in place of a network, against dynamic programming."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.parallel import EVERY, tabulated
from tsallax import tabular
from tsallax.agents import make_agent
from tsallax.learners.parallel_device import make_loop
from tsallax.learners.parallel_update import Rollouts
from tsallax.operators import get_algorithm, make_hparams
from tsallax.types import Environment, Outcome

# One successor of each (s, a): what is left of the sampling error is which actions are taken.
MDP = tabular.garnet(1, 5, 3, 1, 0.8)


def mdp_env() -> Environment:
    """The MDP as an environment that never ends."""
    P, r = jnp.asarray(MDP.P, jnp.float32), jnp.asarray(MDP.r, jnp.float32)
    states = P.shape[0]

    def reset(key):
        return jax.random.randint(key, (), 0, states)

    def step(state, action, key):
        following = jnp.argmax(P[state, action])
        never = jnp.zeros((), bool)
        return following, Outcome(r[state, action], never, never)

    def observe(state):
        return jax.nn.one_hot(state, states)

    def render(state):
        return jnp.zeros((1, 1, 3), jnp.uint8)

    return Environment("MDP", ("0", "1", "2"), reset, step, observe, render)


ROUNDS = 1000


@functools.cache
def make_learned(algo: str):
    """From numbers to the table that the parallel learner ends with: one program an algorithm.

    Plain stochastic approximation: RMSprop with a large eps is gradient descent; the step size
    decays to 0.
    """
    network = tabulated((5, 3))
    agent = make_agent(network, get_algorithm(algo), optimiser="rmsprop", optimiser_eps=1e4)
    loop = make_loop(mdp_env(), agent, Rollouts(0, 32, 8, 1, 1, 256))

    @jax.jit
    def run(hp):
        state, _ = loop.period(loop.init(jax.random.key(0)), hp, ROUNDS)
        return state.agent.params

    return run


def learned(algo: str, **numbers) -> np.ndarray:
    own = {"gamma": MDP.gamma, "alpha": 0.2, "beta": 0.5, "learning_rate": 3e4} | numbers
    hp = make_hparams(algo, **own)._replace(
        learning_rate_end=0.0, total_steps=256.0 * ROUNDS, epsilon_steps=1.0
    )
    return np.asarray(make_learned(algo)(hp))


UNIFORM = {"epsilon": 1.0, "epsilon_end": 1.0}
ON_POLICY = {"epsilon": 0.0, "epsilon_end": 0.0}


@pytest.mark.parametrize("algo", EVERY)
def test_with_a_table_at_lambda_0_it_ends_where_dynamic_programming_ends(algo):
    """At q = 1, where ln pi is finite: at q = 2 MT-DQN has more than one fixed point.

    Clipped AL at numbers where it has a fixed point (the next test has the others).
    """
    own = {"clipped-al": {"beta": 0.3, "clip_ratio": 0.92}}.get(algo, {})
    numbers = {"alpha": 0.2, "beta": 0.5, **own} | ({"q": 1.0} if algo.startswith("mt-") else {})
    wanted = tabular.solve(MDP, algo, **numbers).Q
    np.testing.assert_allclose(learned(algo, **numbers, **UNIFORM), wanted, atol=5e-3)


@pytest.mark.slow
def test_clipped_al_settles_at_its_threshold_where_it_has_no_fixed_point():
    """With the bonus `Q = u + beta (Q - V)` falls below c V, without it `Q = u` rises above."""
    beta, ratio = 0.5, 0.8
    u = tabular.solve(MDP, "dqn").Q
    V = u.max(1, keepdims=True)
    with_bonus = (u - beta * V) / (1 - beta)
    between = (with_bonus < ratio * V) & (ratio * V <= u)
    assert between.sum() == 8
    found = learned("clipped-al", beta=beta, clip_ratio=ratio, **UNIFORM)
    wanted = np.where(between, ratio * V, with_bonus)
    np.testing.assert_allclose(found, wanted, atol=0.02)


@pytest.mark.parametrize("algo", ["tal", pytest.param("tsallis-dqn", marks=pytest.mark.slow)])
def test_above_lambda_0_the_fixed_point_stays_where_the_value_is_that_of_the_player(algo):
    """`value(s') = <pi, Q'>` is the mean of what follows if pi plays, bonuses included."""
    numbers = {"q": 1.0, "alpha": 2.0, "beta": 0.5}
    wanted = tabular.solve(MDP, algo, **numbers).Q
    found = learned(algo, lambda_=0.8, **numbers, **ON_POLICY)
    np.testing.assert_allclose(found, wanted, atol=0.05)


def test_above_lambda_0_it_moves_where_another_policy_plays():
    """Returns of uniform actions are not those of the greedy policy."""
    wanted = tabular.solve(MDP, "dqn").Q
    assert np.abs(learned("dqn", lambda_=0.8, **UNIFORM) - wanted).max() > 0.3
