"""The convolutional networks: MinAtar's (Table 2) and Atari's (Table 3)."""

import math
from collections.abc import Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp

from tsallax.networks.convolution import convolve
from tsallax.networks.dense import Network, affine, dense, forward, normalise, normalised

NATURE = ((8, 4, 32), (4, 2, 64), (3, 1, 64))  # size and stride of the windows, channels


def minatar_conv(
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int] = (128,),
    channels: int = 16,
    layer_norm: bool = False,
) -> Network:
    """One 3x3 convolution of stride 1, then fully connected: Conv 3x3x16 - FC128 in Table 2.

    The convolution is a matrix product over patches, as `vmap` over seeds would otherwise give a
    grouped convolution, which is slow on a CPU. The patches of all images are the rows of one
    matrix; with a separate axis for the images, as by `vmap`, a gradient takes a sixth longer.
    """
    height, width, planes = observation
    rows, columns = height - 2, width - 2
    sizes = (rows * columns * channels, *hidden, math.prod(head))

    def init(key):
        conv, *layers = dense(key, [(9 * planes, channels), *pairwise(sizes)])
        return conv, layers

    def batch(params, images):
        conv, layers = params
        views = [images[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        patches = jnp.concatenate(views, -1).reshape(-1, 9 * planes).astype(jnp.float32)
        x = jax.nn.relu((normalised if layer_norm else affine)(conv, patches))
        x = x.reshape(-1, rows * columns * channels)
        return jax.vmap(lambda x: forward(layers, x, layer_norm).reshape(head))(x)

    return Network(init, lambda params, x: batch(params, x[None])[0], batch)


def nature(
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int] = (512,),
    layer_norm: bool = False,
) -> Network:
    """The network for Atari of Mnih et al. 2015: three convolutions, then FC512.

    uint8 images are divided by 255; float images are used unchanged.
    """
    rows, columns, planes = observation
    sizes = []
    for size, stride, channels in NATURE:
        sizes.append((size * size * planes, channels))
        rows, columns = ((n - size) // stride + 1 for n in (rows, columns))
        planes = channels
    if min(rows, columns) < 1:
        raise ValueError(
            f"images must be 36 x 36 or larger, not {observation[0]} x {observation[1]}"
        )

    widths = (rows * columns * planes, *hidden, math.prod(head))

    def init(key):
        layers = dense(key, [*sizes, *pairwise(widths)])
        return layers[: len(sizes)], layers[len(sizes) :]

    def apply(params, x):
        convs, layers = params
        x = x.astype(jnp.float32) / (255 if x.dtype == jnp.uint8 else 1)
        for layer, (size, stride, _) in zip(convs, NATURE, strict=True):
            kernel = layer.weight.reshape(size, size, x.shape[-1], -1)
            x = convolve(x, kernel, stride)
            x = jax.nn.relu((normalise(x) if layer_norm else x) + layer.bias[None, None])
        return forward(layers, x.reshape(-1), layer_norm).reshape(head)

    return Network(init, apply)


NETWORKS = {"minatar-conv": minatar_conv, "nature": nature}


def make_convolutional(
    name: str,
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int],
    stacked: bool,
    layer_norm: bool,
) -> Network:
    """A network for images, by its name: see `make_network`."""
    frames, *frame = observation if stacked else (1, *observation)
    image = (*frame[:2], frames * math.prod(frame[2:])) if stacked else tuple(observation)
    if len(image) != 3:
        raise ValueError("the observations are not images with channels: use --network mlp")
    network = NETWORKS[name](image, head, hidden, layer_norm=layer_norm)
    if not stacked:
        return network

    def apply(params, x):
        return network.apply(params, jnp.moveaxis(x, 0, 2).reshape(*x.shape[1:3], -1))

    return Network(network.init, apply)
