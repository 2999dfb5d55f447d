"""Each section of docs/errata.md: the slips of the paper, and what is right."""

from functools import partial

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from tsallax.operators import get_algorithm, make_hparams
from tsallax.operators.targets import advantage, beta_draw, boltzmann, soft_value
from tsallax.policies import (
    greedy,
    make_policy,
    normalise,
    q_log,
    softmax,
    sparsemax,
    sparsemax_value,
    tsallis_entropy,
    tsallis_policy,
)
from tsallax.tabular import apply_target, chain, garnet, make_mdp, optimal_value, solve
from tsallax.types import Bootstrap, HParams

KEY = jax.random.key(0)
Q_ROWS = jax.random.normal(KEY, (200, 4))  # with alpha = 1: supports of one to four actions
general = jax.jit(tsallis_policy, static_argnames="method")


def close(got, want, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tolerance, atol=tolerance)


def paper(Q, q, alpha=1.0, method="paper"):
    """The Tsallis policy at a traced q, so that one program a method serves this whole file."""
    Q = jnp.asarray(Q, jnp.float32)
    rows = general(jnp.broadcast_to(Q, Q_ROWS.shape), q, alpha, method=method)
    return rows if Q.ndim == 2 else rows[0]


def right(q, k=0.5):
    return k * q - k * q / (q - 1)


def printed(q):
    return q / 2 - q / (q - 2)


def float64(hp):
    return HParams(*(jnp.asarray(x, jnp.float64) for x in hp))


@partial(jax.jit, static_argnames="algo")
def operator(mdp, Q, hp, algo):
    """The algorithm's target with the paper's policy, averaged over the next states."""
    return apply_target(mdp, Q, Q, get_algorithm(algo).target, hp, make_policy("paper"), KEY)


slope = jax.jit(jax.jacfwd(operator, 1), static_argnames="algo")


def weight(q):
    """What a one-action support gets."""
    return (q / (2 * q - 2)) ** (1 / (q - 1))


# 1. The constant of the normalisation ------------------------------------------------------------


def test_1_the_right_constant_gives_sparsemax_back_at_two():
    for q in (1.999, 2.001):
        close(paper(Q_ROWS, q), sparsemax(Q_ROWS), 0.02)


def test_1_the_printed_constant_has_a_pole_at_two():
    with pytest.raises(ZeroDivisionError):
        printed(2)
    assert not paper(Q_ROWS, 1.999, method="printed").any()
    assert paper(Q_ROWS, 2.001, method="printed").sum(-1).min() > 1000


def test_1_the_printed_constant_leaves_an_empty_support_at_three_halves():
    assert not paper(Q_ROWS, 1.5, method="printed").any()
    assert paper(Q_ROWS, 1.5).any(-1).all()


@pytest.mark.parametrize("q", [1.5, 2.5, 3.0, 4.0])
def test_1_only_the_right_constant_makes_the_expansion_sum_to_one(q):
    z, kq = np.array([0.3, 0.2, -0.1]), q / 2

    def expansion(constant):
        psi = (z.sum() - kq) / len(z) + constant
        return np.sum(1 + ((z - psi) * (q - 1) / kq - 1) / (q - 1))

    close(expansion(right(q)), 1)
    close(expansion(printed(q)), 1 + len(z) * (right(q) - printed(q)) / kq)
    assert abs(expansion(printed(q)) - 1) > 1


# 2. The dropped factor ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "c"), [(1.5, 2.25), (2.5, 0.885549), (3.0, 0.866025), (4.0, 0.873580), (-1.0, 2.0)]
)
def test_2_weight_of_a_one_action_support(q, c):
    close(weight(q), c)
    close(paper([5.0, 0.0, 0.0, 0.0], q), [c, 0, 0, 0])


@pytest.mark.parametrize("q", [1.5, 2.5, 3.0, 4.0])
def test_2_the_expansion_itself_is_a_sparsemax(q):
    linear = paper(Q_ROWS, q, method="linear")
    close(linear, sparsemax(2 * Q_ROWS / q))
    close(linear.sum(-1), 1)


def test_2_the_factor_kept_normalises_a_single_action():
    for q in (1.5, 2.5, 3.0, 4.0):
        close(weight(q) * (2 * (q - 1) / q) ** (1 / (q - 1)), 1)


