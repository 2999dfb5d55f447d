"""The regularised greedy step: from action values to a policy."""

import functools
from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from tsallax import checks
from tsallax.policies.approximate import (
    linear_policy,
    literal_policy,
    paper_normalised_policy,
    paper_policy,
    printed_policy,
)
from tsallax.policies.closed import greedy, softmax, sparsemax, sparsemax_value
from tsallax.policies.entropy import (
    kl_divergence,
    q_exp,
    q_log,
    shannon_entropy,
    tsallis_entropy,
)
from tsallax.policies.exact import entmax, q_log_slope
from tsallax.policies.exploration import epsilon_greedy, normalise, sample
from tsallax.types import HParams, Number, Policy

__all__ = [
    "METHODS",
    "Method",
    "entmax",
    "epsilon_greedy",
    "greedy",
    "kl_divergence",
    "make_policy",
    "normalise",
    "q_exp",
    "q_log",
    "sample",
    "shannon_entropy",
    "softmax",
    "sparsemax",
    "sparsemax_value",
    "tsallis_entropy",
    "tsallis_policy",
    "tsallis_value",
]

Method = Literal["exact", "paper", "paper-normalised", "linear", "literal", "printed"]
METHODS: tuple[Method, ...] = get_args(Method)

_APPROXIMATIONS: dict[str, Callable] = {
    "paper": paper_policy,
    "paper-normalised": paper_normalised_policy,
    "linear": linear_policy,
    "literal": literal_policy,
    "printed": printed_policy,
}


def tsallis_policy(
    Q: ArrayLike,
    q: Number = 2.0,
    alpha: Number = 0.03,
    k: Number = 0.5,
    method: Method = "exact",
) -> Float[Array, "..."]:
    """The policy that maximises `<pi,Q> + alpha H_q(pi)`, over the last axis of `Q`.

    `q`, `alpha` and `k` broadcast against the leading axes of `Q` and may be traced: one compiled
    program serves every q. At q = 1 it is `softmax(Q/(k alpha))`, at q = 2 `sparsemax` (of
    `Q/(2 k alpha)`), at q = inf greedy with ties shared evenly. It is differentiable in all its
    numbers, by the implicit function theorem.

    Args:
        Q: action values, any shape; the last axis is the actions.
        q: entropic index. Positive for `exact` and `linear`; the others also take q <= 0.
        alpha: weight of the entropy, positive.
        k: the entropy's own factor, positive: 1/2 in the paper.
        method: `exact`, or one of the paper's approximations: `paper` (eq. 7; does not sum to
            one), `paper-normalised`, `linear`, `literal` (eq. 7 without the indicator of its
            support), `printed` (the main text's constant). At q = 1, 2 and inf all of them are the
            closed form.

    Bad numbers raise `ValueError` where they are concrete. Where they are traced: `alpha <= 0`,
    `k <= 0`, and for `exact` and `linear` `q <= 0`, give the greedy policy; an action value of
    -inf is ruled out; a row with NaN or +inf is NaN.
    """
    Q = _floating(Q)
    _check(Q, q, alpha, k, method)
    if isinstance(q, int | float) and q in _CLOSED:
        Q, alpha, k = _columns(Q, alpha, k)
        bad = (alpha <= 0) | (k <= 0) | (alpha * k == 0)
        return _mend(_CLOSED[q](Q, jnp.where(bad, 1, alpha), jnp.where(bad, 1, k)), Q, bad)
    general = _general if _any_traced(Q, q, alpha, k) else _general_compiled
    return general(Q, q, alpha, k, method)


def _check(Q, q, alpha, k, method: Method) -> None:
    checks.require_actions("Q", Q)
    checks.require_finite("Q", Q)
    checks.require_positive("alpha", alpha)
    checks.require_positive("k", k)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: one of {', '.join(METHODS)}")
    if method in ("exact", "linear"):
        checks.require_positive("q", q, hint="; for q <= 0 the entropy has no maximising policy")


# A Python number picks its closed form before tracing; the general program agrees with it.
_CLOSED: dict[float, Callable] = {
    1: lambda Q, alpha, k: softmax(Q, k * alpha),
    2: lambda Q, alpha, k: sparsemax(_below_best(Q) / (2 * k * alpha)),
    float("inf"): lambda Q, alpha, k: greedy(Q),
}


def _general(Q, q, alpha, k, method: Method):
    Q, alpha, k, q = _columns(Q, alpha, k, q)
    needs_positive_q = method in ("exact", "linear")
    weight = alpha * k * q if needs_positive_q else alpha * k
    bad = (alpha <= 0) | (k <= 0) | (weight == 0) | ((q <= 0) & needs_positive_q)
    alpha, k = jnp.where(bad, 1, alpha), jnp.where(bad, 1, k)
    shannon, sparse, hard = q == 1, q == 2, jnp.isinf(q) | bad
    if method == "exact":
        q = jnp.where(hard, 2, q)
        pi = entmax(Q, q, alpha * k * q)
    else:
        q = jnp.where(shannon | sparse | hard, 3, q)
        gaps = _below_best(Q)
        pi = _APPROXIMATIONS[method](gaps / alpha, q, k)
        pi = jnp.where(sparse, sparsemax(gaps / (2 * k * alpha)), pi)
        pi = jnp.where(shannon, softmax(Q, k * alpha), pi)
    return _mend(pi, Q, hard)


