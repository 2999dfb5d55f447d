"""Fully connected networks, and what all networks are made of."""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from tsallax.networks.products import hidden_again, product

Params = Any


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


def normalise(x: Float[Array, "*rows features"]) -> Float[Array, "*rows features"]:
    """`(x - mean)/sd` over the features: layer normalisation (Ba et al. 2016)."""
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6)


def normalised(layer: Dense, x: Float[Array, "*rows inputs"]) -> Float[Array, "*rows outputs"]:
    """`x W`, normalised, `+ b`.

    There is no learned scale: a ReLU follows, so that the next layer's weights can stand for it.
    """
    return normalise(x @ layer.weight) + layer.bias.reshape((1,) * (x.ndim - 1) + (-1,))


def forward(
    layers: Sequence[Dense], x: Float[Array, "inputs"], layer_norm: bool = False
) -> Float[Array, "outputs"]:
    """ReLU after each layer but the last."""
    first, *rest = layers
    if layer_norm:
        for layer in layers[:-1]:
            x = jax.nn.relu(normalised(layer, x))
        return affine(layers[-1], x)
    if not rest:
        return affine(first, x)
    narrow = first.weight.shape[0] < first.weight.shape[1] // 8
    again = jax.lax.stop_gradient(hidden_again(*first, x)) if narrow else None
    x = jax.nn.relu(affine(first, x))
    for layer in rest[:-1]:
        weighted = x @ layer.weight if again is None else product(x, layer.weight, again)
        x, again = jax.nn.relu(weighted + layer.bias), None
    return affine(rest[-1], x)


def mlp(
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int] = (512, 512),
    layer_norm: bool = False,
) -> Network:
    """Fully connected layers with ReLU: FC512 - FC512 in Table 1."""
    sizes = (math.prod(observation), *hidden, math.prod(head))

    def apply(params, x):
        return forward(params, x.reshape(-1).astype(jnp.float32), layer_norm).reshape(head)

    return Network(lambda key: dense(key, list(pairwise(sizes))), apply)
