"""Layer normalisation and the duelling head, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.networks import Dense, make_network, minatar_conv, mlp
from tsallax.networks.dense import Network, duel

NETWORKS = {"mlp": (5,), "minatar-conv": (6, 6, 2), "nature": (36, 36, 1)}
HEADS = {"scalar": (3,), "quantile": (3, 4)}


def test_layer_norm_golden():
    """x W = (1, 3): mean 2, deviation 1, so (-1, 1); + b = (-1, 3); ReLU (0, 3); 2 x 3 + 1."""
    network = mlp((1,), (1,), hidden=(2,), layer_norm=True)
    one = jnp.ones
    params = [
        Dense(jnp.array([[1.0, 3.0]]), jnp.array([0.0, 2.0])),
        Dense(jnp.array([[5.0], [2.0]]), one(1)),
    ]
    np.testing.assert_allclose(network.apply(params, one(1)), [7], rtol=1e-5)
    # The scale of the weights before it does not matter.
    larger = [params[0]._replace(weight=8 * params[0].weight), params[1]]
    np.testing.assert_allclose(network.apply(larger, one(1)), [7], rtol=1e-5)


def test_duelling_golden():
    """V = 10, A = (1, 2, 6), mean 3: Q = (8, 9, 13)."""
    echo = duel(Network(lambda key: (), lambda params, x: x))
    np.testing.assert_array_equal(echo.apply((), jnp.array([10.0, 1, 2, 6])), [8, 9, 13])


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_constant_added_to_the_advantages_changes_nothing(name, head):
    """But one added to V is added to every action: of the last layer, V has the first outputs."""
    observation, shape = NETWORKS[name], HEADS[head]
    network = make_network(name, observation, shape, (8,), dueling=True)
    params = network.init(jax.random.key(0))
    x = jax.random.uniform(jax.random.key(1), observation)
    layers = params if name == "mlp" else params[1]
    atoms = len(layers[-1].bias) // 4

    def with_bias(shift):
        own = [*layers[:-1], layers[-1]._replace(bias=layers[-1].bias + shift)]
        return network.apply(own if name == "mlp" else (params[0], own), x)

    Q = with_bias(0)
    assert Q.shape == shape
    apart = np.arange(4 * atoms) >= atoms
    np.testing.assert_allclose(with_bias(2.0 * apart), Q, atol=1e-5)
    np.testing.assert_allclose(with_bias(2.0 * ~apart), Q + 2, atol=1e-5)


def test_stacked_frames_duel_too():
    network = make_network("nature", (2, 36, 36), (3,), (8,), stacked=True, dueling=True)
    x = jnp.zeros((2, 36, 36), jnp.uint8)
    assert jax.eval_shape(lambda: network.apply(network.init(jax.random.key(0)), x)).shape == (3,)


def test_a_batch_of_images_gives_what_each_gives_alone():
    network = minatar_conv((5, 4, 2), (3, 2), hidden=(8,), channels=4, layer_norm=True)
    k_init, k_images = jax.random.split(jax.random.key(0))
    params, images = network.init(k_init), jax.random.bernoulli(k_images, 0.3, (6, 5, 4, 2))
    alone = jnp.stack([network.apply(params, image) for image in images])
    assert network.batch
    np.testing.assert_allclose(network.batch(params, images), alone, rtol=1e-5, atol=1e-6)
    assert alone.shape == (6, 3, 2)
    assert len(np.unique(alone[:, 0, 0])) == 6
