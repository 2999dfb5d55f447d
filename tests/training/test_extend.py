"""A finished run that is extended is the run that was longer from the start."""

import dataclasses
import json
import shutil

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from support import host_envs, tiny  # noqa: F401 (one registers)
from tsallax import cli
from tsallax.learners import PeriodShape, Schedule, periods, spans
from tsallax.learners.parallel_update import step_size_at
from tsallax.storage import run_folder
from tsallax.storage.run_folder import About, read_about
from tsallax.training.build import make_run
from tsallax.training.config import Config, to_json
from tsallax.training.driver import Silent, train_into
from tsallax.training.extend import extended
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import read_run
from tsallax.types import HParams

PARALLEL = {
    "learner": "parallel", "hidden": 8, "seeds": 2, "num_envs": 2, "rollout": 20, "minibatches": 2,
    "target_period": 40, "eval_every": 80, "lr_end": 1e-4,
}  # fmt: skip
KEPT = ("metrics.csv", "weights.safetensors", "best.safetensors")


def words(options):
    pairs = ((f"--{name.replace('_', '-')}", str(value)) for name, value in options.items())
    return [word for pair in pairs for word in pair]


def train(path, *options, env="CartPole-v1"):
    return cli.main(["train", env, *options, "--out", str(path)])


def extend(path, *options):
    return cli.main(["train", "--resume", str(path), *options])


@pytest.mark.parametrize(
    "shape",
    [tiny.flags(), pytest.param(words(PARALLEL), marks=pytest.mark.slow)],
    ids=["replay", "parallel"],
)
def test_an_extended_run_is_the_longer_one_to_the_bit(shape, tmp_path, capsys):
    short, long = tmp_path / "short", tmp_path / "long"
    assert train(short, *shape, "--steps", "160", "--epsilon-fraction", "0.9") == 0
    assert extend(short, "--steps", "320") == 0
    assert "resumes from step 160" in capsys.readouterr().out
    longer = ("--steps", "320", "--schedule-steps", "160", "--epsilon-fraction", "0.9")
    assert train(long, *shape, *longer) == 0
    for name in KEPT:
        assert (short / name).read_bytes() == (long / name).read_bytes()
    about = read_about(short).everything
    assert about["config"] == read_about(long).everything["config"]
    assert [one["steps"] for one in about["extended"]] == [160]
    assert extend(short) == 0
    assert "is done" in capsys.readouterr().out
    assert extend(short, "--steps", "320") == 0  # the same command again


def test_schedules_hold_their_end_values_or_are_laid_out_anew():
    config = resolve(
        Config(
            "CartPole-v1", preset="paper", learner="parallel", steps=10_240, epsilon_fraction=0.5
        )
    )
    about = About(3, "done", {}, {})
    given = Config(config.env, steps=20_480)
    with pytest.raises(ValueError, match=r"ends at 0 after 10,240 steps.* --schedule-steps 20480"):
        extended(config, about, given)
    anew = extended(config, about, dataclasses.replace(given, schedule_steps=20_480))
    assert (anew.steps, anew.schedule_steps) == (20_480, None)
    config = dataclasses.replace(config, learning_rate_end=(1e-4,))
    held = extended(config, about, given)
    assert (held.steps, held.schedule_steps) == (20_480, 10_240)
    for now, epsilon_steps, total in ((held, 5_120, 10_240), (anew, 10_240, 20_480)):
        hp = make_run(now).hp
        assert float(hp.epsilon_steps[0]) == epsilon_steps
        assert float(hp.total_steps[0]) == total


def test_the_step_size_does_not_pass_its_end():
    """Linear from 1 to 1/2 over ten steps: 3/4 after five, 1/2 after ten and after twenty."""
    hp = HParams(learning_rate=1.0, learning_rate_end=0.5, total_steps=10.0)
    assert [float(step_size_at(jnp.array(step), hp)) for step in (5, 10, 20)] == [0.75, 0.5, 0.5]


