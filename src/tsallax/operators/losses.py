"""Losses of one prediction against one target."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.types import Number


def squared(error: Float[Array, "..."]) -> Float[Array, "..."]:
    """`error^2`, as the paper prints it: no factor 1/2."""
    return error**2


def huber(error: Float[Array, "..."], kappa: Number = 1.0) -> Float[Array, "..."]:
    """`error^2/2` up to kappa, then `kappa (|error| - kappa/2)`."""
    inner = jnp.minimum(jnp.abs(error), kappa)
    return inner * (jnp.abs(error) - inner / 2)


def quantile_huber(
    theta: Float[Array, "N"], target: Float[Array, "M"], kappa: Number = 1.0
) -> Float[Array, ""]:
    """`sum_i mean_j |tau_i - 1{u_ij < 0}| huber(u_ij)/kappa`, `u_ij = target_j - theta_i`.

    The quantile levels are the midpoints `tau_i = (2i + 1)/(2N)`, as in QR-DQN.
    """
    N = theta.shape[0]
    tau = (jnp.arange(N, dtype=theta.dtype) + 0.5) / N
    u = target[None, :] - theta[:, None]
    weight = jnp.abs(tau[:, None] - (u < 0))
    return jnp.sum(jnp.mean(weight * huber(u, kappa) / kappa, 1))
