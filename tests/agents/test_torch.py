"""Layers, losses and optimisers against numbers that torch computed (golden/torch.npz)."""

import functools
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tsallax.agents import OPTIMISERS, AgentState, make_agent
from tsallax.networks import Dense, dense, minatar_conv, mlp
from tsallax.operators import get_algorithm
from tsallax.types import HParams, Transition

with np.load(Path(__file__).parents[1] / "golden" / "torch.npz", allow_pickle=False) as file:
    GOLDEN = dict(file)

CASES = {
    "mlp-adam-squared": HParams(learning_rate=1e-3),
    "mlp-adam-huber": HParams(learning_rate=1e-3, max_grad_norm=10.0),
    "mlp-adam-huber-clipped": HParams(learning_rate=1e-3, max_grad_norm=0.05),
    "conv-rmsprop-squared": HParams(learning_rate=2.5e-4),
    "conv-rmsprop-huber": HParams(learning_rate=2.5e-4, max_grad_norm=10.0),
    "conv-rmsprop-huber-clipped": HParams(learning_rate=2.5e-4, max_grad_norm=0.05),
}
NETWORKS = {
    "mlp": mlp((3,), (2,), hidden=(5, 4)),
    "conv": minatar_conv((6, 6, 2), (3,), hidden=(8,), channels=4),
}


def linear(state: dict[str, np.ndarray], name: str) -> Dense:
    return Dense(jnp.asarray(state[f"{name}.weight"].T), jnp.asarray(state[f"{name}.bias"]))


def from_torch(kind: str, state: dict[str, np.ndarray]):
    """Torch's parameters in our layout: inputs first, channels last."""
    if kind == "mlp":
        return [linear(state, name) for name in ("0", "2", "4")]
    # A patch is (dy, dx, plane), torch's is (plane, dy, dx).
    kernel = state["0.weight"].transpose(2, 3, 1, 0).reshape(9 * 2, 4)
    # The feature map is (row, column, channel), torch's is (channel, row, column).
    first = state["3.weight"].reshape(8, 4, 4, 4).transpose(2, 3, 1, 0).reshape(64, 8)
    return (
        Dense(jnp.asarray(kernel), jnp.asarray(state["0.bias"])),
        [Dense(jnp.asarray(first), jnp.asarray(state["3.bias"])), linear(state, "5")],
    )


def golden(case: str, folder: str) -> dict[str, np.ndarray]:
    prefix = f"{case}/{folder}/"
    return {name.removeprefix(prefix): x for name, x in GOLDEN.items() if name.startswith(prefix)}


@functools.cache
def make_update(kind: str, optimiser: str, loss: str):
    """At gamma = 0 DQN's target is the reward."""
    network, dqn = NETWORKS[kind], get_algorithm("dqn")
    return jax.jit(make_agent(network, dqn, optimiser=optimiser, loss=loss).update)


@pytest.mark.parametrize("case", CASES)
def test_updates_are_torchs(case):
    kind, optimiser, loss, *_ = case.split("-")
    hp = CASES[case]._replace(gamma=0.0)
    params = from_torch(kind, golden(case, "init"))
    learner = AgentState(params, params, OPTIMISERS[optimiser]().init(params))
    update = make_update(kind, optimiser, loss)
    losses = []
    for i in range(3):
        observation = jnp.asarray(GOLDEN[f"{case}/observation"][i])
        batch = Transition(
            observation if kind == "mlp" else observation.astype(bool),
            jnp.asarray(GOLDEN[f"{case}/action"][i]),
            jnp.asarray(GOLDEN[f"{case}/y"][i]),
            jnp.zeros(6, bool),
            observation if kind == "mlp" else observation.astype(bool),
        )
        learner, value = update(learner, batch, hp, jax.random.key(0))
        losses.append(value)
        if i in (0, 2):
            expected = from_torch(kind, golden(case, f"after{i + 1}"))
            for ours, torchs in zip(
                jax.tree.leaves(learner.params), jax.tree.leaves(expected), strict=True
            ):
                np.testing.assert_allclose(ours, torchs, rtol=0, atol=1e-6)
    np.testing.assert_allclose(losses, GOLDEN[f"{case}/losses"], rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, learner.target_params, params)


def test_the_clipped_cases_clip():
    """The file holds cases on both sides of the bound, so the test above says something."""
    assert all((GOLDEN[f"{c}/norms"] > 0.05).all() for c in CASES if c.endswith("clipped"))
    assert all((GOLDEN[f"{c}/norms"] < 10).all() for c in CASES)


@pytest.mark.parametrize(("kind", "inputs"), [("linear", 9), ("conv", 9 * 4)])
def test_initialisation_is_torchs(kind, inputs):
    """Uniform on +-1/sqrt(inputs), weight and bias, as the quantiles of torch's own draws are."""
    (draws,) = dense(jax.random.key(0), [(inputs, 6400)])
    bound = 1 / math.sqrt(inputs)
    for name, values in draws._asdict().items():
        values = np.asarray(values).ravel()
        assert np.abs(values).max() <= bound
        assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3
        quantiles = np.quantile(values, np.linspace(0, 1, 21))
        # 6,400 biases: a quantile's standard error is at most 0.0063 of the width.
        np.testing.assert_allclose(quantiles, GOLDEN[f"{kind}/{name}"], atol=0.03 * 2 * bound)


@pytest.mark.parametrize(
    ("network", "fan_in"),
    [
        (mlp((5, 2), (3, 7), hidden=(40,)), [10, 40]),
        (minatar_conv((6, 6, 2), (3, 7), hidden=(8,), channels=4), [18, 64, 8]),
    ],
    ids=["mlp", "conv"],
)
def test_every_layer_has_its_own_bound_and_key(network, fan_in):
    params = network.init(jax.random.key(1))
    layers = params if isinstance(params, list) else [params[0], *params[1]]
    assert [layer.weight.shape[0] for layer in layers] == fan_in
    for layer, inputs in zip(layers, fan_in, strict=True):
        extent = np.abs(layer.weight).max() * math.sqrt(inputs)
        assert 0.9 < extent <= 1
    # Layers share no draws: no two begin with the same share of their bounds.
    pairs = zip(layers, fan_in, strict=True)
    starts = [float(x.ravel()[0]) * math.sqrt(n) for layer, n in pairs for x in layer]
    assert len(set(np.round(starts, 5))) == 2 * len(fan_in)


def test_rmsprop_stays_finite_on_a_gradient_that_settles():
    """Its variance then rounds to somewhat less than 0 in float32: optax's form gives NaN."""
    transform = OPTIMISERS["rmsprop"]()
    settled = 10 ** jnp.linspace(-3, 2, 1000)

    def step(moments, t):
        direction, moments = transform.update(settled * jnp.where(t < 30, 2, 1), moments)
        return moments, jnp.all(jnp.isfinite(direction))

    moments = transform.init(settled)
    finite = jax.jit(lambda: jax.lax.scan(step, moments, jnp.arange(500))[1])()
    assert finite.all()