# Outside of `jit`, the loop in it would be compiled anew at every call.
_general_compiled = jax.jit(_general, static_argnames="method")


def _below_best(Q):
    """`Q - max Q`, to be taken before Q is divided.

    XLA fuses `Q/alpha - max(Q/alpha)` into a multiply-add that rounds but once, so that the best
    action is not exactly 0: at 1/eps^2 (1e14 in float32) every action falls out of the support.
    """
    return Q - jnp.max(Q, -1, keepdims=True)


def _mend(pi, Q, hard):
    """Greedy where there is no regularisation; NaN where the values are no numbers."""
    broken = jnp.any(jnp.isnan(Q) | (Q == jnp.inf), -1, keepdims=True)
    return jnp.where(broken, jnp.nan, jnp.where(hard, greedy(Q), pi))


@jax.custom_jvp
def _value(Q, q, alpha, k):
    return _value_of(tsallis_policy(Q, q, alpha, k), Q, q, alpha, k)


def _value_of(pi, Q, q, alpha, k):
    top = jnp.max(Q, -1)  # `<pi,Q>` of large values loses no digits to their offset
    return top + _mean_gap(pi, Q, top[..., None]) + alpha * tsallis_entropy(pi, q, k)


def _mean_gap(pi, Q, top):
    """`<pi, Q - top>`, where an action that is ruled out may be worth -inf."""
    return jnp.sum(jnp.where(pi > 0, pi * (Q - top), 0), -1)


@_value.defjvp
def _value_jvp(primals, tangents):
    """The envelope theorem: pi is a maximiser, so only the explicit numbers move the value."""
    Q, q, alpha, k = primals
    dQ, dq, dalpha, dk = tangents
    pi = tsallis_policy(*primals)
    H = tsallis_entropy(pi, q, jnp.ones_like(k))
    # dH/dq = -<pi, d ln_q(pi)/dq>, and 0 at q = inf.
    slopes = q_log_slope(jnp.log(jnp.where(pi > 0, pi, 1)), jnp.where(q < jnp.inf, q, 1)[..., None])
    dH = jnp.where(q < jnp.inf, -jnp.sum(pi * slopes, -1), 0)
    slope = jnp.sum(pi * dQ, -1) + (dalpha * k + alpha * dk) * H + alpha * k * dH * dq
    return _value_of(pi, Q, q, alpha, k), slope


def tsallis_value(
    Q: ArrayLike, q: Number = 2.0, alpha: Number = 0.03, k: Number = 0.5
) -> Float[Array, "..."]:
    """The regularised value `max_pi <pi,Q> + alpha H_q(pi)`; its gradient in Q is the policy."""
    Q = _floating(Q)
    _check(Q, q, alpha, k, "exact")
    value = _broadcast_value if _any_traced(Q, q, alpha, k) else _value_compiled
    return value(Q, q, alpha, k)


def _broadcast_value(Q, q, alpha, k):
    return _value(*_aligned(Q, q, alpha, k))


_value_compiled = jax.jit(_broadcast_value)


@functools.cache  # one function per method, so that programs compiled for it are found again
def make_policy(method: Method = "exact", q: float | None = None) -> Policy:
    """The policy of an agent: `(Q, hp) -> pi` by one of the methods.

    Args:
        method: see `tsallis_policy`.
        q: replaces `hp.q` if it is known beforehand: at 1, 2 and inf this is the closed form, which
            compiles in a fraction of the time.
    """

    def policy(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
        return tsallis_policy(Q, hp.q if q is None else q, hp.alpha, hp.k, method)

    return policy


def _floating(Q) -> Float[Array, "..."]:
    Q = jnp.asarray(Q)
    return Q if jnp.issubdtype(Q.dtype, jnp.floating) else Q.astype(jnp.float32)


def _any_traced(*arguments: ArrayLike) -> bool:
    return any(map(checks.is_traced, arguments))


def _aligned(Q, *numbers):
    """`Q` and the numbers, broadcast against each other up to the axis of the actions."""
    batch = jnp.broadcast_shapes(Q.shape[:-1], *map(jnp.shape, numbers))
    same = (jnp.broadcast_to(jnp.asarray(x, Q.dtype), batch) for x in numbers)
    return jnp.broadcast_to(Q, (*batch, Q.shape[-1])), *same


def _columns(Q, *numbers):
    """As `_aligned`, each number with an axis of length one for the actions."""
    Q, *same = _aligned(Q, *numbers)
    return Q, *(x[..., None] for x in same)
