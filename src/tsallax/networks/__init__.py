"""Q-networks of the paper's tables: plain `(init, apply)` pairs on one observation.

A user's own pair is accepted wherever a `Network` is: `apply(params, observation)` returns action
values `(A,)`, or quantiles `(A, N)`.
"""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from tsallax.networks.convolution import convolve

Params = Any
NATURE = ((8, 4, 32), (4, 2, 64), (3, 1, 64))  # size and stride of the windows, channels


class Network(NamedTuple):
    init: Callable[[PRNGKeyArray], Params]
    apply: Callable[[Params, Shaped[Array, "..."]], Float[Array, "A *N"]]


class Dense(NamedTuple):
    """An affine map, initialised as torch initialises its linear and convolution layers."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]


def dense(key: PRNGKeyArray, shapes: Sequence[tuple[int, int]]) -> list[Dense]:
    """Layers of these inputs and outputs: weights and biases uniform on `+-1/sqrt(inputs)`.

    All come from one draw: the random generator is what takes long to compile here.
    """
    ends = list(accumulate((inputs + 1) * outputs for inputs, outputs in shapes))
    draw = jax.random.uniform(key, (ends[-1],), minval=-1)
    parts = jnp.split(draw, ends[:-1])
    rows = [x.reshape(i + 1, o) / math.sqrt(i) for x, (i, o) in zip(parts, shapes, strict=True)]
    return [Dense(x[:-1], x[-1]) for x in rows]


def affine(layer: Dense, x: Float[Array, "*rows inputs"]) -> Float[Array, "*rows outputs"]:
    return x @ layer.weight + layer.bias.reshape((1,) * (x.ndim - 1) + (-1,))


def _forward(layers: Sequence[Dense], x: Float[Array, "inputs"]) -> Float[Array, "outputs"]:
    first, *rest = layers
    if not rest:
        return affine(first, x)
    narrow = first.weight.shape[0] < first.weight.shape[1] // 8
    again = jax.lax.stop_gradient(_hidden_again(first, x)) if narrow else None
    x = jax.nn.relu(affine(first, x))
    for layer in rest[:-1]:
        weighted = x @ layer.weight if again is None else _product(x, layer.weight, again)
        x, again = jax.nn.relu(weighted + layer.bias), None
    return affine(rest[-1], x)


def _hidden_again(layer: Dense, x: Float[Array, "inputs"]) -> Float[Array, "outputs"]:
    """`relu(x W + b)`, so written that `vmap` leaves a batch on the last axis: see `_product`."""
    rows = jnp.concatenate([layer.weight, layer.bias[None]])
    return jax.nn.relu(rows.T @ jnp.append(x, 1))


@jax.custom_jvp
def _product(x, weight, again):
    """`x W`; `again` is x once more, a batch of it being its transpose.

    The gradient of W is x' g. On a CPU XLA takes half as long again for a product whose left factor
    has to be transposed, and here the transpose is had for less: x has a narrow layer before it.
    """
    return x @ weight


@_product.defjvp
def _product_jvp(primals, tangents):
    x, weight, again = primals
    dx, dweight, _ = tangents
    return x @ weight, dx @ weight + jnp.tensordot(again, dweight, 1)


def mlp(
    observation: Sequence[int], head: Sequence[int], hidden: Sequence[int] = (512, 512)
) -> Network:
    """Fully connected layers with ReLU: FC512 - FC512 in Table 1."""
    sizes = (math.prod(observation), *hidden, math.prod(head))

    def apply(params, x):
        return _forward(params, x.reshape(-1).astype(jnp.float32)).reshape(head)

    return Network(lambda key: dense(key, list(pairwise(sizes))), apply)


def minatar_conv(
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int] = (128,),
    channels: int = 16,
) -> Network:
    """One 3x3 convolution of stride 1, then fully connected: Conv 3x3x16 - FC128 in Table 2.

    The convolution is a matrix product over patches: `vmap` over seeds would otherwise make a
    grouped convolution, which is slow on a CPU.
    """
    height, width, planes = observation
    rows, columns = height - 2, width - 2
    sizes = (rows * columns * channels, *hidden, math.prod(head))

    def init(key):
        conv, *layers = dense(key, [(9 * planes, channels), *pairwise(sizes)])
        return conv, layers

    def apply(params, x):
        conv, layers = params
        x = x.astype(jnp.float32)
        views = [x[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        patches = jnp.concatenate(views, -1).reshape(rows * columns, -1)
        return _forward(layers, jax.nn.relu(affine(conv, patches)).reshape(-1)).reshape(head)

    return Network(init, apply)


def nature(
    observation: Sequence[int], head: Sequence[int], hidden: Sequence[int] = (512,)
) -> Network:
    """The network for Atari of Mnih et al. 2015: three convolutions, then FC512.

    Bytes are divided by 255; images of floats are taken as they are.
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
            x = jax.nn.relu(convolve(x, kernel, stride) + layer.bias[None, None])
        return _forward(layers, x.reshape(-1)).reshape(head)

    return Network(init, apply)
