"""Entropies and divergences of policies."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.policies.deformed import q_log
from tsallax.types import Number


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
