"""Targets by hand, reductions between algorithms, contracts over the table, losses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.operators import (
    ALGORITHMS,
    get_algorithm,
    huber,
    make_hparams,
    quantile_huber,
    squared,
)
from tsallax.operators.targets import beta_draw
from tsallax.policies import METHODS, make_policy
from tsallax.types import Bootstrap, HParams

EXACT = make_policy("exact")
ln = np.log

# One transition, small enough to do by hand. With alpha = 1 and q = 2 the policies are
# sparsemax(1, 1/2, 0) = (3/4, 1/4, 0) at s and sparsemax(2, 1.8, 0) = (0.6, 0.4, 0) at s'.
# <pi,Q> = 7/8, <pi',Q'> = 1.92, H_2(pi) = (1 - 10/16)/2 = 3/16, H_2(pi') = (1 - 0.52)/2 = 0.24.
X = Bootstrap(
    Q=jnp.array([1.0, 0.5, 0.0]),
    a=jnp.asarray(1),
    r=jnp.asarray(0.1),
    discount=jnp.asarray(0.9),
    Z=jnp.array([2.0, 1.8, 0.0]),
    key=jax.random.key(3),
)
NUMBERS = {"q": 2.0, "alpha": 1.0, "beta": 0.8, "gamma": 0.9}
LSE, LSE_NEXT = ln(np.e + np.e**0.5 + 1), ln(np.e**2 + np.e**1.8 + 1)
SOFT, SOFT_NEXT = (
    np.exp(v - np.logaddexp.reduce(v)) for v in (np.array([1, 0.5, 0]), np.array([2, 1.8, 0]))
)
DRAW = float(beta_draw(jax.random.key(3), 2, 7))
DRAW_PRINTED = float(beta_draw(jax.random.key(3), 2, 9))

GOLDEN = {
    "dqn": 0.1 + 0.9 * 2,
    "soft-dqn": 0.1 + 0.9 * LSE_NEXT,
    "tsallis-dqn": 0.1 + 0.9 * 1.92,
    "al": 0.1 + 0.9 * 2 + 0.8 * (0.5 - 1),
    "pal": 0.1 + 0.9 * 2 + max(0.8 * (0.5 - 1), 0.9 * (1.8 - 2)),
    "pal-atari": 0.1 + 0.9 * 2 + 0.8 * max(0.5 - 1, 1.8 - 2),
    "sal": 0.1 + 0.9 * 2 + 0.8 * (DRAW + 7 / 9) * (0.5 - 1),
    "sal-printed": 0.1 + 0.9 * 2 + 0.8 * (DRAW_PRINTED + 7 / 9) * (0.5 - 1),
    "mdqn": 0.1 + 0.9 * LSE_NEXT + 0.8 * max(0.5 - LSE, -1.0),
    "mt-dqn": 0.1 + 0.9 * 1.92 + 0.8 * ln(0.25 + 1e-8),
    "mt-dqn-qlog": 0.1 + 0.9 * 1.92 + 0.8 * (0.25 - 1),
    "cvi": 0.1 + 0.9 * SOFT_NEXT @ [2, 1.8, 0] + 0.8 * (0.5 - SOFT @ [1, 0.5, 0]),
    "cvi-mellowmax": 0.1 + 0.9 * (LSE_NEXT - ln(3)) + 0.8 * (0.5 - LSE + ln(3)),
    "tal": 0.1 + 0.9 * 1.92 + 0.8 * (0.5 - 0.875),
    "tal-v": 0.1 + 0.9 * 1.92 + 0.8 * (0.5 - 0.875 - 3 / 16),
}


def target(algorithm: str, x: Bootstrap = X, method="exact", **numbers):
    hp = make_hparams(algorithm, **{**NUMBERS, **numbers})
    return get_algorithm(algorithm).target(x, hp, make_policy(method))


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


REDUCTIONS = [
    # (algorithm, numbers) is (algorithm, numbers)
    ("tal", {"beta": 0.0}, "tsallis-dqn", {}),
    ("tal", {"q": np.inf}, "al", {}),
    ("tal", {"q": 1.0}, "cvi", {}),
    ("tal", {"q": 1e6, "alpha": 1e-9}, "al", {}),
    ("tal-v", {"q": 1.0, "entropy": 1.0}, "mdqn", {"clip": -np.inf}),
    ("mt-dqn", {"q": 1.0, "entropy": 1.0, "delta": 0.0}, "mdqn", {"clip": -np.inf}),
    ("mt-dqn", {"q": 1.0, "entropy": 1.0, "delta": 0.0, "clip": -0.5}, "mdqn", {"clip": -0.5}),
    ("mt-dqn-qlog", {"q": 1.0}, "mt-dqn", {"q": 1.0}),
    ("tsallis-dqn", {"q": 1.0, "entropy": 1.0}, "soft-dqn", {}),
    ("tsallis-dqn", {"q": np.inf}, "dqn", {}),
    ("soft-dqn", {"alpha": 1e-6}, "dqn", {}),
    ("pal-atari", {"beta": 0.0}, "dqn", {}),
]


@pytest.mark.parametrize(("one", "numbers", "other", "others"), REDUCTIONS)
def test_reductions(one, numbers, other, others):
    np.testing.assert_allclose(target(one, **numbers), target(other, **others), rtol=1e-5)


BASE = {
    "mdqn": "soft-dqn", "mt-dqn": "tsallis-dqn", "mt-dqn-qlog": "tsallis-dqn",
    "tal": "tsallis-dqn", "tal-v": "tsallis-dqn",
}  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_beta_zero_leaves_no_bonus(algorithm):
    """What iteration with m > 1 relies on; CVI's own values have no other algorithm to name."""
    if algorithm.startswith("cvi"):
        moved = X._replace(a=jnp.asarray(2))  # without a bonus the action at s does not matter
        np.testing.assert_allclose(target(algorithm, beta=0.0), target(algorithm, moved, beta=0.0))
    else:
        expected = target(BASE.get(algorithm, "dqn" if algorithm[-3:] != "dqn" else algorithm))
        np.testing.assert_allclose(target(algorithm, beta=0.0), expected, rtol=1e-6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_termination_bootstraps_nothing(algorithm):
    dead = X._replace(discount=jnp.asarray(0.0))
    other = dead._replace(Z=jnp.array([-5.0, 100.0, 3.0]))
    if algorithm != "pal-atari":  # its bonus looks at s' even there
        np.testing.assert_array_equal(target(algorithm, dead), target(algorithm, other))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_quantiles_average_to_the_scalar_target(algorithm):
    spread = jnp.array([[-1.0, 0.25, 0.75], [-2.0, 0.5, 1.5], [0.0, 1.0, -1.0]])
    quantiles = target(algorithm, X._replace(Z=X.Z[:, None] + spread))
    assert quantiles.shape == (3,)
    np.testing.assert_allclose(quantiles.mean(), target(algorithm), rtol=1e-5)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_contract_vmap_equals_a_loop_and_one_trace_serves_all(algorithm):
    """Over transitions and hyper-parameters at once, every number traced."""
    n, traces = 4, []
    keys = jax.random.split(jax.random.key(0), n)
    Q, Z = jax.random.normal(jax.random.key(1), (2, n, 3))
    x = Bootstrap(Q, jnp.arange(n) % 3, jnp.ones(n), jnp.linspace(0, 1, n), Z, keys)
    q = jnp.array([0.5, 1.0, 2.0, 3.0])
    hp = make_hparams(algorithm, q=q, alpha=jnp.linspace(0.1, 1, n))
    hp = HParams(*(jnp.broadcast_to(field, (n,)) for field in hp))

    def f(x, hp):
        traces.append(1)
        return ALGORITHMS[algorithm].target(x, hp, EXACT)

    together = jax.jit(jax.vmap(f))(x, hp)
    single = jax.jit(f)
    apart = [single(*jax.tree.map(lambda leaf: leaf[i], (x, hp))) for i in range(n)]  # noqa: B023
    np.testing.assert_allclose(together, jnp.stack(apart), rtol=1e-5, atol=1e-6)
    assert len(traces) == 2


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