def test_2_from_q_three_on_the_support_is_one_action():
    near_ties = Q_ROWS * 1e-3  # the exact policy keeps all four
    for q in (3.0, 4.0):
        close(paper(near_ties, q).sum(-1), weight(q))
        assert ((paper(near_ties, q) > 0).sum(-1) == 1).all()
        assert (paper(near_ties, q, method="exact") > 0).all()


def test_2_sum_of_the_weights_at_three_halves():
    assert (paper(Q_ROWS, 1.5).sum(-1) > 2.25 - 1e-5).all()
    for gap, total in ((0.0, 2.53125), (2.0, 4.53125), (2.2499, 5.0620), (2.26, 2.25)):
        close(paper([0.0, -gap, -99.0, -99.0], 1.5).sum(), total, 1e-4)


# 3. The index of the support test ----------------------------------------------------------------


def brute_force_support(z, q, constant):
    """The i best actions for the largest i with z_(i) above the psi~ of those i."""
    ranked = np.sort(z)[::-1]
    psi = [(ranked[: i + 1].sum() - q / 2) / (i + 1) + constant for i in range(len(z))]
    inside = [i + 1 for i in range(len(z)) if ranked[i] > psi[i]]
    return np.argsort(np.argsort(-z)) < max(inside, default=0)


@pytest.mark.parametrize("q", [1.5, 2.5])
def test_3_support_is_where_the_bracket_is_positive(q):
    want = [brute_force_support(z, q, right(q)) for z in np.asarray(Q_ROWS, np.float64)]
    got = np.asarray(paper(Q_ROWS, q) > 0)
    np.testing.assert_array_equal(got, want)
    assert len({row.sum() for row in got}) > 1


def test_3_the_other_reading_of_the_index_gives_another_support():
    z, q = np.array([0.0, -3.3, -3.3, -4.0]), 1.5

    def largest(constants):
        i = np.arange(1, len(z) + 1)
        return i[q / 2 + i * z > np.cumsum(z) + constants(i)].max()

    assert largest(lambda i: i * right(q)) == 1
    assert largest(lambda i: np.cumsum(i) * right(q)) == 4  # the constant inside the sum over j
    close(paper(z, q), [2.25, 0, 0, 0])


def test_3_the_test_may_fail_and_hold_again():
    # i = 2 and 3 fail, i = 4 holds: S is all four, and the sum of the weights 10.27.
    close(paper([0.0, -3.0, -3.0, -3.0], 1.5), [3.1875**2, *[0.1875**2] * 3])


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
    target = jax.jit(get_algorithm(name).target, static_argnums=2)
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
    pi, target = paper(Q, 2.0), jax.jit(get_algorithm("tal").target, static_argnums=2)
    close(target(x, without, policy), 1 + 0.9 * pi @ Q + 0.5 * advantage(x, pi))
    gain = 0.9 * tsallis_entropy(pi, 2.0)
    assert gain > 0.01
    close(target(x, with_it, policy) - target(x, without, policy), gain)


def test_8_without_the_entropy_the_bootstrap_is_no_non_expansion():
    Q = jnp.array([0.99, 0.0, -9.0, -9.0])
    average = jax.jit(jax.grad(lambda Q: tsallis_policy(Q, 2.0, 1.0) @ Q))(Q)
    close(average, [1.49, -0.49, 0, 0])  # sum of the moduli 1.98 > 1
    close(jax.jit(jax.grad(lambda Q: sparsemax_value(Q, 1.0)))(Q), paper(Q, 2.0))


# 9. q <= 0 ---------------------------------------------------------------------------------------


def test_9_the_entropy_is_convex_below_zero_and_concave_above():
    bend = jax.grad(jax.grad(lambda p, q: tsallis_entropy(jnp.stack([p, 1 - p]), q)))
    bends = jax.jit(jax.vmap(bend, (None, 0)))(0.3, jnp.array([-2, -1, 0.5, 1, 2, 3]))
    np.testing.assert_array_equal(np.sign(bends), [1, 1, -1, -1, -1, -1])


def test_9_below_zero_the_entropy_has_no_bound_and_the_exact_policy_is_refused():
    near = jnp.array([1e-2, 1e-4, 1e-6])
    H = tsallis_entropy(jnp.stack([near, 1 - near], -1), -1.0)
    close(H, [25.0025, 2500, 250000], 1e-4)  # (1/p + 1/(1-p) - 1)/4
    with pytest.raises(ValueError, match="no maximising policy"):
        tsallis_policy(Q_ROWS, -1.0)


