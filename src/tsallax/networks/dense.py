"""Networks by name, the fully connected one, and the layers that all of them share."""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from tsallax.networks.products import hidden_again, product, to_one

Params = Any


class Network(NamedTuple):
    init: Callable[[PRNGKeyArray], Params]
    apply: Callable[[Params, Any], Float[Array, "A *N"]]  # of one observation
    # The same for a batch, where that is faster than `vmap`.
    batch: Callable[[Params, Any], Float[Array, "batch A *N"]] | None = None


class Dense(NamedTuple):
    """An affine map, initialised like torch's linear and convolution layers."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]


def dense(key: PRNGKeyArray, shapes: Sequence[tuple[int, int]]) -> list[Dense]:
    """Layers of these inputs and outputs: weights and biases uniform on `+-1/sqrt(inputs)`.

    All come from one draw, as the random generator takes most of the compile time here.
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

    There is no learned scale: a ReLU follows, so the next layer's weights can represent it.
    """
    return normalise(x @ layer.weight) + layer.bias.reshape((1,) * (x.ndim - 1) + (-1,))


def forward(
    layers: Sequence[Dense], x: Float[Array, "inputs"], layer_norm: bool = False
) -> Float[Array, "outputs"]:
    """Fully connected layers, with a ReLU after each but the last."""
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
    last = rest[-1]
    return to_one(x, last.weight) + last.bias if last.bias.shape == (1,) else affine(last, x)


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


def make_network(
    name: str,
    observation: Sequence[int],
    head: Sequence[int],
    hidden: Sequence[int],
    stacked: bool = False,
    layer_norm: bool = False,
    dueling: bool = False,
) -> Network:
    """A network by its name.

    Args:
        name: `mlp`, `minatar-conv` or `nature`.
        observation: the shape of an observation.
        head: the shape of the output.
        hidden: widths of the fully connected layers.
        stacked: the first axis of an observation is its frames, which become channels.
        layer_norm: normalise the input of each ReLU.
        dueling: `Q = V + A - mean A`, see `duel`.
    """
    if dueling:
        rows = 1 + head[0], *head[1:]
        return duel(make_network(name, observation, rows, hidden, stacked, layer_norm))
    if name == "mlp":
        return mlp(observation, head, hidden, layer_norm)
    from tsallax.networks.convolutional import make_convolutional  # a circular import

    return make_convolutional(name, observation, head, hidden, stacked, layer_norm)


def duel(network: Network) -> Network:
    """`Q = V + A - mean A` (Wang et al. 2016): the first row of the network's output is V.

    Both share all hidden layers, as in Dopamine's Rainbow; in the paper each has its own one.
    """

    def apply(params, x):
        V, A = jnp.split(network.apply(params, x), [1])
        return V + A - jnp.mean(A, 0, keepdims=True)

    return Network(network.init, apply)


def is_image(shape: Sequence[int], dtype: Any) -> bool:
    """Returns whether a frame of this shape is an image, not a vector or a table of numbers."""
    return len(shape) > 2 or (len(shape) == 2 and dtype == jnp.uint8)


def output_shape(network: Network, observation: jax.ShapeDtypeStruct) -> tuple[int, ...]:
    """The shape of a network's output."""

    def output(key, x):
        return network.apply(network.init(key), x)

    return jax.eval_shape(output, jax.random.key(0), observation).shape
