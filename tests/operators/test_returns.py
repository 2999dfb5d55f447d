"""Returns of a rollout by hand: a termination, a time limit and the rollout's end inside."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.operators import (
    ALGORITHMS,
    get_algorithm,
    lambda_returns,
    make_hparams,
    n_step_returns,
    one_step,
    terms,
)
from tsallax.policies import make_policy
from tsallax.types import Bootstrap

EXACT = make_policy("exact")


class Rollout(NamedTuple):
    rewards: jax.Array
    bonuses: jax.Array
    discounts: jax.Array
    next_values: jax.Array
    cut: jax.Array


# Six steps. The episode terminates after step 1, the next one is truncated after step 3, and the
# rollout ends within the third one. gamma = 1/2.
STEPS = Rollout(
    rewards=jnp.array([1.0, 2, 3, 4, 5, 6]),
    bonuses=jnp.array([-1.0, 1, -2, 0, 2, -3]),
    discounts=jnp.array([0.5, 0, 0.5, 0.5, 0.5, 0.5]),
    next_values=jnp.array([10.0, 99, 20, 40, 8, 16]),
    cut=jnp.array([False, False, False, True, False, True]),
)


def test_lambda_returns_golden():
    """lambda = 1/2, backwards.

    G_5 = 6 - 3 + 16/2 = 11                        the rollout ends: the value alone
    G_4 = 5 + 2 + (8/2 + 11/2)/2 = 11.75
    G_3 = 4 + 0 + 40/2 = 24                        truncated: the value alone
    G_2 = 3 - 2 + (20/2 + 24/2)/2 = 12
    G_1 = 2 + 1 + 0 = 3                            terminated: nothing follows
    G_0 = 1 - 1 + (10/2 + 3/2)/2 = 3.25
    """
    found = lambda_returns(*STEPS, lambda_=0.5)
    np.testing.assert_array_equal(found, [3.25, 3, 12, 24, 11.75, 11])


def test_n_step_returns_golden():
    """n = 2: the second step is followed by the value; n = 1 is the one-step target.

    n = 1: 1 - 1 + 10/2, 2 + 1, 3 - 2 + 20/2, 4 + 40/2, 5 + 2 + 8/2, 6 - 3 + 16/2
    n = 2: 1 - 1 + 3/2,  2 + 1, 3 - 2 + 24/2, 4 + 40/2, 5 + 2 + 11/2, 6 - 3 + 16/2
    """
    one, two = [5, 3, 11, 24, 11, 11], [1.5, 3, 13, 24, 12.5, 11]
    np.testing.assert_array_equal(n_step_returns(*STEPS, n=1), one)
    np.testing.assert_array_equal(n_step_returns(*STEPS, n=2), two)
    np.testing.assert_array_equal(n_step_returns(*STEPS, n=6), two)  # no episode has three steps


def test_three_steps_golden():
    """Within one episode, no bonus, gamma = 1/2, values (8, 8, 8, 16) of s_1 .. s_4, n = 3.

    G_0 = 1 + 2/2 + 3/4 + 8/8, G_1 = 2 + 3/2 + 4/4 + 16/8, G_2 = 3 + 4/2 + 16/4, G_3 = 4 + 16/2.
    """
    rewards, values = jnp.array([1.0, 2, 3, 4]), jnp.array([8.0, 8, 8, 16])
    cut = jnp.zeros(4, bool)  # the last row counts as cut in any case
    found = n_step_returns(rewards, 0 * rewards, jnp.full(4, 0.5), values, cut, 3)
    np.testing.assert_array_equal(found, [3.75, 6.5, 9, 12])


def test_lambda_one_is_the_discounted_sum():
    """Without an end inside: `sum_i gamma^i (r_i + bonus_i) + gamma^T value_T`."""
    gamma, whole = 0.5, jnp.zeros(6, bool)
    steps = STEPS._replace(discounts=jnp.full(6, gamma), cut=whole)
    gains = np.asarray(steps.rewards + steps.bonuses)
    sums = [
        sum(gamma**i * gain for i, gain in enumerate(gains[t:])) + gamma ** (6 - t) * 16
        for t in range(6)
    ]
    np.testing.assert_allclose(lambda_returns(*steps, lambda_=1.0), sums, rtol=1e-6)
    np.testing.assert_allclose(n_step_returns(*steps, n=6), sums, rtol=1e-6)


@pytest.mark.parametrize("returns", [lambda_returns, n_step_returns])
def test_nothing_leaks_from_one_episode_into_another(returns):
    """Not from behind an end, nor from the value of a terminal state."""
    number = 0.5 if returns is lambda_returns else 3
    before = returns(*STEPS, number)
    later = STEPS._replace(
        rewards=STEPS.rewards.at[4:].set(1e6),
        next_values=STEPS.next_values.at[jnp.array([1, 5])].set(7e5),
    )
    np.testing.assert_array_equal(returns(*later, number)[:4], before[:4])
    assert (returns(*later, number)[4:] != before[4:]).all()


@pytest.mark.parametrize("returns", [lambda_returns, n_step_returns])
def test_quantiles_are_returned_atom_by_atom(returns):
    number = 0.5 if returns is lambda_returns else 2
    atoms = jnp.stack([STEPS.next_values, 3 - STEPS.next_values, STEPS.next_values**2], 1)
    found = returns(*STEPS._replace(next_values=atoms), number)
    assert found.shape == (6, 3)
    for i in range(3):
        alone = returns(*STEPS._replace(next_values=atoms[:, i]), number)
        np.testing.assert_array_equal(found[:, i], alone)


@pytest.mark.parametrize("returns", [lambda_returns, n_step_returns])
def test_environments_and_numbers_are_mapped(returns):
    numbers = jnp.array([0.0, 0.5, 1.0]) if returns is lambda_returns else jnp.array([1, 2, 3])
    steps = jax.tree.map(lambda x: jnp.stack([x, jnp.roll(x, 1), x]), STEPS)
    together = jax.jit(jax.vmap(lambda steps, number: returns(*steps, number)))(steps, numbers)
    for i, number in enumerate(numbers):
        alone = returns(*jax.tree.map(lambda x: x[i], steps), number)  # noqa: B023
        np.testing.assert_allclose(together[i], alone, rtol=1e-6)


@functools.cache
def returns_and_targets(atoms: tuple[int, ...]) -> dict[str, tuple]:
    """Of every algorithm, from its own two functions; compiled once for all of them."""
    T = 6
    k_Q, k_Z = jax.random.split(jax.random.key(0))
    Q, Z = jax.random.normal(k_Q, (T, 3)), jax.random.normal(k_Z, (T, 3, *atoms))
    keys = jax.random.split(jax.random.key(1), T)
    x = Bootstrap(Q, jnp.arange(T) % 3, STEPS.rewards, STEPS.discounts, Z, keys)

    def both(name, x):
        row, hp = get_algorithm(name), make_hparams(name, alpha=0.3, beta=0.7)
        values, bonuses = jax.vmap(lambda x: terms(row, x, hp, EXACT))(x)
        found = lambda_returns(x.r, bonuses, x.discount, values, STEPS.cut, 0.0)
        return found, jax.vmap(lambda x: one_step(row)(x, hp, EXACT))(x)

    return jax.jit(lambda x: {name: both(name, x) for name in ALGORITHMS})(x)


@pytest.mark.parametrize("atoms", [(), (5,)], ids=["scalar", "quantile"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_lambda_zero_is_the_one_step_target(name, atoms):
    found, expected = returns_and_targets(atoms)[name]
    assert found.shape == (6, *atoms)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
