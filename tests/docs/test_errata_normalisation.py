"""Section 12 of docs/errata.md: what the dropped normalisation does to dynamic programming."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.errata import close, float64, slope, weight
from tsallax.operators import make_hparams
from tsallax.tabular import chain, garnet, make_mdp, optimal_value, solve

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
