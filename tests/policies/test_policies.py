"""Closed forms, approximations, entropies and exploration."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import tsallax
from tsallax import policies

Q = jnp.array([0.06, 0.05, 0.0])
APPROXIMATIONS = [m for m in policies.METHODS if m != "exact"]


def test_greedy_shares_ties():
    np.testing.assert_array_equal(policies.greedy(jnp.array([1.0, 3, 3, 0])), [0, 0.5, 0.5, 0])


def test_softmax_golden():
    """exp(2 ln 2) : exp(ln 2) : exp(0) = 4 : 2 : 1."""
    pi = policies.softmax(jnp.log(jnp.array([4.0, 2, 1])) * 0.3 + 1e3, 0.3)
    np.testing.assert_allclose(pi, np.array([4, 2, 1]) / 7, atol=1e-4)  # offset 1e3 costs digits


def test_sparsemax_golden():
    """z = (2, 5/3, 0): K = 2, psi = (11/3 - 1)/2 = 4/3, pi = (2/3, 1/3, 0)."""
    np.testing.assert_allclose(policies.sparsemax(Q / 0.03), [2 / 3, 1 / 3, 0], atol=1e-6)


def test_sparsemax_value_golden():
    """alpha (1/2 (2^2 + (5/3)^2 - 2 (4/3)^2) + 1/2) = 0.03 (29/18 + 1/2) = 0.03 * 19/9."""
    value = policies.sparsemax_value(Q, 0.03)
    np.testing.assert_allclose(value, 0.03 * 19 / 9, rtol=1e-6)
    np.testing.assert_allclose(value, tsallax.tsallis_value(Q, 2, 0.03), rtol=1e-6)


def test_sparsemax_against_optax():
    z = jax.random.normal(jax.random.key(0), (200, 7)) * 3
    oracle = jax.vmap(optax.projections.projection_simplex)(z)
    np.testing.assert_allclose(policies.sparsemax(z), oracle, atol=1e-6)


def test_q_log_and_q_exp_golden_and_inverse():
    """ln_2 x = x - 1, ln_3 x = (x^2 - 1)/2, ln_0.5 x = 2 - 2/sqrt(x)."""
    x = jnp.array([0.25, 1.0, 4.0])
    for q, expected in [(2, x - 1), (3, (x**2 - 1) / 2), (0.5, 2 - 2 / jnp.sqrt(x))]:
        np.testing.assert_allclose(policies.q_log(x, q), expected, rtol=1e-6)
        np.testing.assert_allclose(policies.q_exp(policies.q_log(x, q), q), x, rtol=1e-5)
    np.testing.assert_allclose(policies.q_log(x, 1), jnp.log(x), rtol=1e-6)
    np.testing.assert_allclose(policies.q_log(x, 1 + 1e-6), jnp.log(x), atol=1e-5)
    np.testing.assert_array_equal(policies.q_exp(jnp.array([-2.0]), 2), [0])


def test_tsallis_entropy_golden():
    """pi = (1/2, 1/4, 1/4): H_2 = 1/2 (1 - 3/8) = 5/16, H_3 = 1/4 (1 - 5/32) = 27/128."""
    pi = jnp.array([0.5, 0.25, 0.25])
    np.testing.assert_allclose(policies.tsallis_entropy(pi, 2), 5 / 16, rtol=1e-6)
    np.testing.assert_allclose(policies.tsallis_entropy(pi, 3), 27 / 128, rtol=1e-6)
    np.testing.assert_allclose(policies.tsallis_entropy(pi, 1), 0.75 * np.log(2), rtol=1e-6)
    np.testing.assert_allclose(policies.shannon_entropy(pi), 1.5 * np.log(2), rtol=1e-6)
    np.testing.assert_array_equal(policies.tsallis_entropy(jnp.eye(3), jnp.array([0.5, 1, 3])), 0)
    assert jnp.isfinite(policies.tsallis_entropy(jnp.array([1.0, 0]), -1))
    assert policies.tsallis_entropy(pi, jnp.inf) == 0


def test_kl_divergence():
    pi, other = jnp.array([0.5, 0.5, 0]), jnp.array([0.25, 0.5, 0.25])
    np.testing.assert_allclose(policies.kl_divergence(pi, other), 0.5 * np.log(2), rtol=1e-6)
    assert policies.kl_divergence(other, pi) == jnp.inf


def test_paper_policy_golden():
    """q = 3/2, z = (2, 5/3, 0), k q = 3/4, constant 3/4 - 3/2 = -3/4.

    Support: i = 2: 3/4 + 10/3 > 11/3 - 3/2; i = 3: 3/4 + 0 > 11/3 - 9/4 is false. So K = 2,
    psi~ = (11/3 - 3/4)/2 - 3/4 = 17/24, brackets 31/24 and 23/24, pi~ = their squares.
    """
    pi = tsallax.tsallis_policy(Q, 1.5, 0.03, method="paper")
    np.testing.assert_allclose(pi, [(31 / 24) ** 2, (23 / 24) ** 2, 0], rtol=1e-5)
    normalised = tsallax.tsallis_policy(Q, 1.5, 0.03, method="paper-normalised")
    np.testing.assert_allclose(normalised, pi / pi.sum(), rtol=1e-6)


@pytest.mark.parametrize("q", [1.005, 1.02, 1.04])
def test_the_normalised_policy_where_the_root_overflows(q):
    """Eq. 7 with all actions in the support, in float64 and by logarithms."""
    z = np.asarray(Q, np.float64) / 0.03
    pi = tsallax.tsallis_policy(Q, q, 0.03, method="paper-normalised")
    psi = (z.sum() - q / 2) / len(z) + q / 2 - q / 2 / (q - 1)
    root = np.log(z - psi) / (q - 1)
    root -= root.max()
    np.testing.assert_allclose(pi, np.exp(root) / np.exp(root).sum(), rtol=2e-3)


def test_printed_policy_golden():
    """q = 3, z = (2, 5/3, 0), k q = 3/2, constant 3/2 - 3 = -3/2: all in the support.

    psi~ = (11/3 - 3/2)/3 - 3/2 = -7/9, pi~ = sqrt(25/9), sqrt(22/9), sqrt(7/9).
    """
    pi = tsallax.tsallis_policy(Q, 3.0, 0.03, method="printed")
    np.testing.assert_allclose(pi, np.sqrt(np.array([25, 22, 7]) / 9), rtol=1e-5)


def test_approximations_are_the_closed_forms_where_there_are_some():
    for method in APPROXIMATIONS:
        for q in (1, 2, np.inf):
            exact = tsallax.tsallis_policy(Q, q, 0.03)
            traced = jax.jit(tsallax.tsallis_policy, static_argnames="method")
            pi = traced(Q, float(q), 0.03, method=method)
            np.testing.assert_allclose(pi, exact, atol=1e-6)
            np.testing.assert_allclose(
                tsallax.tsallis_policy(Q, q, 0.03, method=method), exact, atol=1e-6
            )


@pytest.mark.parametrize("method", APPROXIMATIONS)
@pytest.mark.parametrize("q", [-3.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 4.0, np.inf])
def test_approximations_are_finite_for_every_q(method, q):
    rows = jax.random.normal(jax.random.key(0), (100, 4)) * jnp.array(
        [[1e-3], [0.03], [1], [100]] * 25
    )
    rows = jnp.concatenate([rows, jnp.zeros((1, 4))])
    pi = jax.jit(tsallax.tsallis_policy, static_argnames="method")(rows, q, 0.03, method=method)
    assert jnp.isfinite(pi).all()
    assert (pi >= 0).all()


def test_epsilon_greedy_golden():
    pi = policies.epsilon_greedy(jnp.array([0.0, 1.0, 0.0, 0.0]), 0.2)
    np.testing.assert_allclose(pi, [0.05, 0.85, 0.05, 0.05], rtol=1e-6)


def test_sample_frequencies_and_zeros():
    """20,000 draws of weights that sum to 4: each frequency within 5 standard errors."""
    weights = jnp.array([0.0, 1.0, 0.0, 3.0, 0.0])
    draws = policies.sample(jax.random.key(0), jnp.broadcast_to(weights, (20_000, 5)))
    frequencies = np.bincount(draws, minlength=5) / 20_000
    assert frequencies[[0, 2, 4]].sum() == 0
    assert abs(frequencies[1] - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 20_000)


def test_normalise_falls_back_to_the_best_action():
    weights = jnp.array([[0.0, 0.0, 0.0], [2.0, 6.0, 0.0], [8e37, 8e37, 0.0], [np.inf, 1, np.inf]])
    values = jnp.array([[1.0, 5.0, 5.0], [9.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = [[0, 1, 0], [0.25, 0.75, 0], [0.5, 0.5, 0], [0.5, 0, 0.5]]
    np.testing.assert_allclose(policies.normalise(weights, values), expected, rtol=1e-6)


@pytest.mark.parametrize("q", [2.0, 3.0])
@pytest.mark.parametrize("method", ["exact", "paper", "linear"])
def test_the_best_action_stays_in_the_support_of_huge_values(method, q):
    """Compiled: there `Q/alpha - max(Q/alpha)` of the best action is a rounding error, not 0."""
    values = jnp.array([4.60915755, 3.93329104, 3.75297191, 4.87660760]) * 1e16
    pi = jax.jit(lambda Q: tsallax.tsallis_policy(Q, q, 0.03, method=method))(values)
    only = np.sqrt(0.75) if (method, q) == ("paper", 3.0) else 1.0
    np.testing.assert_allclose(pi, [0, 0, 0, only], rtol=1e-6)
