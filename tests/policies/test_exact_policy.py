"""The exact Tsallis policy against a float64 root-finder, and what must hold for every q."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, target
from hypothesis import strategies as st

import tsallax
from support import oracles
from tsallax.policies import entmax, greedy, softmax, sparsemax, tsallis_entropy

QS = (0.3, 0.5, 0.9, 0.999, 1.0, 1.001, 1.1, 1.5, 2.0, 2.5, 3.0, 4.0, 10.0, 50.0)
ALPHAS = (1e-3, 0.03, 1.0, 10.0)
BOUND = 2e-6

# Accuracy is measured on the code that users run: the suite's own flags compile without optimising.
AS_USERS = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
optimised = jax.jit(tsallax.tsallis_policy, compiler_options=AS_USERS)
quick = jax.jit(tsallax.tsallis_policy)  # where shapes and special values are the subject
value_of = jax.jit(tsallax.tsallis_value)
value_slope = jax.jit(jax.grad(tsallax.tsallis_value))
value_slopes = jax.jit(jax.grad(tsallax.tsallis_value, (1, 2, 3)))
value_hessian = jax.jit(jax.hessian(tsallax.tsallis_value))
policy_jacobian = jax.jit(jax.jacobian(tsallax.tsallis_policy))
jit_entmax = jax.jit(entmax)
WEIGHTS = np.array([0.3, -1.0, 2.0, 0.5])
weighted = jax.jit(lambda Q, q, alpha: jnp.vdot(WEIGHTS, tsallax.tsallis_policy(Q, q, alpha)))
weighted_slopes = jax.jit(jax.grad(weighted, (0, 1, 2)))


def policy(Q, q, alpha) -> np.ndarray:
    """As users run it; all in float32, so that one program serves a shape."""
    return np.asarray(optimised(np.asarray(Q, np.float32), np.float32(q), np.float32(alpha)))


def hard_cases(actions: int) -> np.ndarray:
    """Values with gaps from 1e-6 to 1e6, ties, and offsets up to 1e6, in float32."""
    rng = np.random.default_rng(actions)
    rows = []
    for gap in 10.0 ** np.arange(-6, 7, 2):
        rows += [
            rng.normal(size=actions) * gap,
            rng.integers(0, 3, actions) * gap,  # ties
            -gap * np.geomspace(1e-6, 1, actions),
            -gap * np.r_[0, np.ones(actions - 1)],  # one best, the rest tied
            -gap * np.r_[np.zeros(actions // 2), rng.exponential(size=actions - actions // 2)],
            1e6 - gap * rng.random(actions),  # a large offset
        ]
    return np.clip(np.array(rows), -1e6, 1e6).astype(np.float32)


def worst_error(pi, Q, q, alpha) -> float:
    q, alpha = float(np.float32(q)), float(np.float32(alpha))
    return np.abs(np.asarray(pi) - oracles.tsallis_policy(Q, q, alpha)).max()


@pytest.mark.parametrize("actions", [2, 3, 6, 18, 100])
def test_float32_against_root_finder(actions):
    Q = hard_cases(actions)
    worst = {}
    for q in QS:
        for alpha in ALPHAS:
            pi = policy(Q, q, alpha)
            worst[q, alpha] = worst_error(pi, Q, q, alpha)
            np.testing.assert_allclose(np.asarray(pi, np.float64).sum(-1), 1, atol=1e-6)
    (q, alpha), error = max(worst.items(), key=lambda item: item[1])
    print(
        f"\nworst of {len(Q) * len(worst)} rows of {actions}: {error:.1e} at q={q}, alpha={alpha}"
    )
    assert error <= BOUND


def test_a_thousand_actions():
    Q = hard_cases(1000)[::4]
    for q in QS:
        for alpha in (1e-3, 10.0):
            pi = policy(Q, q, alpha)
            assert worst_error(pi, Q, q, alpha) <= BOUND
            np.testing.assert_allclose(np.asarray(pi, np.float64).sum(-1), 1, atol=1e-6)


values = st.floats(-1e6, 1e6, width=32)
gaps = st.floats(-1, 1, width=32).map(lambda x: np.float32(x) ** 5)
rows = st.one_of(*(st.lists(s, min_size=4, max_size=4) for s in (values, gaps)))


def test_hypothesis_finds_nothing_worse():
    worst = (0.0, "")

    @given(Q=rows, q=st.floats(0.125, 60, width=32), alpha=st.floats(2**-10, 10, width=32))
    def search(Q, q, alpha):
        nonlocal worst
        Q = np.array([Q], np.float32)
        error = worst_error(policy(Q[0], q, alpha)[None], Q, q, alpha)
        target(error)
        worst = max(worst, (error, f"Q={Q.tolist()}, q={q}, alpha={alpha}"))
        assert error <= BOUND

    search()
    print(f"\nworst case found by hypothesis: {worst[0]:.1e} at {worst[1]}")
    assert worst[0] > 0  # it searched where rounding shows


@given(Q=rows, q=st.floats(0.125, 60, width=32), shift=st.sampled_from([-64.0, 0.5, 1024.0]))
def test_invariants(Q, q, shift):
    Q = np.round(np.array(Q, np.float32) * 64) / 64  # so that a shift is exact
    Q = np.clip(Q, -1024, 1024)
    pi = policy(Q, q, 0.5)
    assert abs(pi.sum() - 1) < 1e-6
    np.testing.assert_allclose(policy(Q + np.float32(shift), q, 0.5), pi, atol=1e-6)
    order = np.array([2, 0, 3, 1])
    np.testing.assert_allclose(policy(Q[order], q, 0.5), pi[order], atol=1e-6)
    assert (np.diff(pi[np.argsort(Q, kind="stable")]) >= -1e-6).all()  # better is likelier


@given(Q=rows, q=st.floats(1.0625, 8, width=32), factor=st.floats(1.125, 4, width=32))
def test_support_shrinks_with_q_at_fixed_weight(Q, q, factor):
    """With `t = alpha k q` fixed: as q grows every gap weighs more."""
    Q = jnp.asarray(Q, jnp.float32)[None]
    t = jnp.ones((1, 1))
    small = jit_entmax(Q, jnp.full((1, 1), q, jnp.float32), t)
    large = jit_entmax(Q, jnp.full((1, 1), q * factor, jnp.float32), t)
    assert ((large > 1e-6) <= (small > 0)).all()


@pytest.mark.parametrize(
    ("q", "closed"),
    [
        (1, lambda Q: softmax(Q, 0.5 * 0.3)),
        (2, lambda Q: sparsemax(Q / 0.3)),
        (np.inf, greedy),
    ],
)
def test_traced_q_agrees_with_closed_form(q, closed):
    Q = jax.random.normal(jax.random.key(0), (42, 6))  # the shape of the hard cases
    np.testing.assert_allclose(policy(Q, q, 0.3), closed(Q), atol=3e-7)
    np.testing.assert_allclose(tsallax.tsallis_policy(Q, q, 0.3), closed(Q), atol=3e-7)


def test_continuous_in_q():
    Q = jnp.array([0.1, 0.0, -0.05, 0.08])
    q = jnp.concatenate([jnp.linspace(0.99, 1.01, 401), jnp.linspace(1.99, 2.01, 401)])
    jumps = np.abs(np.diff(quick(Q, q, 0.2), axis=0))
    assert np.delete(jumps, 400, axis=0).max() < 1e-4
    np.testing.assert_allclose(policy(Q, 1e7, 0.2), greedy(Q), atol=1e-6)


def test_broadcasts_and_vmaps():
    Q = jax.random.normal(jax.random.key(1), (3, 4, 6))
    q = jnp.array([0.5, 1.0, 2.0, 3.0])
    pi = quick(Q, q, jnp.full((3, 1), 0.3))
    assert pi.shape == (3, 4, 6)
    for i, qi in enumerate(q):
        np.testing.assert_allclose(pi[:, i], quick(Q[:, i], qi, 0.3), atol=1e-6)
    over_q = jax.jit(jax.vmap(lambda qi: tsallax.tsallis_policy(Q[0, 0], qi, 0.3)))(q)
    np.testing.assert_allclose(over_q, quick(Q[0, 0], q, 0.3), atol=1e-6)


def test_one_program_serves_every_q():
    traces = []

    @jax.jit
    def counted(Q, q):
        traces.append(q)
        return tsallax.tsallis_policy(Q, q, 0.3)

    for q in QS:
        counted(jnp.arange(3.0), q)
    assert len(traces) == 1


@pytest.mark.parametrize("call", [tsallax.tsallis_policy, tsallax.tsallis_value])
def test_outside_jit_a_shape_is_compiled_once(call):
    """The loop of a general q: another q, alpha or Q of this shape finds the program again."""
    Q, other = jax.random.normal(jax.random.key(2), (2, 7, 3))
    compiled = []

    def listen(event, *_, **__):
        if "backend_compile" in event:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        first = call(Q, 1.5, 0.3)
        assert compiled  # what is listened to is there
        del compiled[:]
        for q, alpha in ((1.5, 0.3), (2.5, 0.1), (0.5, 3.0)):
            call(other, q, alpha)
        assert compiled == []
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    np.testing.assert_allclose(first, jax.jit(call)(Q, 1.5, 0.3), atol=1e-6)
    np.testing.assert_allclose(first[2], call(Q[2], 1.5, 0.3), atol=1e-6)


def test_outside_jit_bad_numbers_raise_as_before():
    for call in (tsallax.tsallis_policy, tsallax.tsallis_value):
        with pytest.raises(ValueError, match="no maximising policy"):
            call(jnp.ones(2), -1.0)
        with pytest.raises(ValueError, match="Q must be finite"):
            call(jnp.array([1.0, jnp.nan]), 1.5)


@pytest.mark.parametrize("q", [0.5, 0.999, 1.0, 1.3, 2.0, 2.7, 6.0])
def test_derivatives_against_differences(q):
    """Forward and reverse, in Q, q and alpha, against central differences in float64."""
    with jax.enable_x64(True):
        Q, f = jnp.array([0.4, 0.25, 0.1, -0.7]), weighted
        at = (Q, jnp.asarray(q), jnp.asarray(0.7))
        slopes = weighted_slopes(*at)
        h = 1e-6
        for i in range(4):
            d = h * jnp.eye(4)[i]
            difference = (f(Q + d, *at[1:]) - f(Q - d, *at[1:])) / (2 * h)
            np.testing.assert_allclose(slopes[0][i], difference, atol=1e-7)
        difference = (f(Q, q + h, 0.7) - f(Q, q - h, 0.7)) / (2 * h)
        np.testing.assert_allclose(slopes[1], difference, atol=1e-6)
        difference = (f(Q, q, 0.7 + h) - f(Q, q, 0.7 - h)) / (2 * h)
        np.testing.assert_allclose(slopes[2], difference, atol=1e-7)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.001, 1.5, 2.0, 3.0])
def test_derivatives_of_the_value_against_differences(q):
    """In q, alpha and k; at q = 1, too, where its formula is 0/0."""
    with jax.enable_x64(True):
        at = (jnp.array([0.4, 0.25, 0.1, -jnp.inf]), jnp.asarray(q), *jnp.array([0.7, 0.5]))
        slopes = value_slopes(*at)
        h = 1e-5
        for i, slope in enumerate(slopes, 1):
            up, down = ([*at[:i], at[i] + d, *at[i + 1 :]] for d in (h, -h))
            difference = (value_of(*up) - value_of(*down)) / (2 * h)
            np.testing.assert_allclose(slope, difference, atol=1e-8)


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_value_is_a_maximum_with_the_policy_as_gradient(q):
    Q = jnp.array([0.4, 0.25, 0.1, -0.7])
    value = value_of(Q, q, 0.7)
    pi = jnp.asarray(policy(Q, q, 0.7))
    np.testing.assert_allclose(value, pi @ Q + 0.7 * tsallis_entropy(pi, q), atol=1e-6)
    np.testing.assert_allclose(value_slope(Q, q, 0.7), pi, atol=1e-6)
    rivals = jax.random.dirichlet(jax.random.key(0), jnp.ones(4), (1000,))
    assert (rivals @ Q + 0.7 * tsallis_entropy(rivals, q) <= value + 1e-6).all()
    np.testing.assert_allclose(value_hessian(Q, q, 0.7), policy_jacobian(Q, q, 0.7), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Q": np.array([1.0, np.nan])}, "Q must be finite"),
        ({"Q": np.array([1.0, np.inf])}, "Q must be finite"),
        ({"Q": np.zeros((3, 0))}, "at least one"),
        ({"Q": 1.0}, "at least one"),
        ({"Q": np.array([1.0, 2.0]), "alpha": 0.0}, "alpha must be positive"),
        ({"Q": np.array([1.0, 2.0]), "alpha": np.array([1.0, -1.0])}, "alpha must be positive"),
        ({"Q": np.array([1.0, 2.0]), "alpha": np.nan}, "alpha must be positive"),
        ({"Q": np.array([1.0, 2.0]), "k": -0.5}, "k must be positive"),
        ({"Q": np.array([1.0, 2.0]), "q": 0.0}, "q must be positive"),
        ({"Q": np.array([1.0, 2.0]), "q": -1.0}, "no maximising policy"),
    ],
)
def test_bad_concrete_input_raises(arguments, message):
    with pytest.raises(ValueError, match=message):
        tsallax.tsallis_policy(**arguments)


def test_unknown_method_names_the_known_ones():
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no type checks
    try:
        with pytest.raises(ValueError, match="unknown method 'papr': one of exact, paper"):
            tsallax.tsallis_policy(jnp.ones(2), method="papr")
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize(
    ("q", "alpha", "k"),
    [
        (-1.0, 0.3, 0.5),
        (0.0, 0.3, 0.5),
        (1.5, 0.0, 0.5),
        (1.5, -2.0, 0.5),
        (-1.0, -1.0, 0.5),
        (1.5, 0.3, 0.0),
        (1.5, 1e-42, 0.5),
        (2.0, 0.0, 0.5),
        (1.0, 0.0, 0.5),
    ],
)
def test_bad_traced_numbers_give_the_greedy_policy(q, alpha, k):
    Q = jnp.array([0.1, 3.0, 3.0])
    np.testing.assert_array_equal(quick(Q, q, alpha, k), [0, 0.5, 0.5])


def test_traced_values_that_are_no_numbers():
    for q in (0.5, 1.0, 1.5, 2.0, 3.0, np.inf):
        pi = quick(jnp.array([[1.0, jnp.nan], [1.0, -jnp.inf], [1.0, jnp.inf]]), q, 1.0)
        assert jnp.isnan(pi[0]).all()
        np.testing.assert_array_equal(pi[1], [1, 0])
        assert jnp.isnan(pi[2]).all()


@given(
    Q=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=4, max_size=4)
)
def test_finite_values_never_give_nan(Q):
    Q = np.array(Q, np.float32)
    for q in (0.01, 0.5, 1.0, 1.0 + 1e-7, 1.5, 2.0, 3.0, 50.0, 1e30, np.inf):
        for alpha in (1e-30, 1e-3, 1.0, 1e30):
            pi = policy(Q, q, alpha)
            assert abs(pi.sum() - 1) < 1e-6, (q, alpha)
