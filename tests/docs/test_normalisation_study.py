"""The study of weights that do not sum to one: its ordering, and the theory behind it."""

import functools

import numpy as np
import pytest

import normalisation as study
from tsallax.tabular import MDP, corridor, garnet, optimal_value, solve

SEEDS = range(2)


@functools.cache
def shares(method, beta, q) -> list[float]:
    return [study.run(corridor(seed), method, beta, q).share for seed in SEEDS]


def paper_solution(mdp, q, beta):
    """With the study's own number of iterations: one compiled program serves both."""
    return solve(mdp, "tal", method="paper", q=q, beta=beta, iterations=study.ITERATIONS)


# Over 20 corridors the shares at beta = 0 lie in [0.50, 0.85], at beta = 0.99 in [0.999, 1].
@pytest.mark.parametrize("q", [2.5, 3.0, 4.0])
def test_the_papers_policy_is_short_sighted_at_beta_zero_only(q):
    assert max(shares("paper", 0.0, q)) < 0.9
    assert min(shares("paper", 0.99, q)) > 0.99


@pytest.mark.parametrize("beta", [0.0, 0.99])
@pytest.mark.parametrize("q", [1.5, 2.5, 3.0, 4.0])
@pytest.mark.parametrize("method", ["paper-normalised", "exact"])
def test_a_policy_that_sums_to_one_is_near_optimal(method, q, beta):
    assert min(shares(method, beta, q)) > 0.99


def test_on_garnets_the_horizon_hardly_matters():
    assert min(study.run(garnet(seed), "paper", 0.0, 3.0).share for seed in SEEDS) > 0.98


def test_by_its_weights_the_papers_policy_earns_next_to_nothing_at_either_beta():
    """The return shrinks to about c (1 - gamma)/(1 - c gamma) = 0.06 on a Garnet."""
    c = study.lone_weight(3.0)
    expected = c * (1 - study.GAMMA) / (1 - c * study.GAMMA)
    for beta in (0.0, 0.99):
        assert study.run(garnet(0), "paper", beta, 3.0).weighed == pytest.approx(expected, rel=0.1)


def test_at_q_3_halves_beta_zero_diverges_at_the_rate_c_gamma():
    mdp = corridor(0)
    assert study.run(mdp, "paper", 0.0, 1.5).diverged
    rate = study.lone_weight(1.5) * study.GAMMA
    growth = np.abs(paper_solution(mdp, 1.5, 0.0).Q).max() ** (1 / study.ITERATIONS)
    assert growth == pytest.approx(rate, rel=0.005)  # a factor of 12 over the 500 iterations


def test_at_q_3_halves_tal_is_stable_only_where_the_states_change_slowly():
    """Each mode of P_pi with eigenvalue x is multiplied by gamma c x + beta (1 - c)."""
    assert study.run(garnet(0), "paper", 0.99, 1.5).diverged  # eigenvalues down to about -0.6
    slow = study.run(corridor(0), "paper", 0.99, 1.5)  # none below 0.2: a move has pace 0.4
    assert not slow.diverged
    assert slow.share > 0.99


@pytest.mark.parametrize("q", [3.0, 4.0])
def test_beta_zero_is_value_iteration_with_the_discount_c_gamma(q):
    """For q >= 3 the paper's support is a single action, so this is exact."""
    mdp = corridor(0)
    V = paper_solution(mdp, q, 0.0).Q.max(-1)
    short = MDP(mdp.P, mdp.r, mdp.gamma * study.lone_weight(q))
    np.testing.assert_allclose(V, optimal_value(short), rtol=1e-9)


def test_beta_near_one_gives_the_discount_back():
    """`V = r + gamma c P V + beta (1-c) V`: the discount is gamma c/(1 - beta (1-c)), 0.9885."""
    mdp, c, beta = corridor(1), study.lone_weight(3.0), 0.99
    scale = 1 - beta * (1 - c)
    long = MDP(mdp.P, mdp.r / scale, mdp.gamma * c / scale)
    V = paper_solution(mdp, 3.0, beta).Q.max(-1)
    best = optimal_value(long)
    left = (mdp.gamma * c + beta * (1 - c)) ** study.ITERATIONS  # 0.99^500 = 0.0066
    np.testing.assert_allclose(V, best, rtol=0, atol=1.001 * left * best.max())


def test_a_corridor_is_local_slow_and_pays_at_its_end():
    mdp = corridor(3, states=7, actions=2, pace=0.25, near=0.1)
    far = np.abs(np.subtract.outer(np.arange(7), np.arange(7))) > 1
    assert not mdp.P.swapaxes(1, 2)[far].any()
    assert (np.einsum("sas->sa", mdp.P) >= 0.75).all()
    assert (mdp.r[-1] == 1).all()
    assert (mdp.r[:-1] < 0.1).all()


@pytest.mark.parametrize("pace", [0.0, 1.5])
def test_a_corridor_must_move(pace):
    with pytest.raises(ValueError, match="pace"):
        corridor(0, pace=pace)
