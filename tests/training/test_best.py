"""The best evaluated weights, and the end of a run that has reached what was asked."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from support.configs import paper
from tsallax import cli
from tsallax.training.build import make_run
from tsallax.training.config import to_json
from tsallax.training.driver import Best, Silent, periods, train_into
from tsallax.training.stored_config import from_json, load_weights, read_run

TINY = {"hidden": (8,), "steps": 400, "target_period": 40, "batch": 8, "buffer": 100, "seeds": 2}
EVALUATED = {**TINY, "eval_every": 40, "eval_episodes": 3}


def test_each_cell_keeps_its_own_best():
    """Cell 0 is best at step 20 (7), cell 1 at step 10 (6); a tie and NaN change nothing."""
    best = Best(2)
    for step, returns in ((10, (5, 6)), (20, (7, 4)), (30, (7, np.nan))):
        weights = {"w": jax.numpy.array([[float(step)], [-float(step)]])}
        better = best.add(step, weights, np.array(returns, float)[:, None])
        assert better == (step < 30)
    np.testing.assert_array_equal(best.returns, [7, 6])
    np.testing.assert_array_equal(best.steps, [20, 10])
    np.testing.assert_array_equal(best.params["w"], [[20], [-10]])


@pytest.fixture(scope="module")
def run():
    return make_run(paper("CartPole-v1", **EVALUATED))


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    assert train_into(run, path, Silent()).status == "done"
    return path


def test_best_weights_are_those_of_the_best_evaluation(run, whole):
    _, about = read_run(whole)
    best = about.everything["best"]
    params = load_weights(whole, about, run.learner.params(), best=True)
    again = run.learner.evaluate(params, 3, greedy=False).mean(-1)
    np.testing.assert_allclose(again, best["return"])
    last = load_weights(whole, about, run.learner.params())
    assert (again >= run.learner.evaluate(last, 3, greedy=False).mean(-1)).all()
    assert all(0 < step <= 400 and step % 40 == 0 for step in best["step"])


def test_a_resumed_run_has_the_same_best(run, whole, tmp_path):
    """Stopped after each of its periods and resumed, it ends with the same files."""
    path, status = tmp_path / "run", ""
    while status != "done":
        status = train_into(run, path, Silent(), asked=lambda: True, say=lambda text: None).status
    for name in ("best.safetensors", "weights.safetensors", "metrics.csv"):
        assert (path / name).read_bytes() == (whole / name).read_bytes()
    assert read_run(path)[1].everything["best"] == read_run(whole)[1].everything["best"]


def test_a_run_ends_when_every_seed_has_reached_the_return(run, monkeypatch):
    """Seed 0 reaches 9 in the second evaluation and falls, seed 1 in the fourth: the last one."""
    returns = iter([(1, 2), (9, 3), (4, 5), (4, 9.5), (0, 0)])
    scripted = lambda *_: np.array(next(returns), float)[:, None]  # noqa: E731
    monkeypatch.setattr(run.learner, "evaluate", scripted)
    asked = run._replace(config=dataclasses.replace(run.config, stop_at=9.0))
    seen = list(periods(asked, run.learner.start(), Silent()))
    assert [progress.period.step for progress in seen] == [40, 80, 120, 160]
    assert [progress.last for progress in seen] == [False, False, False, True]


def test_evaluations_every_twentieth_if_not_given():
    assert paper("CartPole-v1", steps=100_000, stop_at=475).eval_every == 5_000
    assert paper("CartPole-v1", steps=100_000).eval_every == 0


def test_a_folder_of_an_older_version_is_the_same_run():
    config = paper("CartPole-v1", **TINY)
    fields = json.loads(json.dumps(to_json(config)))
    assert "stop_at" not in fields
    assert from_json(fields, schema=3) == config
    asked = paper("CartPole-v1", **TINY, stop_at=9.5)
    assert from_json(json.loads(json.dumps(to_json(asked))), schema=3) == asked


def test_commands_take_the_best_weights(whole, tmp_path, capsys):
    assert cli.main(["evaluate", str(whole), "--best", "--episodes", "3"]) == 0
    returns = read_run(whole)[1].everything["best"]["return"]
    assert f"seed 0: {returns[0]:.1f}" in capsys.readouterr().out
    never = tmp_path / "never"
    assert train_into(make_run(paper("CartPole-v1", **TINY)), never, Silent())
    assert cli.main(["evaluate", str(never), "--best"]) == 2
    assert "was not evaluated while it was trained" in capsys.readouterr().err
