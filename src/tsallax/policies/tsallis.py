"""The Tsallis policy for every q: in closed form, by the exact solver, or by an approximation."""

import functools
from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from tsallax.policies.approximate import (
    linear_policy,
    literal_policy,
    paper_normalised_policy,
    paper_policy,
    printed_policy,
)
from tsallax.policies.closed import greedy, softmax, sparsemax
from tsallax.policies.exact import entmax
from tsallax.types import HParams, Number, Policy

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
    `Q/(2 k alpha)`), at q = inf greedy with ties sharing equally. It is differentiable in all
    arguments, by the implicit function theorem.

    Args:
        Q: action values, any shape; the last axis is the actions.
        q: entropic index. Positive for `exact` and `linear`; the others also take q <= 0.
        alpha: weight of the entropy, positive.
        k: the entropy's own factor, positive: 1/2 in the paper.
        method: `exact`, or one of the paper's approximations: `paper` (eq. 7; does not sum to
            one), `paper-normalised`, `linear`, `literal` (eq. 7 without the indicator of its
            support), `printed` (the main text's constant). At q = 1, 2 and inf all of them are the
            closed form.

    Invalid numbers raise `ValueError` if they are concrete. If they are traced, `alpha <= 0`,
    `k <= 0`, and for `exact` and `linear` `q <= 0`, give the greedy policy; an action value of
    -inf has probability 0; a row with NaN or +inf is NaN.
    """
    Q = floating(Q)
    check(Q, q, alpha, k, method)
    if isinstance(q, int | float) and q in _CLOSED:
        Q, alpha, k = _columns(Q, alpha, k)
        bad = (alpha <= 0) | (k <= 0) | (alpha * k == 0)
        return _mend(_CLOSED[q](Q, jnp.where(bad, 1, alpha), jnp.where(bad, 1, k)), Q, bad)
    general = _general if any_traced(Q, q, alpha, k) else _general_compiled
    return general(Q, q, alpha, k, method)


def check(Q, q, alpha, k, method: Method) -> None:
    """Raise errors for invalid concrete values; traced values are not checked."""
    shape = np.shape(Q)
    if not shape or shape[-1] == 0:
        raise ValueError(f"the last axis of Q is the actions: at least one, not shape {shape}")
    if not isinstance(Q, Tracer) and not np.all(np.isfinite(np.asarray(Q))):
        raise ValueError("Q must be finite, but it holds NaN or infinite values")
    _check_positive("alpha", alpha)
    _check_positive("k", k)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: one of {', '.join(METHODS)}")
    if method in ("exact", "linear"):
        _check_positive("q", q, hint="; for q <= 0 the entropy has no maximising policy")


def _check_positive(name: str, x: ArrayLike, hint: str = "") -> None:
    if not isinstance(x, Tracer) and not np.all(np.asarray(x) > 0):
        raise ValueError(f"{name} must be positive, not {np.asarray(x)}{hint}")


# A Python number selects its closed form before tracing; the general program agrees with it.
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


# Outside of `jit`, its loop would be recompiled at every call.
_general_compiled = jax.jit(_general, static_argnames="method")


def _below_best(Q):
    """`Q - max Q`, to be computed before the division of Q.

    XLA fuses `Q/alpha - max(Q/alpha)` into a multiply-add that rounds only once, so that the best
    action is not exactly 0: at 1/eps^2 (1e14 in float32) every action drops out of the support.
    """
    return Q - jnp.max(Q, -1, keepdims=True)


def _mend(pi, Q, hard):
    """Makes pi greedy where there is no regularisation, and NaN where values are NaN or +inf."""
    broken = jnp.any(jnp.isnan(Q) | (Q == jnp.inf), -1, keepdims=True)
    return jnp.where(broken, jnp.nan, jnp.where(hard, greedy(Q), pi))


@functools.cache  # one function per method, so that programs compiled for it are reused
def make_policy(method: Method = "exact", q: float | None = None) -> Policy:
    """The policy of an agent: `(Q, hp) -> pi` by one of the methods.

    Args:
        method: see `tsallis_policy`.
        q: replaces `hp.q` if it is known in advance: at 1, 2 and inf this is the closed form, which
            compiles in a fraction of the time.
    """

    def policy(Q: Float[Array, "A"], hp: HParams) -> Float[Array, "A"]:
        return tsallis_policy(Q, hp.q if q is None else q, hp.alpha, hp.k, method)

    return policy


def floating(Q) -> Float[Array, "..."]:
    Q = jnp.asarray(Q)
    return Q if jnp.issubdtype(Q.dtype, jnp.floating) else Q.astype(jnp.float32)


def any_traced(*arguments: ArrayLike) -> bool:
    return any(isinstance(x, Tracer) for x in arguments)


def aligned(Q, *numbers):
    """`Q` and the numbers, broadcast against each other except for the action axis."""
    batch = jnp.broadcast_shapes(Q.shape[:-1], *map(jnp.shape, numbers))
    same = (jnp.broadcast_to(jnp.asarray(x, Q.dtype), batch) for x in numbers)
    return jnp.broadcast_to(Q, (*batch, Q.shape[-1])), *same


def _columns(Q, *numbers):
    """As `aligned`, with an action axis of length one added to each number."""
    Q, *same = aligned(Q, *numbers)
    return Q, *(x[..., None] for x in same)
