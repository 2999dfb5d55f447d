"""The policy explorer's numbers are Python's: its JavaScript in a real browser, in float64."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.browser import needs_browser, opened
from tsallax.policies import softmax, sparsemax, tsallis_entropy, tsallis_policy
from tsallax.report.explorer import explorer_page
from tsallax.tabular import chain, solve

INDICES = (-1.0, 0.5, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 10.0, 1000.0, float("inf"))
ALPHAS = (0.003, 0.03, 0.3, 1.0, 10.0)
ITERATIONS = 200

close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-6)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer_page(), encoding="utf-8")
    with opened(path) as page:
        yield page


def grid(actions):
    """Action values of five kinds, each with every q and alpha.

    At random; with two best ones; all equal; far apart; and all but the best so near the edge of
    the support that for q > 2 a solver for psi would be off by 0.01.
    """
    rng = np.random.default_rng(actions)
    Q = rng.normal(size=actions)
    tie = np.where(np.arange(actions) < 2, Q.max(), Q)
    kinds = (Q, tie, np.full(actions, 0.7), 200 * rng.normal(size=actions), None)
    for Q, q, alpha in itertools.product(kinds, INDICES, ALPHAS):
        edge = alpha * (0.5 if q in (1, np.inf) else 0.5 * q / (q - 1))
        near = np.where(np.arange(actions) > 0, -edge * (1 - 1e-10), 0)
        yield {"Q": (near if Q is None else Q).tolist(), "q": q, "alpha": alpha}


@jax.jit
@jax.vmap
def expected(Q, q, alpha):
    """Of each policy by its name: pi, and `<pi,Q> + alpha H_q(pi)`."""
    k = jnp.where(q == 1, 1.0, 0.5)
    policies = {
        "exact": tsallis_policy(Q, q, alpha, k),
        "softmax": softmax(Q, alpha),
        "sparsemax": sparsemax(Q / alpha),
        "paper": tsallis_policy(Q, q, alpha, k, "paper"),
        "paper-normalised": tsallis_policy(Q, q, alpha, k, "paper-normalised"),
    }
    entropy = functools.partial(tsallis_entropy, q=q, k=k)
    return {name: (pi, jnp.dot(pi, Q) + alpha * entropy(pi)) for name, pi in policies.items()}


def expected_psi(name, pi, Q, q, alpha):
    """By the equation on the card, from Python's own policy at its best action; NaN is none."""
    z, best = Q.max(-1) / alpha, pi[np.arange(len(Q)), Q.argmax(-1)]
    q = {"softmax": np.ones_like(q), "sparsemax": np.full_like(q, 2)}.get(name, q)
    factor = q / 2 / (q - 1) if name == "exact" else 1
    regular = ~np.isin(q, (1, np.inf)) & (best > 0)
    psi = z - np.where(regular, factor * best ** (q - 1), np.nan)
    return np.where(q == 1, z - np.log(best), psi)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("actions", range(2, 9))
def test_policies_are_those_of_python(page, actions):
    given = list(grid(actions))
    Q, q, alpha = (np.array([case[key] for case in given]) for key in ("Q", "q", "alpha"))
    with jax.enable_x64(True):
        wanted = jax.tree.map(np.asarray, expected(*map(jnp.asarray, (Q, q, alpha))))
    for name, (pi, value) in wanted.items():
        found = page.evaluate(
            "([name, given]) => given.map(x => described(name, x))", [name, given]
        )
        there = np.array([answer is not None for answer in found])
        assert (there == ((q > 0) | (name != "exact"))).all()
        column = {key: np.array([x[key] for x in found if x], float) for key in found[-1]}
        pi, value = pi[there], value[there]
        close(column["pi"], pi, err_msg=name)
        close(column["total"], pi.sum(-1), err_msg=name)
        tame = (q[there] > 0) | (np.where(pi > 0, pi, 1).min(-1) > 1e-100)  # else pi^q overflows
        close(column["value"][tame], value[tame], err_msg=name)
        source = wanted["paper"][0] if name == "paper-normalised" else pi
        with np.errstate(all="ignore"):
            psi = expected_psi(name, source, Q[there], q[there], alpha[there])
        close(column["psi"], psi, err_msg=name)
        none = np.zeros(len(q), bool)
        full = {"softmax": ~none, "sparsemax": none, "exact": q <= 1}.get(name, q == 1)
        inside = (pi > 0) | full[there, None]  # pi may underflow
        assert (column["support"] == inside)[(pi == 0) | (pi > 1e-12)].all(), name


# Growing without end at beta = 1; a policy that is all but uniform; hard ones.
NUMBERS = (
    {"q": 0.5, "alpha": 0.1, "beta": 0.9, "gamma": 0.9},
    {"q": 1.0, "alpha": 5.0, "beta": 0.95, "gamma": 0.95},
    {"q": 1.2, "alpha": 0.3, "beta": 0.99, "gamma": 0.99},
    {"q": 1.5, "alpha": 0.003, "beta": 0.5, "gamma": 0.0},
    {"q": 2.0, "alpha": 5.0, "beta": 0.95, "gamma": 0.95},
    {"q": 2.0, "alpha": 10.0, "beta": 0.0, "gamma": 0.99},
    {"q": 2.5, "alpha": 1.0, "beta": 1.0, "gamma": 0.9},
    {"q": 3.0, "alpha": 0.03, "beta": 0.99, "gamma": 0.99},
    {"q": 10.0, "alpha": 2.0, "beta": 0.7, "gamma": 0.8},
    {"q": float("inf"), "alpha": 1.0, "beta": 0.9, "gamma": 0.95},
)


@pytest.mark.slow
@needs_browser
def test_the_chain_is_that_of_python(page):
    P, r, _ = chain(6)
    assert page.evaluate("MDP.P") == P.tolist()
    assert page.evaluate("MDP.r") == r.tolist()
    solved = page.evaluate(
        """given => given.map(x => {
            Object.assign(numbers, x);
            solveChain();
            return { ...runs.own.at(-1), gaps: runs.own.map(found => found.gap) };
        })""",
        list(NUMBERS),
    )
    for given, found in zip(NUMBERS, solved, strict=True):
        numbers = dict(given)
        mdp = chain(6, gamma=numbers.pop("gamma"))
        wanted = solve(mdp, "tal", iterations=ITERATIONS, **numbers)
        told = str(given)
        close(found["gaps"], wanted.action_gap, err_msg=told)
        for key, value in (("Q", wanted.Q), ("pi", wanted.pi), ("V", wanted.V)):
            close(found[key], value, err_msg=told)
        close(found["best"], wanted.optimum, err_msg=told)
        close(found["share"], wanted.share, err_msg=told)
