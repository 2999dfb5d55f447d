"""Policies in closed form: greedy (q = inf), softmax (q = 1), sparsemax (q = 2).

Below them, what acting needs: weights that sum to one, a mixture with the uniform policy, a draw.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from tsallax.types import Number


def greedy(Q: Float[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """The best actions, ties shared evenly."""
    best = (jnp.max(Q, -1, keepdims=True) == Q).astype(Q.dtype)
    return best / jnp.sum(best, -1, keepdims=True)


def softmax(Q: Float[Array, "*batch A"], tau: Number) -> Float[Array, "*batch A"]:
    """`exp(Q/tau) / sum exp(Q/tau)` (eq. 2): maximises `<pi,Q> + tau H(pi)`, Shannon's H."""
    return jax.nn.softmax((Q - jnp.max(Q, -1, keepdims=True)) / jnp.asarray(tau, Q.dtype))


def sparsemax_support(
    z: Float[Array, "*batch A"],
) -> tuple[Bool[Array, "*batch A"], Float[Array, "*batch 1"]]:
    """The support S and the normaliser `psi = (sum_S z - 1)/K` (eq. 5)."""
    ranked = jnp.sort(z, -1, descending=True)
    i = jnp.arange(1, z.shape[-1] + 1, dtype=z.dtype).reshape((1,) * (z.ndim - 1) + (-1,))
    allowed = 1 + i * ranked > jnp.cumsum(ranked, -1)
    K = jnp.sum(allowed, -1, keepdims=True, dtype=z.dtype)
    psi = (jnp.sum(jnp.where(allowed, ranked, 0), -1, keepdims=True) - 1) / K
    return z > psi, psi


def sparsemax(z: Float[Array, "*batch A"]) -> Float[Array, "*batch A"]:
    """`[z - psi]+`, the projection of z on the simplex (eq. 4 at q = 2, with z = Q/alpha)."""
    shifted = z - jnp.max(z, -1, keepdims=True)  # the sums in psi lose no digits to an offset
    _, psi = sparsemax_support(shifted)
    return jnp.maximum(shifted - psi, 0)


def sparsemax_value(Q: Float[Array, "*batch A"], alpha: Number) -> Float[Array, "*batch"]:
    """`alpha (1/2 sum_S ((Q/alpha)^2 - psi^2) + 1/2)`: eq. 6 with the factor alpha it lacks."""
    alpha = jnp.asarray(alpha, Q.dtype)
    top = jnp.max(Q, -1, keepdims=True)
    z = (Q - top) / alpha
    S, psi = sparsemax_support(z)
    value = jnp.sum(jnp.where(S, z**2 - psi**2, 0), -1) / 2 + 0.5
    return alpha * value + top[..., 0]


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
