"""Targets by hand, reductions between algorithms, contracts over the table, losses."""

import functools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.golden_targets import (
    GOLDEN,
    LSE,
    LSE_NEXT,
    NUMBERS,
    X,
    check_reduction,
    ln,
    target,
)
from tsallax.operators import (
    ALGORITHMS,
    equation_of,
    get_algorithm,
    huber,
    list_reductions,
    make_hparams,
    one_step,
    quantile_huber,
    squared,
    targets,
)
from tsallax.operators.reductions import parse_reduction
from tsallax.operators.targets import beta_draw
from tsallax.policies import METHODS, make_policy
from tsallax.types import Bootstrap, HParams

EXACT = make_policy("exact")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_golden(algorithm):
    np.testing.assert_allclose(target(algorithm), GOLDEN[algorithm], rtol=1e-6)


def test_golden_options():
    """The entropy bonus, both weights of the log-policy, the clip."""
    np.testing.assert_allclose(target("tsallis-dqn", entropy=1.0), 0.1 + 0.9 * 2.16, rtol=1e-6)
    np.testing.assert_allclose(target("tal", entropy=1.0), GOLDEN["tal"] + 0.9 * 0.24, rtol=1e-6)
    half = {"q": 2.0, "alpha": 0.5}  # sparsemax(2, 1, 0) = (1, 0, 0) at s
    base = target("tsallis-dqn", **half)
    weighted, bare = target("mt-dqn", **half), target("mt-dqn", **half, log_weight=1.0)
    np.testing.assert_allclose(weighted - base, 0.8 * 0.5 * ln(1e-8), rtol=1e-5)
    np.testing.assert_allclose(bare - base, 0.8 * ln(1e-8), rtol=1e-5)
    np.testing.assert_allclose(target("mt-dqn", **half, clip=-1.0) - base, -0.8, rtol=1e-5)
    unclipped = 0.1 + 0.9 * LSE_NEXT + 0.8 * (0.5 - LSE)
    np.testing.assert_allclose(target("mdqn", clip=-np.inf), unclipped, rtol=1e-6)
    shannon = target("tal", q=1.0, entropy=1.0)
    np.testing.assert_allclose(target("mvi", q=1.0), shannon, rtol=1e-6)
    np.testing.assert_allclose(target("clipped-al", clip_ratio=0.5), GOLDEN["al"], rtol=1e-6)
    floor = {"clip_ratio": 0.8, "value_floor": -1.6}  # 0.5 + 1.6 = 2.1 against 0.8 x 2.6 = 2.08
    np.testing.assert_allclose(target("clipped-al", **floor), GOLDEN["al"], rtol=1e-6)


REDUCTIONS = [
    *list_reductions(),
    parse_reduction("tal", "al at q = 1e6, alpha = 1e-9"),
    parse_reduction("mt-dqn", "mdqn at q = 1, entropy = 1, delta = 0, clip = -0.5"),
]


@pytest.mark.parametrize("edge", REDUCTIONS, ids=lambda edge: f"{edge.one} at {edge.at}")
def test_reductions(edge, monkeypatch):
    check_reduction(edge, monkeypatch)


def test_a_reduction_that_is_not_so_is_seen(monkeypatch):
    with pytest.raises(AssertionError):
        check_reduction(parse_reduction("tal", "al at q = 2"), monkeypatch)
    with pytest.raises(AssertionError):  # nothing is said: they are the same at any numbers
        check_reduction(parse_reduction("tal", "tal at q = 2"), monkeypatch)
    for text in ("al", "al at q", "al at q = 1 or 2"):
        with pytest.raises(ValueError, match="a reduction reads"):
            parse_reduction("tal", text)


def test_equations_are_those_of_the_terms():
    def own(x, hp, policy):
        """What it does, `beta x`, and `more`."""

    row = get_algorithm("tal")._replace(bonus=own)
    assert row.equation == "r + gamma <pi',Q'> + beta x"
    assert get_algorithm("dqn").equation == "r + gamma max Q'"
    own.__doc__ = None
    assert equation_of(own) == "own"


def test_rows_are_static_arguments():
    """A row that differs in one function is another program, also under the same name."""
    row = get_algorithm("tal")
    assert hash(row) == hash(row._replace())
    assert row == row._replace()
    assert row != row._replace(bonus=targets.no_bonus)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_beta_zero_leaves_no_bonus(algorithm):
    for a in range(3):
        hp = make_hparams(algorithm, **{**NUMBERS, "beta": 0.0})
        assert get_algorithm(algorithm).bonus(X._replace(a=jnp.asarray(a)), hp, EXACT) == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_values_take_the_policy_from_the_action_values(algorithm):
    """Averages of Z are affine in Z where Q stays: what the tabular `T^m` relies on."""
    hp = make_hparams(algorithm, **NUMBERS, entropy=1.0)
    value = jax.jit(lambda Q, Z: get_algorithm(algorithm).value(Q, Z, hp, EXACT))
    Y = jnp.array([-1.0, 4.0, 2.5])
    mixed = value(X.Q, 0.25 * Y + 0.75 * X.Z)
    np.testing.assert_allclose(mixed, 0.25 * value(X.Q, Y) + 0.75 * value(X.Q, X.Z), rtol=1e-5)
    assert not np.isclose(value(X.Q, Y), value(Y, Y))  # the policy of Q is not that of Y


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_termination_bootstraps_nothing(algorithm):
    dead = X._replace(discount=jnp.asarray(0.0))
    other = dead._replace(Z=jnp.array([-5.0, 100.0, 3.0]))
    np.testing.assert_array_equal(target(algorithm, dead), target(algorithm, other))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_quantiles_average_to_the_scalar_target(algorithm):
    spread = jnp.array([[-1.0, 0.25, 0.75], [-2.0, 0.5, 1.5], [0.0, 1.0, -1.0]])
    quantiles = target(algorithm, X._replace(Z=X.Z[:, None] + spread))
    assert quantiles.shape == (3,)
    np.testing.assert_allclose(quantiles.mean(), target(algorithm), rtol=1e-5)


