"""Where a mask of actions meets the network: the one place, for acting and for learning."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.networks.dense import Network, Params
from tsallax.types import RULED_OUT, Masked


def masked(network: Network) -> Network:
    """The network of `Masked` observations: what is not allowed is worth `RULED_OUT`.

    So it has probability 0 under every policy and no share in a maximum or a sum of exponentials,
    and as the value is finite, its product with that 0 is 0: `<pi,Q>` is the sum over the allowed
    actions.
    """

    def apply(params: Params, seen: Masked) -> Float[Array, "A *N"]:
        Z = network.apply(params, seen.observation)
        return jnp.where(seen.allowed.reshape(-1, *(1,) * (Z.ndim - 1)), Z, RULED_OUT)

    return Network(network.init, apply)