def test_9_outside_the_support_the_weight_is_zero_and_never_infinite():
    weights = np.asarray(paper(Q_ROWS, -1.0))
    outside = np.stack([~brute_force_support(z, -1.0, right(-1.0)) for z in np.float64(Q_ROWS)])
    assert outside.any()
    assert np.isfinite(weights).all()
    assert (weights[outside] == 0).all()


def test_9_at_the_edge_of_the_support_a_bracket_that_rounds_to_zero_gives_no_infinity():
    close(paper([0.0, -1.0, -9.0, -9.0], -1.0), [2, 0, 0, 0])  # z = psi~ exactly
    second = np.linspace(-0.9, 0, len(Q_ROWS), dtype=np.float32)
    third = (second - np.float32(1.75)) / 2  # where the test of i = 3 turns
    for _ in range(3):
        third = np.nextafter(third, np.float32(1))
        weights = paper(np.stack([0 * third, second, third, third - 9], -1), -1.0)
        assert np.isfinite(weights).all()


def test_9_below_zero_the_worse_action_weighs_more():
    close(paper([0.0, -0.5, -9.0, -9.0], -1.0), [0.75**-0.5, 2, 0, 0])


def test_9_for_acting_nothing_left_means_greedy():
    weights = paper(Q_ROWS, 1.5, method="printed")
    close(normalise(weights, Q_ROWS), greedy(Q_ROWS))


# 10. LunarLander ---------------------------------------------------------------------------------


def test_10_lunar_lander_is_version_three_today():
    assert "LunarLander-v3" in gym.registry
    assert "LunarLander-v2" not in gym.registry


# 11. Smaller ones --------------------------------------------------------------------------------


def test_11_slope_of_the_entropy():
    pi, q, k = softmax(Q_ROWS[0], 1.0), 3.0, 0.5
    got = jax.jit(jax.grad(lambda pi: tsallis_entropy(pi, q, k)))(pi)
    want = -k * q / (q - 1) * pi ** (q - 1)
    close(got - got.mean(), want - want.mean())


def test_11_the_log_policy_of_the_advantage_is_the_new_one():
    hp = make_hparams("mdqn", alpha=0.5)
    old, new = Q_ROWS[0], Q_ROWS[1]
    gap = new - soft_value(new, hp)
    close(hp.alpha * jnp.log(boltzmann(new, hp)), gap)
    assert jnp.abs(hp.alpha * jnp.log(boltzmann(old, hp)) - gap).max() > 0.1


def test_11_the_q_logarithm_gives_the_advantage_back_on_the_support():
    q, alpha, k = 3.0, 1.0, 0.5
    pi = paper(Q_ROWS, q, alpha, method="exact")
    V = jnp.sum(pi * Q_ROWS, -1, keepdims=True)
    term = alpha * k * q * q_log(pi, q)
    gap = jnp.where(pi > 0, term - jnp.sum(pi * term, -1, keepdims=True) - (Q_ROWS - V), 0)
    close(gap, 0)


# 12. What the dropped normalisation does to the dynamic programming ------------------------------

# 30 states of 2 actions wherever `solve` is called: one program. What diverges is at 1e253 then.
ITERATIONS = 2000


def spectrum(mdp, Q, algo, q, beta):
    """Eigenvalues of the target's slope at Q, by the library's own functions."""
    with jax.enable_x64(True):
        hp = make_hparams(algo, q=q, beta=beta, gamma=mdp.gamma)
        matrix = slope(mdp, jnp.asarray(Q), float64(hp), algo=algo)
        return np.sort_complex(np.linalg.eigvals(matrix.reshape(Q.size, Q.size)))


def clear_cut(seed, states=5, actions=3):
    """An MDP, and values so far apart that every support is one action."""
    mdp = garnet(seed, states, actions, 2)
    rng = np.random.default_rng(seed)
    Q = rng.permuted(np.tile(5.0 * np.arange(actions), (states, 1)), axis=1)
    modes = np.linalg.eigvals(mdp.P[np.arange(states), Q.argmax(1)])
    return mdp, Q, modes


@pytest.mark.parametrize("q", [1.5, 3.0])
@pytest.mark.parametrize("beta", [0.9, 0.99])
def test_12_modes_of_tal(q, beta):
    mdp, Q, modes = clear_cut(1)
    c, gamma = weight(q), mdp.gamma
    want = np.concatenate([gamma * c * modes + beta * (1 - c), np.full(10, beta)])
    close(spectrum(mdp, Q, "tal", q, beta), np.sort_complex(want), 1e-6)