@functools.cache
def together_and_apart() -> tuple[dict, list[dict], Counter]:
    """The targets of all algorithms under vmap and in a loop, and how often each was traced.

    Over transitions and hyper-parameters at once, every number traced. All algorithms are one
    program: compiling is what costs.
    """
    n, traces = 4, Counter()
    keys = jax.random.split(jax.random.key(0), n)
    Q, Z = jax.random.normal(jax.random.key(1), (2, n, 3))
    x = Bootstrap(Q, jnp.arange(n) % 3, jnp.ones(n), jnp.linspace(0, 1, n), Z, keys)
    q = jnp.array([0.5, 1.0, 2.0, 3.0])
    rows = {name: make_hparams(name, q=q, alpha=jnp.linspace(0.1, 1, n)) for name in ALGORITHMS}
    hps = {
        name: HParams(*(np.broadcast_to(field, (n,)) for field in hp)) for name, hp in rows.items()
    }

    def one(name, x, hp):
        traces[name] += 1
        return one_step(ALGORITHMS[name])(x, hp, EXACT)

    def every(x, hps):
        return {name: one(name, x, hp) for name, hp in hps.items()}

    together, single = jax.jit(jax.vmap(every))(x, hps), jax.jit(every)
    apart = [single(*jax.tree.map(lambda leaf: leaf[i], (x, hps))) for i in range(n)]  # noqa: B023
    return together, apart, traces


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_vmap_equals_a_loop_and_one_trace_serves_all(algorithm):
    together, apart, traces = together_and_apart()
    loop = np.stack([one[algorithm] for one in apart])
    np.testing.assert_allclose(together[algorithm], loop, rtol=1e-5, atol=1e-6)
    assert traces[algorithm] == 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("algorithm", ["tal", "mt-dqn", "mt-dqn-qlog", "tsallis-dqn"])
def test_contract_finite_for_every_q_and_method(algorithm, method):
    for q in (-1.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf):
        if q > 0 or method not in ("exact", "linear"):
            assert jnp.isfinite(target(algorithm, method=method, q=q, entropy=1.0))


def test_sal_laws():
    """Beta(a, b) as an order statistic: mean a/(a+b) and variance ab/((a+b)^2 (a+b+1))."""
    keys = jax.random.split(jax.random.key(0), 20_000)
    for b, mean, variance in [(7, 1, 7 / 405), (9, 95 / 99, 18 / (121 * 12))]:
        draws = np.asarray(jax.vmap(lambda key: beta_draw(key, 2, b))(keys)) + 7 / 9  # noqa: B023
        assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / 20_000)
        assert abs(draws.var() / variance - 1) < 0.05
    one, two = (target("sal", X._replace(key=key)) for key in keys[:2])
    assert one != two


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="unknown algorithm 'tall'; did you mean 'tal'"):
        get_algorithm("tall")
    with pytest.raises(ValueError, match=r"unknown numbers \['alhpa'\]; there are q, alpha"):
        make_hparams("tal", alhpa=1.0)


def test_numbers_that_follow_from_others():
    """k is 1/2, but Shannon's 1 at q = 1; the log-policy weighs alpha."""
    assert make_hparams("tal").k == 0.5
    assert make_hparams("mdqn").k == 1
    np.testing.assert_array_equal(make_hparams("tal", q=jnp.array([1.0, 2.0])).k, [1, 0.5])
    assert make_hparams("tal", alpha=0.7).log_weight == 0.7
    assert make_hparams("tal", q=1.0, k=0.5, log_weight=1.0)[4:7:2] == (0.5, 1.0)


def test_losses_golden():
    """huber(1/2) = 1/8, huber(3) = 5/2; quantile levels 1/4 and 3/4.

    theta = (0, 1), target = (2, -1): u = ((2, -1), (1, -2)), huber(u) = ((1.5, .5), (.5, 1.5)),
    weights ((1/4, 3/4), (3/4, 1/4)): sum of row means = (.375+.375)/2 + (.375+.375)/2 = 0.75.
    """
    assert squared(jnp.asarray(-3.0)) == 9
    np.testing.assert_allclose(huber(jnp.array([-0.5, 3.0])), [1 / 8, 5 / 2])
    np.testing.assert_allclose(huber(jnp.asarray(3.0), 2.0), 4.0)
    loss = quantile_huber(jnp.array([0.0, 1.0]), jnp.array([2.0, -1.0]))
    np.testing.assert_allclose(loss, 0.75)
