"""ONNX files against our own policies, run by onnxruntime."""

import math
from dataclasses import replace
from unittest import mock

import jax
import numpy as np
import onnx
import pytest

import tsallax
from support import tiny
from support.configs import paper
from tsallax import cli, export
from tsallax.networks import make_network
from tsallax.policies import tsallis_policy
from tsallax.training import onnx_file
from tsallax.training.model import Model
from tsallax.training.onnx_file import INPUT, policy_file, random_observations, run_file
from tsallax.types import HParams

QS = (0.3, 0.9, 1.0, 1.01, 1.5, 1.99, 2.0, 2.5, 4.0, math.inf)
VECTOR = jax.ShapeDtypeStruct((4,), np.float32)
NETWORKS = {
    "mlp": ("CartPole-v1", VECTOR, {"hidden": (64, 64)}),
    "minatar-conv": ("MinAtar/Breakout", jax.ShapeDtypeStruct((10, 10, 4), np.bool_), {}),
    "nature": ("ALE/Pong-v5", jax.ShapeDtypeStruct((4, 84, 84), np.uint8), {"hidden": (64,)}),
}


def numbers(q: float, alpha: float = 0.03) -> HParams:
    hp = tsallax.make_hparams("tal", q=q, alpha=alpha, k=1.0 if q == 1 else 0.5)
    return jax.tree.map(np.float32, hp)


def made(
    name: str,
    q: float = 2.0,
    head: str = "scalar",
    layer_norm: bool = False,
    dueling: bool | None = None,
):
    """A configuration, fresh weights and the agent's own policy."""
    env, observation, more = NETWORKS[name]
    config = replace(paper(env), head=head, quantiles=5, layer_norm=layer_norm, policy="exact")
    config = replace(config, dueling=dueling, **more)
    shape = (6, *((5,) if head == "quantile" else ()))
    how = config.hidden, bool(config.stack), layer_norm, bool(dueling)
    network = make_network(config.network, observation.shape, shape, *how)
    params = network.init(jax.random.key(1))

    values = jax.jit(jax.vmap(lambda x: network.apply(params, x).reshape(6, -1).mean(-1)))

    def own(x):
        """In two programs: a policy is that of the very values that it is compared for."""
        Q = values(x)
        return Q, tsallis_policy(Q, q, 0.03, 1.0 if q == 1 else 0.5)

    assert config.network == name
    return config, params, observation, own


@pytest.mark.parametrize("q", QS)
def test_policies_of_the_same_values_agree(q):
    """Values over many decades, ties, and one action alone; the numbers are constants."""
    rng = np.random.default_rng(0)
    Q = rng.normal(size=(600, 6)) * 10.0 ** rng.uniform(-4, 2, (600, 1))
    Q[:50, 2] = Q[:50, 4]
    Q[50:60] = 0
    Q = Q.astype(np.float32)
    graph, hp = export.Graph(), numbers(q)
    value = export.Value(graph, INPUT)
    pi = onnx_file._policy("tal", value, 6, q, float(hp.alpha), float(hp.k))
    data = graph.model(
        {INPUT: (np.float32, (6,))}, {"action_values": (value, 6), "pi": (pi, 6)}, {}, "0"
    )
    same, found = run_file(data, Q)
    np.testing.assert_array_equal(same, Q)
    own = np.asarray(tsallis_policy(Q, q, float(hp.alpha), float(hp.k)))
    np.testing.assert_allclose(found, own, atol=1e-5)
    np.testing.assert_array_equal(found.argmax(-1), own.argmax(-1))


@pytest.mark.parametrize(
    ("layer_norm", "dueling"), [(False, None), (True, None), (False, True), (True, True)]
)
@pytest.mark.parametrize("head", ["scalar", "quantile"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_agree(name, head, layer_norm, dueling):
    config, params, observation, own = made(name, 1.5, head, layer_norm, dueling)
    x = random_observations(observation, 20)
    Q, pi = run_file(policy_file(config, params, numbers(1.5), observation), x)
    own_Q, own_pi = own(x)
    np.testing.assert_allclose(Q, own_Q, atol=1e-6)
    np.testing.assert_allclose(pi, own_pi, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_thousand_observations_agree(name, q):
    config, params, observation, own = made(name, q)
    x = random_observations(observation, 1000)
    Q, pi = run_file(policy_file(config, params, numbers(q), observation), x)
    own_Q, own_pi = own(x)
    np.testing.assert_allclose(Q, own_Q, atol=1e-5)
    np.testing.assert_allclose(pi, own_pi, atol=1e-5)


def test_log1p_keeps_what_a_sum_with_one_loses():
    graph = export.Graph()
    x = np.array([[-1, -0.5, -1e-9, 0, 1e-9, 1e-4, 3]], np.float32)
    value = export.Value(graph, INPUT)
    out = value.log1p()
    data = graph.model(
        {INPUT: (np.float32, (7,))}, {"action_values": (value, 7), "pi": (out, 7)}, {}, "0"
    )
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(run_file(data, x)[1], np.log1p(x), rtol=1e-6)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return tiny.train(tmp_path_factory.mktemp("onnx") / "run")


def test_the_command_writes_the_policy_of_a_run(trained, tmp_path, capsys):
    out = tmp_path / "new" / "policy.onnx"
    assert cli.main(["export", str(trained), "--cell", "3", "--out", str(out)]) == 0
    assert "pi differs from ours by" in capsys.readouterr().out
    model = tsallax.load(trained, 3)
    x = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    for found, own in zip(run_file(out.read_bytes(), x), model.policy(x), strict=True):
        np.testing.assert_allclose(found, own, atol=1e-5)
    about = {p.key: p.value for p in onnx.load(out).metadata_props}
    assert about == {
        "environment": "CartPole-v1",
        "algorithm": "tal",
        "q": "3",
        "alpha": f"{float(model.hp.alpha):g}",
        "k": "0.5",
    }


def test_a_graph_that_disagrees_is_not_written(trained, tmp_path):
    with (
        mock.patch.object(export, "entmax", lambda Q, q, t, n: export.softmax(Q, t)),
        pytest.raises(ValueError, match="does not agree"),
    ):
        tsallax.load(trained, 0).to_onnx(tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"policy": "paper"}, "the policy 'paper' cannot be exported"),
        ({"network": "own"}, "a custom network cannot be exported"),
        ({"algo": "tal-ac"}, "tal-ac has continuous actions"),
    ],
)
def test_what_cannot_be_exported_is_refused(trained, tmp_path, fields, why):
    model = tsallax.load(trained, 0)
    assert isinstance(model, Model)
    assert model._config is not None
    model._config = replace(model._config, **fields)
    with pytest.raises(ValueError, match=why):
        model.to_onnx(tmp_path / "policy.onnx")
