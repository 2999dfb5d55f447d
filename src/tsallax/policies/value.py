"""The regularised value, whose maximiser is the Tsallis policy."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from tsallax.policies.closed import tsallis_entropy
from tsallax.policies.exact import q_log_slope
from tsallax.policies.tsallis import aligned, any_traced, check, floating, tsallis_policy
from tsallax.types import Number


@jax.custom_jvp
def _value(Q, q, alpha, k):
    return _value_of(tsallis_policy(Q, q, alpha, k), Q, q, alpha, k)


def _value_of(pi, Q, q, alpha, k):
    top = jnp.max(Q, -1)  # so that `<pi,Q>` of large values loses no digits to their offset
    return top + _mean_gap(pi, Q, top[..., None]) + alpha * tsallis_entropy(pi, q, k)


def _mean_gap(pi, Q, top):
    """`<pi, Q - top>`, where an action of probability 0 may have the value -inf."""
    return jnp.sum(jnp.where(pi > 0, pi * (Q - top), 0), -1)


@_value.defjvp
def _value_jvp(primals, tangents):
    """By the envelope theorem pi, the maximiser, is constant in the derivative of the value."""
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
    Q = floating(Q)
    check(Q, q, alpha, k, "exact")
    value = _broadcast_value if any_traced(Q, q, alpha, k) else _value_compiled
    return value(Q, q, alpha, k)


def _broadcast_value(Q, q, alpha, k):
    return _value(*aligned(Q, q, alpha, k))


_value_compiled = jax.jit(_broadcast_value)
