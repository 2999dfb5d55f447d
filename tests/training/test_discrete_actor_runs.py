"""Runs of actor-critics with discrete actions, compiled and on the host, from start to file."""

import dataclasses

import numpy as np
import pytest

import tsallax
from support import host_envs, tiny  # noqa: F401 (one registers)
from tsallax import cli
from tsallax.learners import ActorMetrics
from tsallax.training.build import make_run
from tsallax.training.config import Config, agent_kind, to_json
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import from_json

OWN = {"algo": "tal-ac", "warmup": 20, "buffer": 100, "learner": "replay"}
ACTORS = (
    "fenchel-young",
    pytest.param("objective", marks=pytest.mark.slow),
    pytest.param("exact", marks=pytest.mark.slow),
)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"algo": "tal-ac", "learner": "parallel"}, "learns from a replay"),
        ({"algo": "sac", "q": (2.0,)}, "sac has q = 1; for another q use tac"),
        ({"algo": "tal-ac", "q": (float("inf"),)}, "q must be finite"),
        ({"algo": "tal-ac", "policy": "paper"}, "has the exact policy"),
        ({"algo": "tal-ac", "target_entropy": (-1.0,)}, "between 0 and 1"),
        ({"algo": "tal-ac", "density": "gaussian"}, "no option of tal-ac with discrete actions"),
        ({"algo": "tal-ac", "head": "quantile"}, "head is no option of tal-ac"),
        ({"algo": "tal", "actor": "exact"}, "actor is no option of tal"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, why):
    with pytest.raises(ValueError, match=why) as error:
        resolve(Config("CartPole-v1", **settings))
    assert "\n" not in str(error.value)


def test_the_environment_decides_which_kind_it_is():
    kinds = {"CartPole-v1": "discrete actor", "Pendulum-v1": "continuous actor"}
    for env, kind in kinds.items():
        config = resolve(Config(env, algo="tal-ac"))
        assert agent_kind(config) == kind
        assert from_json(to_json(config), 3) == config
    with pytest.raises(ValueError, match="actor is no option of tal-ac with continuous actions"):
        resolve(Config("Pendulum-v1", algo="tal-ac", actor="exact"))
    assert agent_kind(resolve(Config("CartPole-v1"))) == "value agent"
    assert resolve(Config("CartPole-v1", algo="sac")).actor == "objective"


@pytest.mark.parametrize("actor", ACTORS)
def test_seeds_and_numbers_side_by_side(actor, tmp_path):
    """And from there to a policy in Python and in a file."""
    result = tsallax.train("CartPole-v1", **{**tiny.TINY, **OWN}, actor=actor)
    assert result.metrics["loss"].shape == (2, 2, 3)
    assert np.isfinite(result.metrics["loss"]).all()
    assert set(ActorMetrics._fields) <= set(result.metrics)
    assert len(np.unique(result.metrics["loss"][:, :, -1])) == 4
    assert (result.metrics["width"] <= result.metrics["support"] * (1 + 1e-6)).all()
    assert (np.abs(result.metrics["kl"]).max() < 1e-6) == (actor == "exact")
    model, seen = result.model(), np.random.default_rng(0).normal(size=(5, 4))
    Q, pi = model.policy(seen)
    np.testing.assert_allclose(pi.sum(-1), 1, atol=1e-6)
    assert (model.predict(seen, deterministic=True)[0] == Q.argmax(-1)).all()
    assert set(model.predict(seen)[0].tolist()) <= {0, 1}
    assert model.to_onnx(tmp_path / "policy.onnx") < 1e-4


@pytest.mark.slow
def test_one_cell_is_the_same_alone_and_beside_others():
    """Nothing passes from one cell to the other, so that one that diverges goes alone."""
    shape = {**tiny.TINY, **OWN, "eval_every": 0}
    several = tsallax.train("CartPole-v1", **{**shape, "learning_rate": (1e-3, 1e30)})
    clean = tsallax.train("CartPole-v1", **shape)
    bad = several.metrics["diverged"][..., -1].reshape(2, 2, 2)  # q, rate, seed
    assert (bad[:, 0] == -1).all()
    assert (bad[:, 1] > 0).all()
    found = several.metrics["loss"].reshape(2, 2, 2, -1)[:, 0]
    np.testing.assert_allclose(found, clean.metrics["loss"], rtol=1e-4)


def test_images_have_a_convolution():
    how = {"hidden": (8,), "batch": 8, "target_period": 40, "steps": 80, "eval_every": 0}
    result = tsallax.train("MinAtar/Breakout", **{**OWN, **how})
    assert result.config.network == "minatar-conv"
    assert np.isfinite(result.metrics["loss"][..., -1]).all()


@pytest.mark.parametrize(
    "env", [tiny.ENV, pytest.param(tiny.HOST, marks=pytest.mark.slow)], ids=["compiled", "host"]
)
def test_a_folder_is_trained_extended_evaluated_and_played(env, tmp_path, capsys):
    out = str(tmp_path / "run")
    own = {**OWN, "steps": 80} | ({"seeds": 1, "q": 1.5} if env == tiny.HOST else {})
    assert cli.main(["train", env, *tiny.flags(env, **own), "--out", out]) == 0
    assert cli.main(["train", "--resume", out, "--steps", "120"]) == 0
    assert cli.main(["evaluate", out, "--episodes", "2", "--greedy"]) == 0
    if env == tiny.ENV:  # the other one has no pictures
        assert cli.main(["play", out, "--steps", "3", "--out", str(tmp_path / "play.gif")]) == 0
    assert "120 / 120 steps" in capsys.readouterr().out


def test_a_network_of_your_own_serves_actor_and_critics():
    run = make_run(
        dataclasses.replace(resolve(Config("CartPole-v1", algo="tal-ac")), network="own"),
        tsallax.networks.mlp((4,), (2,), (8,)),
    )
    params = run.learner.params()
    assert params.actor[0].weight.shape == params.critics[1][0].weight.shape == (1, 4, 8)
