"""What acting needs: weights that sum to one, a mixture with the uniform policy, a draw."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from tsallax.types import Number


def normalise(
    weights: Float[Array, "*batch A"], Q: Float[Array, "*batch A"]
) -> Float[Array, "*batch A"]:
    """The weights divided by their sum; infinite ones share it, and if all are 0, greedy in Q."""
    top = jnp.max(weights, -1, keepdims=True)
    scaled = weights / jnp.where(top > 0, top, 1)  # their sum cannot overflow
    scaled = jnp.where(jnp.isinf(weights), 1, scaled)
    best = jnp.argmax(Q, -1, keepdims=True) == jnp.arange(Q.shape[-1]).reshape(
        (1,) * (Q.ndim - 1) + (-1,)
    )
    scaled = jnp.where(top > 0, scaled, best.astype(Q.dtype))
    return scaled / jnp.sum(scaled, -1, keepdims=True)


def epsilon_greedy(pi: Float[Array, "*batch A"], epsilon: Number) -> Float[Array, "*batch A"]:
    """`(1 - epsilon) pi + epsilon/A`."""
    epsilon = jnp.broadcast_to(jnp.asarray(epsilon, pi.dtype), pi.shape[:-1])[..., None]
    return (1 - epsilon) * pi + epsilon / pi.shape[-1]


def sample(key: PRNGKeyArray, pi: Float[Array, "*batch A"]) -> Int[Array, "*batch"]:
    """An action drawn in proportion to `pi`; an action of probability 0 is never drawn.

    Inverts the cumulative sum: one uniform number per row, no logarithms.
    """
    total = jnp.cumsum(pi, -1)
    u = jax.random.uniform(key, (*pi.shape[:-1], 1), pi.dtype)
    # u < 1, but u * total may round up to total: the last action with mass is the bound.
    last = jnp.max(
        jnp.where(pi > 0, jnp.arange(pi.shape[-1]).reshape((1,) * (pi.ndim - 1) + (-1,)), 0), -1
    )
    return jnp.minimum(jnp.sum(total <= u * total[..., -1:], -1), last)