def test_a_period_that_was_cut_short_is_completed():
    """Target periods of 40 steps, of which the first run had one and a half: 60 steps."""
    assert list(spans(60, 150, 40)) == [(60, 80), (80, 120), (120, 150)]
    schedule = Schedule(150, batch=1, train_period=10, target_period=40)
    assert list(periods(schedule, 60)) == [
        PeriodShape(0, 2, True), PeriodShape(0, 4, True), PeriodShape(0, 3, False),
    ]  # fmt: skip
    assert [shape.copy for shape in periods(schedule._replace(steps=60))] == [True, False]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("extend") / "run"
    assert train(path, *tiny.flags(steps=160, stop_at=1)) == 0
    assert len(pd.read_csv(path / "metrics.csv").step.unique()) == 2  # ended early
    return path


def test_a_run_that_ended_early_goes_on_without_its_goal(finished, tmp_path):
    path = shutil.copytree(finished, tmp_path / "run")
    assert extend(path, "--steps", "160") == 0
    assert sorted(pd.read_csv(path / "metrics.csv").step.unique()) == [40, 80, 120, 160]
    assert read_run(path)[0].stop_at is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "80"], "has 160 steps already"),
        (["--stop-at", "9"], "give --steps, the number of steps"),
        (["--steps", "400", "--seeds", "3"], "only steps, schedule_steps, stop_at"),
    ],
)
def test_what_does_not_extend_it_is_refused(finished, options, message, capsys):
    before = (finished / "run.json").read_bytes()
    assert extend(finished, *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert (finished / "run.json").read_bytes() == before


@pytest.mark.parametrize("how", ["removed", "damaged"])
def test_without_its_state_a_run_stays_as_it_is(finished, tmp_path, how, capsys):
    path = shutil.copytree(finished, tmp_path / "run")
    (saved,) = (path / "checkpoints").iterdir()
    if how == "removed":
        shutil.rmtree(saved)
    else:
        data = bytearray((saved / "state.safetensors").read_bytes())
        data[-1] ^= 1
        (saved / "state.safetensors").write_bytes(data)
    before = {p.name: p.read_bytes() for p in path.iterdir() if p.is_file()}
    assert extend(path, "--steps", "320") == 2
    assert "has no state to continue from: it cannot be extended" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in path.iterdir() if p.is_file()} == before


def test_a_state_that_is_too_large_is_not_kept(tmp_path):
    assert train(tmp_path / "run", *tiny.flags(keep_state=0.001)) == 0
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_killed_while_it_is_extended_it_resumes(finished, tmp_path):
    """The process dies after its first checkpoint on the way from 80 to 240 steps."""
    path, whole = (shutil.copytree(finished, tmp_path / name) for name in ("run", "whole"))
    assert extend(whole, "--steps", "240") == 0

    class Dead(Silent):
        def __call__(self, progress):
            if progress.period.step == 160:
                raise KeyboardInterrupt  # after the checkpoint of step 120, before the next

    config = extended(*read_run(path), Config("CartPole-v1", steps=240))
    run = make_run(dataclasses.replace(config, save_seconds=1e-9))
    run_folder.extend(path, to_json(run.config), run.learner.layout)
    with pytest.raises(KeyboardInterrupt):
        train_into(run, path, Dead(), say=lambda text: None)
    names = sorted(p.name[-3:] for p in (path / "checkpoints").iterdir())
    assert names == ["080", "120"]
    assert extend(path) == 0
    for name in KEPT:
        assert (path / name).read_bytes() == (whole / name).read_bytes()


def test_host_runs_are_extended(tmp_path):
    path = tiny.train(tmp_path / "run", tiny.HOST, q=2.0, steps=120)
    assert extend(path, "--steps", "200") == 0
    table = pd.read_csv(path / "metrics.csv")
    assert sorted(table.step.unique()) == [40, 80, 120, 160, 200]
    assert np.isfinite(table.loss).all()
    assert json.loads((path / "run.json").read_text())["status"] == "done"
