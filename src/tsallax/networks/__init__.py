"""Q-networks of the paper's tables: plain `(init, apply)` pairs on one observation.

A user's own pair is accepted wherever a `Network` is: `apply(params, observation)` returns action
values `(A,)`, or quantiles `(A, N)`.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from tsallax.networks.convolutional import minatar_conv, nature
from tsallax.networks.dense import Dense, Network, Params, affine, dense, mlp

__all__ = [
    "Dense", "Network", "Params", "affine", "dense", "make_network", "minatar_conv", "mlp",
    "nature", "output_shape",
]  # fmt: skip

NETWORKS = {"mlp": mlp, "minatar-conv": minatar_conv, "nature": nature}


def make_network(
    name: str,
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int],
    stacked: bool = False,
    layer_norm: bool = False,
) -> Network:
    """A network by its name.

    Args:
        name: `mlp`, `minatar-conv` or `nature`.
        observation: its shape.
        head: the shape of the output.
        hidden: widths of the fully connected layers.
        stacked: the first axis of an observation is that of its frames; they become channels.
        layer_norm: normalise what goes into each ReLU.
    """
    if name == "mlp":
        return mlp(observation, head, hidden, layer_norm)
    frames, *frame = observation if stacked else (1, *observation)
    image = (*frame[:2], frames * math.prod(frame[2:])) if stacked else tuple(observation)
    if len(image) != 3:
        raise ValueError("the observations are no images with channels: --network mlp would do")
    network = NETWORKS[name](image, head, hidden, layer_norm=layer_norm)
    if not stacked:
        return network

    def apply(params, x):
        return network.apply(params, jnp.moveaxis(x, 0, 2).reshape(*x.shape[1:3], -1))

    return Network(network.init, apply)


def output_shape(network: Network, observation: jax.ShapeDtypeStruct) -> tuple[int, ...]:
    """The shape of a network's output."""

    def output(key, x):
        return network.apply(network.init(key), x)

    return jax.eval_shape(output, jax.random.key(0), observation).shape
