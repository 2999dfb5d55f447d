"""Applies action masks to a network: the only place, for acting and for learning."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.networks.dense import Network, Params
from tsallax.types import RULED_OUT, Masked


def masked(network: Network) -> Network:
    """A network for `Masked` observations: actions that are not allowed have value `RULED_OUT`.

    So they have probability 0 under every policy and do not contribute to a maximum or a sum of
    exponentials. As the value is finite, its product with 0 is 0, so that `<pi,Q>` is the sum over
    the allowed actions.
    """

    def apply(params: Params, seen: Masked) -> Float[Array, "A *N"]:
        Z = network.apply(params, seen.observation)
        return jnp.where(seen.allowed.reshape(-1, *(1,) * (Z.ndim - 1)), Z, RULED_OUT)

    return Network(network.init, apply)
