"""Acting: a mixture with the uniform policy, and a draw from what need not sum to one."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from tsallax.types import Number


def epsilon_greedy(pi: Float[Array, "*batch A"], epsilon: Number) -> Float[Array, "*batch A"]:
    """`(1 - epsilon) pi + epsilon/A`."""
    epsilon = jnp.broadcast_to(jnp.asarray(epsilon, pi.dtype), pi.shape[:-1])[..., None]
    return (1 - epsilon) * pi + epsilon / pi.shape[-1]


def sample(key: PRNGKeyArray, pi: Float[Array, "*batch A"]) -> Int[Array, "*batch"]:
    """An action drawn in proportion to `pi`; an action of probability 0 is never drawn.

    Inverts the cumulative sum: one uniform number an action-value vector, no logarithms.
    """
    total = jnp.cumsum(pi, -1)
    u = jax.random.uniform(key, (*pi.shape[:-1], 1), pi.dtype)
    # u < 1, but u * total may round up to total: the last action with mass is the bound.
    last = jnp.max(
        jnp.where(pi > 0, jnp.arange(pi.shape[-1]).reshape((1,) * (pi.ndim - 1) + (-1,)), 0), -1
    )
    return jnp.minimum(jnp.sum(total <= u * total[..., -1:], -1), last)
