"""A run that starts from another run's weights."""

import json
import re
import shutil

import jax
import numpy as np
import pytest

import tsallax
from support import host_envs, tiny  # noqa: F401 (one registers)
from tsallax import cli
from tsallax.learners.device import own_buffers
from tsallax.storage.run_folder import read_about
from tsallax.training.build import make_run
from tsallax.training.driver import Silent, train_into
from tsallax.training.initial import take_initial
from tsallax.training.stored_config import load_weights, read_run

PARALLEL = {
    "learner": "parallel", "hidden": (8,), "seeds": 2, "num_envs": 2, "rollout": 20, "epochs": 1,
    "minibatches": 2, "target_period": 40, "steps": 80, "eval_every": 40, "eval_episodes": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny.train(tmp_path_factory.mktemp("initial") / "source")


def weights(path, best):
    config, about = read_run(path)
    return load_weights(path, about, make_run(config).learner.params(), best)


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("kind", ["best", "last"])
def test_every_cell_starts_from_the_chosen_weights(kind, source):
    """The moments are those of a fresh start, and so is everything else of the state."""
    config = tiny.config(init_from=str(source), init_weights=kind, init_cell=2)
    run = make_run(config)
    initial = take_initial(run)
    assert initial.source | {"weights": kind, "cell": 2, "env": "CartPole-v1"} == initial.source
    state, fresh = run.learner.start(initial.params), own_buffers(run.learner.start())
    taken = jax.tree.map(lambda x: np.repeat(x[2:3], 4, 0), weights(source, kind == "best"))
    same(state.agent.params, taken)
    same(state.agent.target_params, taken)
    same(state.agent.moments, fresh.agent.moments)
    same(state.observation, fresh.observation)


def test_the_cell_with_the_best_evaluation_is_taken_unless_one_is_named(source):
    best = read_about(source).everything["best"]["return"]
    initial = take_initial(make_run(tiny.config(init_from=str(source))))
    assert initial.source["cell"] == int(np.argmax(best))
    assert initial.source["weights"] == "best"


CASES = {
    "replay on the host": (tiny.HOST, {"seeds": 1, "q": (1.5,)}),
    "parallel": ("CartPole-v1", PARALLEL),
    "parallel on the host": (tiny.HOST, PARALLEL),
    "actor-critic": ("Pendulum-v1", {
        "algo": "tal-ac", "hidden": (8,), "batch": 8, "buffer": 100, "target_period": 40,
        "steps": 80, "warmup": 8, "seeds": 1, "eval_every": 40, "eval_episodes": 1,
    }),
    "replay, discrete actor": ("CartPole-v1", {"algo": "tal-ac", "seeds": 1, "q": (1.5,)}),
}  # fmt: skip


QUICK = ("replay on the host", "parallel")


@pytest.mark.parametrize(
    "case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow) for c in CASES]
)
def test_every_learner_starts_from_another_run(case, tmp_path):
    env, own = CASES[case]
    if "replay" in case:
        own = {**tiny.TINY, **own}
    first = tsallax.train(env, **own).save(tmp_path / "first")
    last = weights(first, best=False)
    config, _ = read_run(first)
    other = tsallax.train(env, **own, init_from=first, init_weights="last", first_seed=5)
    run = make_run(other.config)
    state = run.learner.start(take_initial(run).params)
    chosen = other.initial.source["cell"]
    params = jax.tree.map(lambda x: np.repeat(x[chosen : chosen + 1], config.seeds, 0), last)
    same(state.agent.params, params)
    same(state.agent.target_params, getattr(params, "critics", params))
    saved = read_about(other.save(tmp_path / "other")).everything
    assert saved["initial"]["run"] == str(first)
    assert "initial.safetensors" in saved["files"]


def test_a_run_is_repeated_without_the_other_folder(source, tmp_path):
    """Killed before its first checkpoint, with the source gone: to the bit what it would be."""
    there = shutil.copytree(source, tmp_path / "there")
    run = make_run(tiny.config(init_from=str(there)))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert train_into(run, whole, Silent()).status == "done"

    class Killed(Silent):
        def __call__(self, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_into(run, cut, Killed())
    shutil.rmtree(there)
    told = []
    assert train_into(run, cut, Silent(), say=told.append).status == "done"
    assert "from the beginning" in told[0]
    for name in ("metrics.csv", "weights.safetensors", "initial.safetensors"):
        assert (whole / name).read_bytes() == (cut / name).read_bytes()
    assert tsallax.load(cut).params is not None


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"hidden": (9,)}, r"another network: hidden is \[8\] there and \[9\] here"),
        ({"layer_norm": True}, "layer_norm is False there and True here"),
        ({"init_cell": 4}, "has cells 0 to 3, not 4"),
    ],
)
def test_another_network_is_refused_in_a_line_before_there_is_a_folder(
    more, why, source, tmp_path, capsys
):
    words = tiny.flags(**{"init_from": source, **more})
    out = tmp_path / "run"
    assert cli.main(["train", "CartPole-v1", *words, "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert re.search(why, line)
    assert not out.exists()


def test_another_environment_is_refused_by_its_shapes(source):
    run = make_run(tiny.config(tiny.HOST, init_from=str(source)))
    with pytest.raises(ValueError, match=r"\[0\].weight is 4 x 8 there and 3 x 8 here"):
        take_initial(run)


def test_what_has_no_weights_is_refused(source, tmp_path):
    there = shutil.copytree(source, tmp_path / "there")
    run = make_run(tiny.config(init_from=str(there)))
    about = json.loads((there / "run.json").read_text())
    (there / "run.json").write_text(json.dumps(about | {"cells": None}))
    with pytest.raises(ValueError, match=r"damaged run\.json"):
        take_initial(run)
    (there / "run.json").write_text(json.dumps(about | {"files": {}}))
    with pytest.raises(ValueError, match=r"no weights that run\.json lists"):
        take_initial(run)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        take_initial(make_run(tiny.config(init_from=str(tmp_path / "none"))))
    with pytest.raises(ValueError, match="init_weights and init_cell need init_from"):
        tiny.config(init_cell=1)
