"""The Nature network against torch (golden/nature.npz) and against jax's own convolution."""

import functools
import math
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.hlo import AS_USERS
from tsallax.agents import OPTIMISERS, AgentState, make_agent
from tsallax.networks import Dense, Network, mlp, nature
from tsallax.networks.convolution import convolve
from tsallax.networks.convolutional import NATURE
from tsallax.operators import get_algorithm, make_hparams
from tsallax.types import HParams, Transition

SHAPE, HEAD, HIDDEN = (45, 58, 2), (3, 5), (16,)
KEPT = 17  # of a long array every 17th number is in the file
NETWORK = nature(SHAPE, HEAD, HIDDEN)

with np.load(Path(__file__).parents[1] / "golden" / "nature.npz", allow_pickle=False) as file:
    GOLDEN = dict(file)
BATCH = Transition(
    jnp.asarray(GOLDEN["images"][0]),
    jnp.asarray(GOLDEN["action"]),
    jnp.asarray(GOLDEN["reward"]),
    jnp.asarray(GOLDEN["terminated"]),
    jnp.asarray(GOLDEN["images"][1]),
)


def from_torch():
    """Torch's parameters in our layout: inputs first, channels last."""

    def layer(i, place):
        weight, bias = (
            np.float32(GOLDEN[f"init/{i}.{name}"] * np.float64(GOLDEN[f"scale/{i}.{name}"]))
            for name in ("weight", "bias")
        )
        return Dense(jnp.asarray(place(weight)), jnp.asarray(bias))

    def kernel(weight):
        return weight.transpose(2, 3, 1, 0).reshape(-1, weight.shape[0])

    def first(weight):
        return weight.reshape(16, 64, 2, 3).transpose(2, 3, 1, 0).reshape(-1, 16)

    return [layer(i, kernel) for i in (0, 2, 4)], [layer(7, first), layer(9, np.transpose)]


def to_torch(params) -> dict[str, np.ndarray]:
    """The same way back, and of each array the numbers that the file keeps."""
    (convs, (first, last)), out = params, {}
    for i, conv, (size, _, channels) in zip((0, 2, 4), convs, NATURE, strict=True):
        weight = np.asarray(conv.weight).reshape(size, size, -1, channels)
        out |= {f"{i}.weight": weight.transpose(3, 2, 0, 1), f"{i}.bias": conv.bias}
    weight = np.asarray(first.weight).reshape(2, 3, 64, 16)
    out |= {"7.weight": weight.transpose(3, 2, 0, 1), "7.bias": first.bias}
    out |= {"9.weight": np.asarray(last.weight).T, "9.bias": last.bias}
    return {name: np.ravel(x)[:: KEPT if x.size > 1000 else 1] for name, x in out.items()}


def naive(shape, head, hidden) -> Network:
    """The same parameters in jax's own convolution."""

    def apply(params, x):
        convs, layers = params
        x = x.astype(jnp.float32) / (255 if x.dtype == jnp.uint8 else 1)
        for layer, (size, stride, _) in zip(convs, NATURE, strict=True):
            kernel = layer.weight.reshape(size, size, x.shape[-1], -1)
            axes = ("NHWC", "HWIO", "NHWC")
            x = jax.lax.conv_general_dilated(
                x[None], kernel, (stride, stride), "VALID", dimension_numbers=axes
            )[0]
            x = jax.nn.relu(x + layer.bias[None, None])
        return mlp((x.size,), head, hidden).apply(layers, x)

    return Network(nature(shape, head, hidden).init, apply)


@functools.cache
def make_update(algorithm: str, network: Network = NETWORK):
    return jax.jit(make_agent(network, get_algorithm(algorithm)).update)


def make_learner(key) -> AgentState:
    """A target network of its own."""
    k_params, k_target = jax.random.split(key)
    params = NETWORK.init(k_params)
    return AgentState(params, NETWORK.init(k_target), OPTIMISERS["adam"]().init(params))


def assert_close(ours, expected):
    """To 1e-5 of each array's largest number."""
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-5 * np.abs(y).max())


def test_quantiles_are_torchs():
    apply = jax.jit(jax.vmap(NETWORK.apply, (None, 0)))
    assert_close(apply(from_torch(), BATCH.observation), GOLDEN["quantiles"])


def test_update_is_torchs():
    params = from_torch()
    learner = AgentState(params, params, OPTIMISERS["adam"]().init(params))
    hp = HParams(gamma=0.99, learning_rate=1e-3)
    learner, loss = make_update("dqn")(learner, BATCH, hp, jax.random.key(0))
    np.testing.assert_allclose(loss, GOLDEN["loss"], rtol=1e-5)
    gradient = jax.tree.map(lambda m: m / 0.1, learner.moments.mu)  # Adam's first mean
    for name, x in to_torch(gradient).items():
        want = GOLDEN[f"gradient/{name}"]
        assert np.abs(want).max() > 1e-4
        assert_close(x, want)
    for name, x in to_torch(learner.params).items():
        np.testing.assert_allclose(x, GOLDEN[f"after/{name}"], rtol=0, atol=1e-5)


