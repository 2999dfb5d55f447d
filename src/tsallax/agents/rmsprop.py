"""The optimiser of MinAtar's authors."""

import jax
import jax.numpy as jnp
import optax


def centred_rmsprop(eps: float = 0.01, decay: float = 0.95) -> optax.GradientTransformation:
    """`g / (sqrt(E[g^2] - E[g]^2) + eps)`, as in torch with one exception.

    The variance of a constant gradient may round below 0; its root is 0 here, and NaN in torch.
    """

    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros, zeros

    def update(updates, state, params=None):
        del params
        mean, square = state
        mean = jax.tree.map(lambda m, g: decay * m + (1 - decay) * g, mean, updates)
        square = jax.tree.map(lambda s, g: decay * s + (1 - decay) * g**2, square, updates)
        step = jax.tree.map(
            lambda g, m, s: g / (jnp.sqrt(jnp.maximum(s - m**2, 0)) + eps), updates, mean, square
        )
        return step, (mean, square)

    return optax.GradientTransformation(init, update)
