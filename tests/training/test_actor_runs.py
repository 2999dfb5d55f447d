"""Runs of actor-critics: what is refused, grids, resumption, predictions within the bounds."""

import numpy as np
import pytest

import tsallax
from tsallax import cli
from tsallax.training.config import Config, to_json
from tsallax.training.resolve import resolve

TINY = {"hidden": (8,), "batch": 8, "warmup": 20, "buffer": 100, "target_period": 40, "steps": 120}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"algo": "tal-ac", "learner": "parallel"}, "learns from a replay"),
        ({"algo": "munchausen-sac", "density": "q-gaussian"}, "bounded support"),
        ({"algo": "sac", "q": (2.0,)}, "sac has q = 1; for another q use tac"),
        ({"algo": "tal-ac", "q": (9.0,)}, "at most 4"),
        ({"algo": "tal-ac", "density": "q-gaussian", "q": (0.5,)}, "q >= 1"),
        ({"algo": "tal-ac", "loss": "huber"}, "loss is no option of tal-ac"),
        ({"algo": "tal", "clip_above": (1.0,)}, "clip_above is no option of tal"),
        ({"algo": "tal-ac", "network": "nature"}, "takes vectors"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, why):
    with pytest.raises(ValueError, match=why) as error:
        resolve(Config("Pendulum-v1", **settings))
    assert "\n" not in str(error.value)


def test_continuous_actions_are_for_actor_critics():
    with pytest.raises(ValueError, match="continuous actions"):
        tsallax.train("Pendulum-v1", algo="tal", steps=500)


def test_value_agents_have_the_old_configuration():
    assert not {"tau", "density", "automatic_alpha"} & set(to_json(resolve(Config("CartPole-v1"))))
    found = resolve(Config("Pendulum-v1", algo="tal-ac"))
    assert (found.automatic_alpha, found.learning_rate) == (True, (1e-3,))
    assert not resolve(Config("Pendulum-v1", algo="tal-ac", alpha=(0.2,))).automatic_alpha


@pytest.fixture(scope="module")
def result():
    return tsallax.train(
        "Pendulum-v1", algo="tal-ac", density="q-gaussian", q=(1.5, 2.0), seeds=2, **TINY
    )


def test_seeds_and_numbers_side_by_side(result):
    assert result.metrics["loss"].shape == (2, 2, 3)
    assert np.isfinite(result.metrics["loss"]).all()
    assert (result.metrics["support"] < 1).all()
    assert (result.metrics["temperature"] > 0).all()
    assert len(np.unique(result.metrics["loss"][:, :, -1])) == 4


def test_predictions_are_within_the_bounds(result):
    model, seen = result.model(), np.random.default_rng(0).normal(size=(5, 3))
    drawn, _ = model.predict(seen)
    centre, _ = model.predict(seen, deterministic=True)
    assert drawn.shape == centre.shape == (5, 1)
    assert (np.abs(drawn) <= 2).all()
    assert (model.predict(seen, deterministic=True)[0] == centre).all()
    Q, pi = model.policy(seen[0])
    assert Q.shape == (1,)
    np.testing.assert_allclose(pi.mean(-1) * 2, 1, atol=0.1)  # the densities' mass


def test_a_folder_is_trained_evaluated_and_played(tmp_path, capsys):
    flags = [
        x
        for n, v in TINY.items()
        for x in (f"--{n.replace('_', '-')}", *map(str, v if isinstance(v, tuple) else (v,)))
    ]
    out = str(tmp_path / "run")
    assert cli.main(["train", "Pendulum-v1", "--algo", "tal-ac", *flags, "--out", out]) == 0
    assert cli.main(["evaluate", out, "--episodes", "2", "--greedy"]) == 0
    video = str(tmp_path / "play.gif")
    assert cli.main(["play", out, "--steps", "3", "--out", video]) == 0
    assert "all: -" in capsys.readouterr().out
