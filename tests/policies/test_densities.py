"""Densities of continuous actions: against quadrature, SciPy and the limit q = 1."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from tsallax.policies import densities, q_log

QS = (1.0, 1.0001, 1.1, 1.5, 2.0, 3.0, 8.0)
every_q = pytest.mark.parametrize("q", QS)
PLACES = [(0.0, 0.3), (0.4, 0.1), (-1.5, 0.8)]  # centre and scale, before the squash

log_f = jax.jit(densities.standard_log_density)


@jax.jit
def given(a, centre, scale, q):
    """The logarithm of the density of given actions."""
    a = jnp.asarray(a, jnp.float32)
    return densities.squashed_log_density(a, jnp.full(a.shape, centre), jnp.full(a.shape, scale), q)


def reach(q: float) -> float:
    """Where the support ends, or where a Gaussian may as well."""
    return 10.0 if q == 1 else min(10.0, math.sqrt((3 * q - 1) / (q - 1)))


def mean(function, q: float) -> float:
    """Over the standard density, by the trapezium rule on Chebyshev's abscissae."""
    t = np.linspace(0, np.pi, 20_001)
    z = -reach(q) * np.cos(t)
    p = np.exp(np.asarray(log_f(jnp.asarray(z, jnp.float32), jnp.float32(q)), np.float64))
    weight = np.where(np.isfinite(p), p, 0) * reach(q) * np.sin(t)
    return float(integrate.trapezoid(weight * function(z, p), t))


@every_q
def test_the_standard_density_has_mass_and_variance_one(q):
    assert mean(lambda z, p: 1.0, q) == pytest.approx(1, abs=2e-5)
    assert mean(lambda z, p: z**2, q) == pytest.approx(1, abs=1e-4)


@every_q
def test_the_normaliser_is_the_gamma_functions(q):
    """In float64, where their difference can be taken."""
    if q == 1:
        expected = -math.log(2 * math.pi) / 2
    else:
        m = 1 / (q - 1)
        gammas = special.gammaln(m + 1.5) - special.gammaln(m + 1)
        expected = gammas - math.log(math.pi * (2 * m + 3)) / 2
    assert float(densities.log_normaliser(q)) == pytest.approx(expected, abs=1e-6)


def test_densities_by_hand():
    """q = 2 is a parabola on +-sqrt(5), 3/(4 sqrt(5)) (1 - z^2/5); q = 1 the Gaussian."""
    z = jnp.array([0.0, 1.0, -2.0])
    parabola = 3 / (4 * math.sqrt(5)) * np.array([1, 0.8, 0.2])
    np.testing.assert_allclose(jnp.exp(log_f(z, 2.0)), parabola, rtol=1e-6)
    np.testing.assert_allclose(log_f(z, 1.0), stats.norm.logpdf(np.asarray(z)), rtol=1e-6)
    assert log_f(jnp.array(2.24), 2.0) == -jnp.inf
    np.testing.assert_allclose(log_f(z, 1 + 1e-5), log_f(z, 1.0), atol=1e-4)


@functools.cache
def draws():
    """Of all q by one program, which takes q traced."""
    u, v = jax.random.uniform(jax.random.key(0), (2, 20_000))
    draw = jax.jit(jax.vmap(densities.standard_draw, (None, None, 0)))
    return np.asarray(draw(u, v, jnp.array(QS)), np.float64)


@every_q
def test_draws_have_the_density(q):
    """Kolmogorov and Smirnov's distance of 20,000 draws; 1.63/sqrt(n) is its bound at 1 %."""
    z = draws()[QS.index(q)]
    if q == 1:
        distribution = stats.norm.cdf
    else:
        m, end = 1 / (q - 1), math.sqrt((3 * q - 1) / (q - 1))
        distribution = lambda z: stats.beta.cdf((z / end + 1) / 2, m + 1, m + 1)  # noqa: E731
        assert np.abs(z).max() <= end * (1 + 1e-6)
    assert stats.kstest(z, distribution).statistic < 1.63 / math.sqrt(len(z))
    assert z.var() == pytest.approx(1, abs=0.04)


