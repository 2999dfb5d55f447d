"""The networks as ONNX graphs: the layers of `tsallax.networks`, on a batch."""

import math
from typing import Any

import jax
import numpy as np

from tsallax.export.graph import Value
from tsallax.networks.convolutional import NATURE
from tsallax.networks.dense import Dense, Params

CONVOLUTIONS = {"minatar-conv": ((3, 1),), "nature": tuple((s, stride) for s, stride, _ in NATURE)}
NORM_EPSILON = 1e-6  # of `normalise`


def action_values(
    name: str,
    params: Params,
    x: Value,
    observation: jax.ShapeDtypeStruct,
    num_actions: int,
    stacked: bool,
    layer_norm: bool,
    dueling: bool = False,
) -> Value:
    """`Q(s, .)` of a network of `make_network`; the mean of quantiles.

    Args:
        name: the name of the network.
        params: its parameters.
        x: a batch of observations.
        observation: the shape and dtype of one observation.
        num_actions: the number of columns of the result.
        stacked: whether the first axis of an observation is its frames.
        layer_norm: whether the input of each ReLU is normalised.
        dueling: whether the first row of the output is a value, and the rest advantages.
    """
    shape = observation.shape
    x = x.as_float()
    if name == "mlp":
        layers = params
    else:
        convolutions, layers = params
        convolutions = [convolutions] if isinstance(convolutions, Dense) else convolutions
        if stacked:  # frames become channels
            x = x.transpose(0, 2, 3, 1, *range(4, len(shape) + 1))
            shape = (*shape[1:3], shape[0] * math.prod(shape[3:]))
            x = x.reshape(-1, *shape)
        if name == "nature" and observation.dtype == np.uint8:
            x = x / 255
        for layer, (size, stride) in zip(convolutions, CONVOLUTIONS[name], strict=True):
            x = _convolution(x, layer, size, stride, layer_norm).relu()
    x = x.graph.add("Flatten", x)
    for layer in layers[:-1]:
        x = _affine(x, layer, layer_norm).relu()
    last = _folded(layers[-1], num_actions) if dueling else layers[-1]
    x = _affine(x, last, layer_norm=False)
    quantiles = np.shape(last.bias)[0] // num_actions
    if quantiles == 1:
        return x
    return x.reshape(-1, num_actions, quantiles).mean().reshape(-1, num_actions)


def _folded(layer: Dense, num_actions: int) -> Dense:
    """The weights of an equivalent plain head, as `V + A - mean A` is linear."""
    rows = [np.asarray(x).reshape(*np.shape(x)[:-1], 1 + num_actions, -1) for x in layer]
    parts = [np.split(x, [1], axis=-2) for x in rows]
    made = [V + A - A.mean(-2, keepdims=True) for V, A in parts]
    return Dense(*(x.reshape(*x.shape[:-2], -1) for x in made))


def _affine(x: Value, layer: Dense, layer_norm: bool) -> Value:
    weight, bias = map(np.asarray, layer)
    if not layer_norm:
        return x.graph.add("Gemm", x, weight, bias)
    return _normalised(x.graph.add("MatMul", x, weight), bias)


def _convolution(x: Value, layer: Dense, size: int, stride: int, layer_norm: bool) -> Value:
    """A convolution with the channels last, as in our networks; ONNX has them first."""
    weight, bias = map(np.asarray, layer)
    kernel = weight.reshape(size, size, -1, weight.shape[-1]).transpose(3, 2, 0, 1)
    own: list[Any] = [kernel] if layer_norm else [kernel, bias]
    y = x.graph.add("Conv", x.transpose(0, 3, 1, 2), *own, strides=[stride, stride])
    y = y.transpose(0, 2, 3, 1)
    return _normalised(y, bias) if layer_norm else y


def _normalised(x: Value, bias: np.ndarray) -> Value:
    """Layer normalisation over the last axis, then the layer's bias; there is no learned scale."""
    ones = np.ones_like(bias)
    return x.graph.add("LayerNormalization", x, ones, bias, axis=-1, epsilon=NORM_EPSILON)
