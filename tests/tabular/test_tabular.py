"""The theory, in float64, through the deep agents' own values and bonuses."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import tabular
from tsallax.experiments import identities
from tsallax.operators import ALGORITHMS, get_algorithm, make_hparams
from tsallax.policies import kl_divergence, make_policy, softmax
from tsallax.types import HParams

EXACT = make_policy("exact")


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@partial(jax.jit, static_argnames=("algorithm", "m"))
def _apply(mdp, Q, hp, algorithm, m):
    return tabular.iterate(mdp, Q, get_algorithm(algorithm), hp, EXACT, jax.random.key(0), m)


def apply(mdp, Q, algorithm, m=1, **numbers):
    """One iteration of an algorithm: `T^m Q + bonus`; one program for all numbers."""
    hp = make_hparams(algorithm, gamma=mdp.gamma, **numbers)
    return _apply(mdp, Q, HParams(*(jnp.asarray(x, jnp.float64) for x in hp)), algorithm, m)


MDPS = [tabular.garnet(0, 7, 3, 2, 0.9), tabular.gridworld(gamma=0.8)]


@pytest.mark.parametrize("mdp", MDPS)
def test_c13_cvi_rewrites_into_munchausen(mdp):
    """With W the log-sum-exp they are one recursion; mellowmax shifts it by a known constant.

    If Psi_k = Q_k - c_k then Psi_{k+1} = Q_{k+1} - gamma (c_k + alpha ln A) + beta alpha ln A.
    """
    alpha, beta = 0.3, 0.7
    log_actions = alpha * np.log(mdp.r.shape[1])
    c = 0.0
    pairs = zip(
        identities.sequence(mdp, "cvi-mellowmax", alpha=alpha, beta=beta),
        identities.sequence(mdp, "mdqn", alpha=alpha, beta=beta, clip=-jnp.inf),
        strict=True,
    )
    for Psi, Q in pairs:
        np.testing.assert_allclose(Psi + c, Q, atol=1e-10)
        np.testing.assert_allclose(softmax(Psi, alpha), softmax(Q, alpha), atol=1e-10)
        c = mdp.gamma * (c + log_actions) - beta * log_actions


@pytest.mark.parametrize("mdp", MDPS)
def test_cvi_maximises_entropy_and_kl_at_once(mdp):
    """pi_{k+1} of CVI is the maximiser of <pi, Q> + tau H - sigma KL(pi || pi_k), eq. 21."""
    sigma, tau = 0.2, 0.1
    numbers = {"alpha": sigma + tau, "beta": sigma / (sigma + tau)}
    Psi = identities.sequence(mdp, "cvi-mellowmax", **numbers)
    pi = softmax(Psi[2], sigma + tau)
    Q = Psi[3] - sigma * jnp.log(pi)
    new = softmax(Psi[3], sigma + tau)
    closed = jax.nn.softmax((Q + sigma * jnp.log(pi)) / (sigma + tau), -1)
    np.testing.assert_allclose(new, closed, atol=1e-10)

    @jax.jit
    def objective(p):
        return jnp.sum(p * (Q - tau * jnp.log(p)), -1) - sigma * kl_divergence(p, pi)

    for rival in np.random.default_rng(0).dirichlet(np.ones(Q.shape[1]), (500, Q.shape[0])):
        assert (objective(rival) <= objective(new) + 1e-12).all()


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0, 3.0, 10.0, np.inf])
def test_tsallis_operators_contract_by_gamma(q):
    """The regularised operator, entropy included, is a gamma-contraction in the max norm."""
    mdp = MDPS[0]
    step = partial(apply, mdp, algorithm="tsallis-dqn", q=q, alpha=0.3, entropy=1.0)
    for key in jax.random.split(jax.random.key(1), 20):
        one, two = jax.random.normal(key, (2, *mdp.r.shape)) * 3
        before, after = (jnp.max(jnp.abs(x)) for x in (one - two, step(one) - step(two)))
        assert after <= mdp.gamma * before + 1e-12


@pytest.mark.parametrize("algorithm", ["al", "pal", "pal-atari", "tal"])
def test_advantage_learning_keeps_the_optimal_action_and_widens_the_gap(algorithm):
    for seed in range(5):
        mdp = tabular.garnet(seed, 10, 3, 2, 0.9)
        numbers = {"beta": 0.5, "alpha": 1e-3, "iterations": 500}
        plain = tabular.solve(mdp, "dqn", **numbers)
        found = tabular.solve(mdp, algorithm, **numbers)
        np.testing.assert_array_equal(found.Q.argmax(-1), plain.Q.argmax(-1))
        assert found.action_gap[-1] > plain.action_gap[-1]
        assert found.errors[-1] < 1e-10


@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(name, marks=[] if name in ("mt-dqn", "sal", "tal-v") else pytest.mark.slow)
        for name in ALGORITHMS
    ],
)
def test_every_algorithm_solves_a_small_problem(algorithm):
    """Near-optimal for a small alpha; max norm, so one bad state would show."""
    mdp = tabular.garnet(3, 8, 3, 2, 0.9)
    found = tabular.solve(mdp, algorithm, alpha=1e-3, beta=0.5, iterations=300)
    assert found.errors[-1] < 0.02
    assert found.share > 0.999
    np.testing.assert_allclose(found.pi.sum(-1), 1, atol=1e-12)


def test_m_applications_golden():
    """m = 2 by two plain backups with the policy held fixed; m = inf by its fixed point."""
    mdp = MDPS[0]
    Q = jax.random.normal(jax.random.key(0), mdp.r.shape)
    pi = jax.vmap(EXACT, (0, None))(Q, HParams(q=2.0, alpha=jnp.asarray(0.3)))

    def backup(Y):
        return mdp.r + mdp.gamma * jnp.einsum("sat,t->sa", mdp.P, jnp.sum(pi * Y, -1))

    bonus = 0.7 * (Q - jnp.sum(pi * Q, -1, keepdims=True))
    once, twice, often, limit = (
        apply(mdp, Q, "tal", m, q=2.0, alpha=0.3, beta=0.7) - bonus for m in (1, 2, 400, np.inf)
    )
    np.testing.assert_allclose(once, backup(Q), atol=1e-12)
    np.testing.assert_allclose(twice, backup(backup(Q)), atol=1e-12)
    np.testing.assert_allclose(limit, backup(limit), atol=1e-10)
    np.testing.assert_allclose(often, limit, atol=1e-10)


def test_policy_iteration_needs_few_iterations():
    """Value iteration has not yet brought the reward from one end of the chain to the other."""
    mdp = tabular.chain(20, gamma=0.95)
    few = tabular.solve(mdp, "dqn", m=np.inf, iterations=10)
    assert few.errors[-1] < 1e-8 < tabular.solve(mdp, "dqn", iterations=10).errors[-1]


def test_chain_golden():
    """Two states, no slip, gamma 1/2: V*(right) = 1/(1 - 1/2) = 2, V*(left) = 0 + 1/2 * 2 = 1."""
    mdp = tabular.chain(2, slip=0.0, gamma=0.5)
    np.testing.assert_allclose(tabular.optimal_value(mdp), [1, 2], atol=1e-12)
    found = tabular.solve(mdp, "dqn", iterations=60)
    np.testing.assert_allclose(found.Q, [[0.1 + 0.5, 1], [0.5, 2]], atol=1e-12)
    np.testing.assert_allclose(found.action_gap[-1], (0.4 + 1.5) / 2, atol=1e-12)


def test_gridworld_shape_and_goal():
    """The cell beside the goal: one step away, so V* = gamma * 1 without slip."""
    mdp = tabular.gridworld(["..G"], slip=0.0, gamma=0.5)
    np.testing.assert_allclose(tabular.optimal_value(mdp), [0.25, 0.5, 1, 0], atol=1e-12)


def test_noise_is_the_same_for_all_and_moves_with_the_seed():
    mdp = MDPS[0]
    runs = [tabular.solve(mdp, "dqn", iterations=5, noise=0.1, seed=s).Q for s in (0, 0, 1)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.abs(runs[0] - runs[2]).max() > 1e-3
    clean = tabular.solve(mdp, "dqn", iterations=1).Q
    one, two = (tabular.solve(mdp, a, iterations=1, noise=0.1).Q for a in ("dqn", "tal"))
    np.testing.assert_allclose(one - clean, two - clean, atol=1e-12)


P, R = MDPS[0].P, MDPS[0].r


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((P[:, :, :-1], R, 0.9), r"P must have the shape \(S, A, S\)"),
        ((P, R[:-1], 0.9), r"r must have the shape \(S, A\) = \(7, 3\)"),
        ((P * 1.01, R, 0.9), r"sum to one; P\[\d+, \d+\] sums to 1.01"),
        ((P - 2 * P, R, 0.9), "negative"),
        ((P * np.nan, R, 0.9), "finite"),
        ((P, R * np.inf, 0.9), "finite"),
        ((P, R, 1.0), r"gamma must be in \[0, 1\)"),
    ],
)
def test_bad_mdps_are_refused(arguments, message):
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
        tabular.make_mdp(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0}, "m must be a whole number"),
        ({"m": 1.5}, "m must be a whole number"),
        ({"iterations": 0}, "at least 1"),
        ({"noise": -1.0}, "not negative"),
        ({"algo": "tall"}, "did you mean 'tal'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tabular.solve(MDPS[0], **options)