def test_update_is_that_of_jaxs_convolution():
    learner, hp = make_learner(jax.random.key(1)), make_hparams("dqn")
    updates = [make_update("dqn", n) for n in (NETWORK, naive(SHAPE, HEAD, HIDDEN))]
    (ours, loss), (jaxs, want) = (f(learner, BATCH, hp, jax.random.key(0)) for f in updates)
    np.testing.assert_allclose(loss, want, rtol=1e-5)
    assert_close(ours.moments.mu, jaxs.moments.mu)


@pytest.mark.parametrize(("size", "stride"), [(8, 4), (4, 2), (3, 1), (5, 3)])
def test_derivatives_of_the_convolution(size, stride):
    """In both modes, of one image and of a batch, where the last rows are in no window too."""
    keys = jax.random.split(jax.random.key(0), 4)
    images, d_images = (jax.random.normal(k, (3, 13, 14, 2)) for k in keys[:2])
    kernel, d_kernel = (jax.random.normal(k, (size, size, 2, 4)) for k in keys[2:])

    def jaxs(images, kernel):
        axes = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            images, kernel, (stride, stride), "VALID", dimension_numbers=axes
        )

    def ours(images, kernel):
        return jax.vmap(lambda x, k: convolve(x, k, stride), (0, None))(images, kernel)

    def alone(images, kernel):
        return jnp.stack([convolve(x, kernel, stride) for x in images])

    def derivatives(function):
        return jax.jit(
            lambda *x: (
                jax.jvp(function, x, (d_images, d_kernel)),
                jax.grad(lambda *x: jnp.sum(jnp.sin(function(*x))), (0, 1))(*x),
            )
        )(images, kernel)

    want = derivatives(jaxs)
    assert_close(derivatives(ours), want)
    assert_close(derivatives(alone), want)


def test_convolutions_in_a_loop_have_their_axes_in_order():
    """Else XLA takes its slow path on a CPU. The images of the replay need no gradient."""
    network = nature((84, 84, 4), (3,), (16,))

    def loss(params, images):
        return jnp.sum(jax.vmap(network.apply, (None, 0))(params, images))

    def loop(params, batches):
        def body(params, images):
            return jax.tree.map(jnp.subtract, params, jax.grad(loss)(params, images)), None

        return jax.lax.scan(body, params, batches)[0]

    params = jax.eval_shape(network.init, jax.random.key(0))
    batches = jax.ShapeDtypeStruct((2, 32, 84, 84, 4), jnp.uint8)
    text = jax.jit(loop).lower(params, batches).compile(AS_USERS).as_text()
    orders = re.findall(r" convolution\(.*dim_labels=(\S+?)[, ]", text)
    assert orders == ["b01f_01io->b01f"] * (3 + 3 + 2)  # forward, kernels, images


def test_cells_side_by_side_are_those_alone():
    keys = jax.random.split(jax.random.key(2), 2)
    learners = [make_learner(key) for key in keys]
    batches = [BATCH, jax.tree.map(lambda x: x[::-1], BATCH)]
    hp, update = make_hparams("dqn"), make_update("dqn")
    stack = functools.partial(jax.tree.map, lambda *x: jnp.stack(x))
    both = jax.jit(jax.vmap(update, (0, 0, None, 0)))(stack(*learners), stack(*batches), hp, keys)
    each = [update(*x) for x in zip(learners, batches, [hp, hp], keys, strict=True)]
    for i, (learner, loss) in enumerate(each):
        np.testing.assert_allclose(both[1][i], loss, rtol=1e-5)
        assert_close(jax.tree.map(lambda x: x[i], both[0].moments.mu), learner.moments.mu)  # noqa: B023


@pytest.mark.parametrize(
    ("shape", "head", "features"),
    [((84, 84, 4), (6, 200), 7 * 7), ((84, 84, 1), (18,), 7 * 7), ((36, 40, 3), (2,), 1)],
)
def test_shapes_and_initial_bounds(shape, head, features):
    network = nature(shape, head)
    params = network.init(jax.random.key(0))
    layers = [*params[0], *params[1]]
    fan_in = [64 * shape[2], 16 * 32, 9 * 64, features * 64, 512]
    outputs = [32, 64, 64, 512, math.prod(head)]
    assert [layer.weight.shape for layer in layers] == list(zip(fan_in, outputs, strict=True))
    for layer, inputs in zip(layers, fan_in, strict=True):
        assert 0.95 < np.abs(layer.weight).max() * math.sqrt(inputs) <= 1
    x = jax.ShapeDtypeStruct(shape, jnp.uint8)
    assert jax.eval_shape(network.apply, params, x).shape == head


def test_bytes_are_divided_by_255_and_floats_are_not():
    params, apply = from_torch(), jax.jit(NETWORK.apply)
    image = BATCH.observation[0]
    scaled = apply(params, image.astype(jnp.float32) / 255)
    assert_close(apply(params, image), scaled)
    assert np.abs(apply(params, image.astype(jnp.float32)) - scaled).max() > 0.1


@pytest.mark.parametrize("shape", [(35, 84, 4), (84, 35, 4), (7, 7, 4), (10, 10, 4)])
def test_small_images_are_refused(shape):
    with pytest.raises(ValueError, match=f"36 x 36 or larger, not {shape[0]} x {shape[1]}"):
        nature(shape, (6,))
