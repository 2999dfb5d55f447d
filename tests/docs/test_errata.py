"""Sections 4 to 8, 10 and 11 of docs/errata.md."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from support.errata import KEY, Q_ROWS, close, float64, operator, paper
from tsallax.operators import get_algorithm, make_hparams, one_step
from tsallax.operators.targets import advantage, beta_draw, boltzmann, log_sum_exp
from tsallax.policies import (
    make_policy,
    q_log,
    softmax,
    sparsemax,
    sparsemax_value,
    tsallis_entropy,
    tsallis_policy,
)
from tsallax.tabular import garnet, make_mdp, optimal_value
from tsallax.types import Bootstrap

# 4. k = 1/2 and Shannon --------------------------------------------------------------------------


def test_4_half_of_shannon_and_the_limit_of_the_policy():
    pi = softmax(Q_ROWS, 1.0)
    shannon = -jnp.sum(pi * jnp.log(pi), -1)
    close(tsallis_entropy(pi, 1 + 1e-5, 0.5), shannon / 2, 1e-4)
    close(tsallis_entropy(pi, 1.0, 1.0), shannon)
    for q in (1 - 1e-4, 1.0, 1 + 1e-4):
        close(paper(Q_ROWS, q, method="exact"), softmax(2 * Q_ROWS, 1.0), 1e-3)
    assert jnp.abs(softmax(2 * Q_ROWS, 1.0) - softmax(Q_ROWS, 1.0)).max() > 0.1


def test_4_the_table_runs_shannon_at_q_one():
    hp = make_hparams("tal", q=1.0, alpha=0.5)
    assert (float(hp.k), float(make_hparams("tal", q=1.5).k)) == (1.0, 0.5)
    close(make_policy()(Q_ROWS[0], hp), softmax(Q_ROWS[0], 0.5))


# 5. The value of the sparsemax -------------------------------------------------------------------


@jax.jit
def sparsemax_values(Q, alpha):
    pi = sparsemax(Q / alpha)
    return jnp.sum(pi * Q, -1) + alpha * tsallis_entropy(pi, 2.0), sparsemax_value(Q, alpha)


@pytest.mark.parametrize("alpha", [0.03, 1.0, 10.0])
def test_5_value_needs_the_factor_alpha(alpha):
    want, got = sparsemax_values(Q_ROWS, alpha)
    close(got, want)
    if alpha != 1:  # eq. 6 as printed: it is right at alpha = 1 only
        assert jnp.abs(want / alpha - want).max() > 0.1


# 6. SAL's law ------------------------------------------------------------------------------------


def mean_and_variance(a, b):
    return a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))


def test_6_beta_laws():
    mean, variance = mean_and_variance(2, 7)
    assert (mean + 7 / 9, variance) == (1, pytest.approx(7 / 405))
    mean, variance = mean_and_variance(2, 9)
    assert (mean + 7 / 9, variance) == (pytest.approx(95 / 99), pytest.approx(3 / 242))


@pytest.mark.parametrize("b", [7, 9])
def test_6_draws_have_the_mean_and_the_variance_of_their_law(b):
    n = 20_000
    draw = jax.jit(jax.vmap(lambda key: beta_draw(key, 2, b)))
    draws = np.asarray(draw(jax.random.split(KEY, n)))
    mean, variance = mean_and_variance(2, b)
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / n)
    assert abs(draws.var() / variance - 1) < 0.05


@pytest.mark.parametrize(("name", "b"), [("sal", 7), ("sal-printed", 9)])
def test_6_which_law_each_algorithm_draws_from(name, b):
    x = Bootstrap(
        jnp.array([0.0, -1.0]), jnp.int32(1), jnp.float32(0), jnp.float32(0), jnp.zeros(2), KEY
    )
    target = jax.jit(one_step(get_algorithm(name)), static_argnums=2)
    close(target(x, make_hparams(name), make_policy()), -(beta_draw(KEY, 2, b) + 7 / 9))


# 7. CVI's temperature ----------------------------------------------------------------------------


def test_7_the_temperature_is_the_sum_and_not_its_inverse():
    Psi = jnp.array([1.0, 0.9, 0.0, -1.0])
    pi = boltzmann(Psi, make_hparams("cvi", alpha=0.03))  # alpha is sigma + tau
    close(pi[0] / pi[1], np.exp(0.1 / 0.03), 1e-4)
    literal = softmax(Psi, 1 / 0.03)
    assert pi[0] > 0.96
    assert literal.max() / literal.min() < 1.07  # all but uniform over a gap of 2


def test_7_sigma_and_tau_from_the_preference_recursion():
    """MDQN at alpha = sigma + tau and beta = sigma/(sigma + tau) is CVI by its definition."""
    sigma, tau = 0.27, 0.03
    mdp = garnet(0, 4, 4, 2, gamma=0.9)
    hp = make_hparams("mdqn", alpha=sigma + tau, beta=sigma / (sigma + tau), clip=-np.inf)
    with jax.enable_x64(True):
        Q, log_pi = mdp.r, np.full(mdp.r.shape, -np.log(4))  # pi_0 uniform
        Psi = Q + sigma * log_pi
        for _ in range(4):
            # V = max_pi <pi,Q> + tau H(pi) - sigma KL(pi || pi_before), and its maximiser.
            V = (sigma + tau) * logsumexp((Q + sigma * log_pi) / (sigma + tau), -1)
            log_pi = (Q + sigma * log_pi - V[:, None]) / (sigma + tau)
            Q = mdp.r + mdp.gamma * mdp.P @ V
            Psi = operator(mdp, Psi, float64(hp), "mdqn")
            close(Psi, Q + sigma * log_pi, 1e-10)


# 8. The discount, and the entropy in the loss ----------------------------------------------------


def test_8_values_are_discounted_sums():
    mdp = make_mdp(np.ones((1, 1, 1)), np.ones((1, 1)), 0.9)
    close(optimal_value(mdp), sum(0.9**t for t in range(500)))
    assert sum(1 for t in range(500)) > 49 * optimal_value(mdp)[0]  # the printed sum has no limit


def test_8_the_printed_loss_has_no_entropy_and_the_operator_has():
    Q, policy = Q_ROWS[0], make_policy("paper")
    x = Bootstrap(Q, jnp.int32(0), jnp.float32(1), jnp.float32(0.9), Q, KEY)
    without = make_hparams("tal", alpha=1.0, beta=0.5)
    with_it = without._replace(entropy=1.0)
    assert without.entropy == 0
    pi, target = paper(Q, 2.0), jax.jit(one_step(get_algorithm("tal")), static_argnums=2)
    close(target(x, without, policy), 1 + 0.9 * pi @ Q + 0.5 * advantage(x, pi))
    gain = 0.9 * tsallis_entropy(pi, 2.0)
    assert gain > 0.01
    close(target(x, with_it, policy) - target(x, without, policy), gain)


def test_8_without_the_entropy_the_bootstrap_is_no_non_expansion():
    Q = jnp.array([0.99, 0.0, -9.0, -9.0])
    average = jax.jit(jax.grad(lambda Q: tsallis_policy(Q, 2.0, 1.0) @ Q))(Q)
    close(average, [1.49, -0.49, 0, 0])  # sum of the moduli 1.98 > 1
    close(jax.jit(jax.grad(lambda Q: sparsemax_value(Q, 1.0)))(Q), paper(Q, 2.0))


# 10. LunarLander ---------------------------------------------------------------------------------


def test_10_lunar_lander_is_version_three_today():
    assert "LunarLander-v3" in gym.registry
    assert "LunarLander-v2" not in gym.registry


# 11. Minor mistakes ------------------------------------------------------------------------------


def test_11_slope_of_the_entropy():
    pi, q, k = softmax(Q_ROWS[0], 1.0), 3.0, 0.5
    got = jax.jit(jax.grad(lambda pi: tsallis_entropy(pi, q, k)))(pi)
    want = -k * q / (q - 1) * pi ** (q - 1)
    close(got - got.mean(), want - want.mean())


def test_11_the_log_policy_of_the_advantage_is_the_new_one():
    hp = make_hparams("mdqn", alpha=0.5)
    old, new = Q_ROWS[0], Q_ROWS[1]
    gap = new - log_sum_exp(new, hp)
    close(hp.alpha * jnp.log(boltzmann(new, hp)), gap)
    assert jnp.abs(hp.alpha * jnp.log(boltzmann(old, hp)) - gap).max() > 0.1


def test_11_the_q_logarithm_gives_the_advantage_back_on_the_support():
    q, alpha, k = 3.0, 1.0, 0.5
    pi = paper(Q_ROWS, q, alpha, method="exact")
    V = jnp.sum(pi * Q_ROWS, -1, keepdims=True)
    term = alpha * k * q * q_log(pi, q)
    gap = jnp.where(pi > 0, term - jnp.sum(pi * term, -1, keepdims=True) - (Q_ROWS - V), 0)
    close(gap, 0)