@pytest.mark.parametrize(("algo", "beta"), [("tal", 0.0), ("mt-dqn", 0.99)])
def test_12_modes_without_the_advantage(algo, beta):
    mdp, Q, modes = clear_cut(1)
    for q, largest in ((1.5, 2.2275), (3.0, 0.857365)):
        want = np.concatenate([mdp.gamma * weight(q) * modes, np.zeros(10)])
        got = spectrum(mdp, Q, algo, q, beta)
        close(got, np.sort_complex(want), 1e-6)
        close(np.abs(got).max(), largest)


def test_12_below_one_tal_is_stable_on_every_mdp_and_above_it_is_not():
    for seed in range(3):
        mdp, Q, _ = clear_cut(seed)
        assert np.abs(spectrum(mdp, Q, "tal", 3.0, 0.99)).max() < 0.99 + 1e-6
        assert np.abs(spectrum(mdp, Q, "tal", 1.5, 0.99)).max() > 1


def blocks(seconds):
    """Pairs of states whose best action has the eigenvalues 1 and one of `seconds`."""
    n, P = 2 * len(seconds), np.zeros((2 * len(seconds), 2, 2 * len(seconds)))
    for i, second in enumerate(seconds):
        stay = (1 + second) / 2
        P[2 * i : 2 * i + 2, :, 2 * i : 2 * i + 2] = [[[stay, 1 - stay]], [[1 - stay, stay]]]
    r = np.stack([np.arange(n) % 2, np.full(n, -1.0)], -1)  # the second action is worse
    return make_mdp(P, r, 0.99)


def test_12_the_slowest_mixing_that_survives_at_three_halves():
    c, beta, gamma = 2.25, 0.99, 0.99
    close((beta * (c - 1) - 1) / (gamma * c), 0.106622)
    mdp = blocks([0.05, 0.08, 0.10, *np.linspace(0.12, 0.99, 12)])
    v = solve(mdp, "tal", method="paper", q=1.5, beta=beta, iterations=ITERATIONS).Q[:, 0]
    assert np.abs(v[:6]).reshape(3, 2).min() > 1e6
    slow = mdp.P[6:, 0, 6:]
    close(
        v[6:], np.linalg.solve((1 - beta * (1 - c)) * np.eye(24) - gamma * c * slow, mdp.r[6:, 0])
    )


def other_discount(mdp, gamma):
    return make_mdp(mdp.P, mdp.r, gamma)


def test_12_at_q_three_both_solve_another_discount_exactly():
    mdp, beta = chain(30), 0.99
    c, gamma = weight(3.0), mdp.gamma
    numbers = {"method": "paper", "q": 3.0, "iterations": ITERATIONS}
    myopic = solve(mdp, "tal", beta=0.0, **numbers)  # Tsallis-DQN
    close(myopic.Q.max(-1), optimal_value(other_discount(mdp, c * gamma)))
    assert myopic.share < 0.8

    scale = 1 - beta + beta * c
    close(c * gamma / scale, 0.988471)
    tal = solve(mdp, "tal", beta=beta, **numbers)
    close(tal.Q.max(-1), optimal_value(other_discount(mdp, c * gamma / scale)) / scale)
    assert tal.share > 0.9999


def test_12_at_three_halves_tal_needs_slow_mixing():
    mdp = garnet(0, 30, 2)
    lazy = make_mdp(0.7 * np.eye(30)[:, None] + 0.3 * mdp.P, mdp.r, mdp.gamma)
    numbers = {"method": "paper", "q": 1.5, "iterations": ITERATIONS}
    assert solve(lazy, "tal", **numbers).share > 0.999
    assert not np.abs(solve(lazy, "tal", beta=0.0, **numbers).Q).max() < 1e6
    assert not np.abs(solve(mdp, "tal", **numbers).Q).max() < 1e6


def test_12_termination_diverges_in_a_table_but_not_in_smooth_functions():
    n, c, beta, gamma = 100, 2.25, 0.99, 0.99
    P = np.eye(n, k=1)  # a walk of n states to its end: every eigenvalue is 0
    operator = gamma * c * P + beta * (1 - c) * np.eye(n)
    close(np.abs(np.linalg.eigvals(operator)).max(), beta * (c - 1))
    powers = np.polynomial.legendre.legvander(np.linspace(-1, 1, n), 4)
    basis = np.linalg.qr(powers)[0]
    assert np.abs(np.linalg.eigvals(basis.T @ operator @ basis)).max() < 0.95