@every_q
@pytest.mark.parametrize("place", PLACES)
def test_the_squashed_density_has_mass_one(q, place):
    """Its change of variables: over actions, on a grid that is fine where tanh is flat."""
    centre, scale = place
    x = np.linspace(-6, 6, 40_001)
    a = np.tanh(x)
    p = np.exp(np.asarray(given(a, centre, scale, q), np.float64))
    assert integrate.trapezoid(p, a) == pytest.approx(1, abs=2e-3)
    low, high = map(float, densities.squashed_support(jnp.float32(centre), jnp.float32(scale), q))
    assert -1 <= low < high <= 1
    assert (p[(a < low - 1e-3) | (a > high + 1e-3)] < 1e-6).all()
    if q > 1:
        inside = (a > low + 0.02 * (high - low)) & (a < high - 0.02 * (high - low))
        assert (p[inside] > 0).all()


@every_q
def test_a_drawn_action_has_the_density_of_the_same_action_given(q):
    z = draws()[QS.index(q)][:500] * 0.98
    centre, scale = jnp.full(len(z), 0.3), jnp.full(len(z), 0.4)
    action, log_density = densities.squashed(centre, scale, jnp.asarray(z, jnp.float32), q)
    np.testing.assert_allclose(log_density, given(action, 0.3, 0.4, q), rtol=2e-3, atol=2e-3)
    assert given(-0.999, 0.3, 0.1, 2.0) == -jnp.inf


@every_q
@pytest.mark.parametrize("entropic", [1.0, 1.5, 2.0])
def test_entropies_are_the_expected_q_logarithms(q, entropic):
    """`-k <p, ln_q p>` by quadrature: a Gaussian's for every index, a q-Gaussian's for its own."""
    k, scale = 0.5, 0.3

    def negative(index):
        return lambda z, p: -k * np.asarray(q_log(jnp.asarray(np.maximum(p, 1e-30) / scale), index))

    found = densities.gaussian_entropy(scale, entropic, k)
    assert float(found) == pytest.approx(mean(negative(entropic), 1.0), rel=1e-4, abs=1e-4)
    found = densities.q_gaussian_entropy(scale, q, k)
    assert float(found) == pytest.approx(mean(negative(q), q), rel=1e-4, abs=1e-4)


def test_the_width_of_sacs_target():
    """-1 a dimension is a Gaussian of width .089, whatever the index by which it is measured."""
    width = densities.width_of_entropy(-1.0)
    assert float(width) == pytest.approx(0.0890, abs=1e-4)
    assert float(densities.gaussian_entropy(width, 1.0, 1.0)) == pytest.approx(-1, abs=1e-6)
    near = densities.gaussian_entropy(width, 1 + 1e-5, 1.0)
    assert float(near) == pytest.approx(-1, abs=1e-3)


@pytest.mark.parametrize("q", QS[:-1])  # beyond q = 3 the power of a density of e^24 overflows
def test_gradients_are_finite_at_the_edges(q):
    """Draws at the end of the support, and where tanh is 1 in float32."""
    ends = jnp.array([0.0, 1.0, -1.0]) * reach(q)

    def loss(parameters, z):
        _, log_density = densities.squashed(parameters[0], jnp.exp(parameters[1]), z, q)
        return densities.q_log_of_exp(log_density, q)

    for centre in (0.0, 12.0, -12.0):
        parameters = jnp.array([centre, -1.0])
        gradients = jax.vmap(jax.grad(loss), (None, 0))(parameters, ends)
        assert np.isfinite(gradients).all()
        values = jax.vmap(loss, (None, 0))(parameters, ends)
        assert np.isfinite(values).all()


def test_the_slope_of_the_squash():
    x = jnp.linspace(-3, 3, 13)
    np.testing.assert_allclose(densities.log_slope(x), np.log1p(-(np.tanh(x) ** 2)), atol=1e-5)
    assert densities.log_slope(jnp.array(50.0)) == pytest.approx(2 * math.log(2) - 100, rel=1e-6)
