"""Entropies and divergences of policies, and the deformed logarithm they are made of.

The q-logarithm and the q-exponential are in the convention of the paper's future work,
`ln_q x = (x^(q-1) - 1)/(q-1)` and its inverse `exp_q x = [1 + (q-1) x]+^(1/(q-1))`: the natural
pair at q = 1. (Another convention in the literature writes `2 - q` for this `q`.)
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.types import Number


def q_log(x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`ln_q x = (x^(q-1) - 1)/(q-1)`; 0 at q = inf for x in (0, 1]."""
    e = jnp.asarray(q - 1, x.dtype)
    regular = (e != 0) & jnp.isfinite(e)
    safe = jnp.where(regular, e, 1)
    # expm1 keeps full precision near q = 1, where the quotient is 0/0.
    return jnp.where(regular, jnp.expm1(safe * jnp.log(x)) / safe, jnp.where(e == 0, jnp.log(x), 0))


def q_exp(x: Float[Array, "..."], q: Number) -> Float[Array, "..."]:
    """`exp_q x = [1 + (q-1) x]+^(1/(q-1))`, the inverse of `q_log`."""
    e = jnp.asarray(q - 1, x.dtype)
    safe = jnp.where(e == 0, 1, e)
    return jnp.where(e == 0, jnp.exp(x), jnp.exp(jnp.log1p(jnp.maximum(safe * x, -1)) / safe))


def tsallis_entropy(
    pi: Float[Array, "*batch A"], q: Number, k: Number = 0.5
) -> Float[Array, "*batch"]:
    """`H_q(pi) = k/(q-1) (1 - sum pi^q) = -k <pi, ln_q pi>` (eq. 3); k times Shannon's at q = 1.

    The sum runs over the support, so it is finite for q <= 0 as well. For a `pi` that does not
    sum to one it is the second form, the one that stands in the paper's Bellman operator.
    """
    batch = pi.shape[:-1]
    q = jnp.broadcast_to(jnp.asarray(q, pi.dtype), batch)[..., None]
    inside = pi > 0
    logs = q_log(jnp.where(inside, pi, 1), q)
    return -jnp.broadcast_to(jnp.asarray(k, pi.dtype), batch) * jnp.sum(
        jnp.where(inside, pi * logs, 0), -1
    )


def shannon_entropy(pi: Float[Array, "*batch A"]) -> Float[Array, "*batch"]:
    """`-<pi, ln pi>`."""
    return tsallis_entropy(pi, 1.0, 1.0)


def kl_divergence(
    pi: Float[Array, "*batch A"], other: Float[Array, "*batch A"]
) -> Float[Array, "*batch"]:
    """`<pi, ln pi - ln other>`; infinite where `other` rules out what `pi` does."""
    inside = pi > 0
    logs = jnp.log(jnp.where(inside, pi, 1)) - jnp.log(jnp.where(inside, other, 1))
    return jnp.sum(jnp.where(inside, pi * logs, 0), -1)
