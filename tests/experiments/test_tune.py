"""A search for settings: what it searches, what it is worth, and that it survives a kill."""

import dataclasses
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from support.faults import processes

pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution
from optuna.trial import create_trial

from tsallax import cli
from tsallax.experiments import tune
from tsallax.experiments.journal import JOURNAL, Journal
from tsallax.experiments.tune_space import make_search
from tsallax.report.tuning import PICTURE, draw_search, importance
from tsallax.storage.files import Directory
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.driver import Silent, periods
from tsallax.training.options import Choices, Range
from tsallax.training.presets import with_preset_file
from tsallax.training.resolve import resolve

SHAPE = Config(
    "CartPole-v1", preset="paper", learner="parallel", hidden=(8,), num_envs=2, rollout=20,
    minibatches=2, target_period=40, seeds=2, steps=160,
)  # fmt: skip
FLAGS = [
    "CartPole-v1", "--preset", "paper", "--learner", "parallel", "--hidden", "8", "--num-envs", "2",
    "--rollout", "20", "--minibatches", "2", "--target-period", "40", "--seeds", "2",
    "--steps", "160",
]  # fmt: skip
SMALL = ["--width", "2", "--confirm", "2", "--confirm-seeds", "2"]


def test_what_is_given_is_not_searched_and_the_start_is_in_the_range():
    search = make_search(dataclasses.replace(SHAPE, alpha=(0.1,)), ["beta=1.5"])
    assert "alpha" not in search.space
    assert search.space["beta"] == Range(0.0, 1.5)
    assert search.space["learning_rate"] == Range(1e-5, 1e-2, log=True)
    assert search.start()["beta"] == 1.5
    assert search.base.eval_every == 8
    assert "lambda_" not in make_search(Config("CartPole-v1", learner="replay")).space
    with pytest.raises(ValueError, match="start: 'betta' is not searched; did you mean 'beta'"):
        make_search(SHAPE, ["betta=1"])


def test_trials_side_by_side_are_the_runs_alone():
    """The cells of two settings in one program have the numbers and seeds of two programs."""
    search = make_search(SHAPE)
    one, two = (
        search.config(search.start()),
        search.config({**search.start(), "epsilon_fraction": 0.5}),
    )
    both = make_run(one, beside=[two])
    assert [cell.seed for cell in both.cells] == [0, 1, 0, 1]
    np.testing.assert_allclose(both.hp.epsilon_steps, [48, 48, 80, 80])
    *_, last = periods(both, both.learner.start(), Silent())
    for config, rows in ((one, slice(0, 2)), (two, slice(2, 4))):
        alone = make_run(config)
        *_, end = periods(alone, alone.learner.start(), Silent())
        np.testing.assert_allclose(
            last.period.metrics.loss[rows], end.period.metrics.loss, rtol=1e-4
        )


def test_trials_with_another_warm_up_are_another_program(tmp_path, monkeypatch):
    """A program has one number of steps before its first update, that of its first trial."""
    replay = Config(
        "CartPole-v1", preset="paper", hidden=(8,), batch=8, train_period=4, target_period=40,
        steps=400,
    )  # fmt: skip
    path = tmp_path / "space.toml"
    path.write_text("warmup = {choices = [64, 256]}\n")
    search, trained = make_search(replay, (), path), []

    def train(configs, report, asked):
        trained.append([config.warmup for config in configs])
        return np.zeros((len(configs), 1))

    monkeypatch.setattr(tune, "_train", train)
    with Directory(tmp_path) as folder:
        study = tune.open_study(folder, search)
        for warmup in (256, 64):
            study.enqueue_trial({"warmup": warmup})
        assert tune.run_batch(study, search, tune.ask(study, search, 3))
        assert tune.confirm(study, search, 3, 1)
    assert trained == [[8], [256], [64]] * 2
    one, other = (search.config({"warmup": warmup}) for warmup in (64, 256))
    with pytest.raises(ValueError, match="side by side must have one shape, duration and warm-up"):
        make_run(one, beside=[other])


def test_the_cost_of_a_goal_is_the_step_or_more_than_all_of_them():
    """Reached at 80 of 160; never, 3 short: 160 (1 + 3/4) = 280; never evaluated: 320."""
    config = resolve(dataclasses.replace(SHAPE, seeds=3, stop_at=10.0))
    seen = tune.Worth(make_run(config))
    seen.add(40, np.array([5.0, 7.0, np.nan]))
    seen.add(80, np.array([12.0, 6.0, np.nan]))
    seen.add(120, np.array([11.0, 5.0, np.nan]))
    np.testing.assert_array_equal(-seen.value(), [80, 280, 320])


def test_without_a_goal_the_last_fifth_counts():
    """Evaluations at 100, 130 and 160 of 160: those after 128 count, (4 + 8) / 2 = 6."""
    seen = tune.Worth(make_run(resolve(dataclasses.replace(SHAPE, seeds=1))))
    for step, found in ((100, 500.0), (130, 4.0), (160, 8.0)):
        seen.add(step, np.array([found]))
    np.testing.assert_array_equal(seen.value(), [6])


def test_a_space_of_ones_own(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text("beta = {low = 0.1, high = 0.5}\nhidden = {choices = [[8], [4, 4]]}\n")
    given = dataclasses.replace(SHAPE, hidden=None)
    search = make_search(given, ["beta=0.3"], path)
    start = " ".join(map(str, search.base.hidden))
    assert search.space == {"beta": Range(0.1, 0.5), "hidden": Choices(("8", "4 4", start))}
    assert search.config({"hidden": "4 4", "beta": 0.2}).hidden == (4, 4)
    assert {"hidden", "rollout"} <= set(make_search(Config("CartPole-v1"), shapes=True).space)
    for text, wrong in (
        ("betta = {low = 0, high = 1}", "'betta' cannot be searched; did you mean 'beta'"),
        ("beta = {low = 1, high = 0}", "beta must be {low = ..., high = ..., log"),
        ("beta = 1", "beta must be {low"),
        ("beta = {choices = []}", "beta must be {low"),
        ("rollout = {low = 1, high = 9}", "rollout is a whole number: give it choices"),
        ("gamma = {low = 0.9, high = 1.5}", "gamma"),
        ("beta = [", "space.toml: "),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=wrong):
            make_search(dataclasses.replace(SHAPE, rollout=None), (), path)
    path.write_text("hidden = {choices = [[8]]}")
    with pytest.raises(ValueError, match="hidden is given and searched"):
        make_search(SHAPE, (), path)


CARTPOLE = Config("CartPole-v1")
PRESETS = [  # given, start, options that are searched, values of a trial
    (CARTPOLE, (), None, {"beta": 0.2}),
    # Whether alpha is adapted depends on whether it is given, and a preset gives it.
    (Config("Pendulum-v1"), (), None, {"alpha": 0.1}),
    # What the search starts from, and does not change.
    (CARTPOLE, ("beta=0.9",), "gamma = {low = 0.9, high = 0.99}", {"gamma": 0.95}),
    # An optimiser has its own epsilon, and a batch its own warm-up.
    (CARTPOLE, (), 'optimiser = {choices = ["adam", "rmsprop"]}', {"optimiser": "rmsprop"}),
    (dataclasses.replace(CARTPOLE, preset="paper"), (), "batch = {choices = [32]}", {"batch": 32}),
    # A preset of one's own is not there when the new one is read.
    (dataclasses.replace(CARTPOLE, preset="own.toml"), (), None, {"beta": 0.2}),
]


@pytest.mark.parametrize(("given", "start", "space", "values"), PRESETS)
def test_the_preset_is_the_trial(given, start, space, values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text("hidden = [16]\nmax_grad_norm = 3.0\ntime_limit = 100\n")
    if space:
        Path("space.toml").write_text(space)
    search = make_search(given, start, Path("space.toml") if space else None)
    trial = create_trial(value=1.0, params=search.start() | values, distributions={
        name: CategoricalDistribution((x,)) for name, x in (search.start() | values).items()
    })  # fmt: skip
    Path("best.toml").write_text(tune.preset_text(search, trial, given, "a note"))
    found = resolve(with_preset_file(Config(given.env, preset="best.toml")))
    evaluated = {"eval_every": 0, "eval_episodes": 1}
    assert dataclasses.replace(found, **evaluated) == dataclasses.replace(
        search.config(trial.params), **evaluated
    )


def test_the_luckiest_trial_is_not_chosen(tmp_path, monkeypatch):
    """Trial 0 is the best of the search and the worst with other seeds; these are 2, 3 and 4."""
    search = make_search(SHAPE)
    worth = {0: ([9.0, 9.0], [1.0, 3.0, 2.0]), 1: ([8.0, 8.0], [7.0, 8.0, 6.0])}
    worth[2] = ([1.0, 1.0], [99.0] * 3)  # not among the best two
    seen = []

    def train(configs, report, asked):
        seen.append([(config.first_seed, config.seeds) for config in configs])
        numbers = [round(10 * config.beta[0]) for config in configs]
        return np.array(
            [worth[i][config.first_seed > 0] for i, config in zip(numbers, configs, strict=True)]
        )

    monkeypatch.setattr(tune, "_train", train)
    with Directory(tmp_path) as folder:
        study = tune.open_study(folder, search)
        for i in range(3):
            study.enqueue_trial({**search.start(), "beta": i / 10})
        study.tell(tune.ask(study, search, 1)[0], -5.0)  # the start
        assert tune.run_batch(study, search, tune.ask(study, search, 3))
        assert tune.confirm(study, search, 2, 3)
        best = tune.confirmed(study, 3)
        assert [one.trial.params["beta"] for one in best] == [0.1, 0.0]
        assert best[0].error == pytest.approx(1 / np.sqrt(3))  # of 7, 8, 6: deviation 1
        assert tune.confirm(study, search, 2, 3)  # nothing is left to do
    assert seen == [[(0, 2)] * 3, [(2, 3)] * 2]


def test_the_importance_is_that_of_the_setting_that_decides(tmp_path):
    """The value is beta alone: its share is the largest, and the picture is drawn."""
    search, random = make_search(SHAPE), np.random.default_rng(0)
    with Directory(tmp_path) as folder:
        study = tune.open_study(folder, search)
        for _ in range(60):
            values = {n: random.uniform(x.low, x.high) for n, x in search.space.items()}
            study.enqueue_trial(values)
            (trial,) = tune.ask(study, search, 1)
            study.tell(trial, trial.params["beta"])
        shares = importance(study, list(search.space))
        assert max(shares, key=shares.__getitem__) == "beta"
        assert sum(shares.values()) == pytest.approx(1)
        again = [tune.Confirmed(tune.finished(study)[0], np.array([0.5, 0.7]))]
        assert draw_search(study, search, again).startswith(b"\x89PNG")


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    with Directory(tmp_path) as folder:
        Journal(folder).append_logs([{"a": 1}, {"b": 2}])
        folder.append(JOURNAL, b'{"c": ')
        assert Journal(folder).read_logs(1) == [{"b": 2}]
        assert (tmp_path / JOURNAL).read_text() == '{"a": 1}\n{"b": 2}\n'
        folder.append(JOURNAL, b"nonsense\n")
        with pytest.raises(ValueError, match="damaged"):
            Journal(folder)


def test_a_journal_behind_a_link_is_refused(tmp_path, capsys):
    (tmp_path / "theirs").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / JOURNAL).symlink_to(tmp_path / "theirs")
    assert cli.main(["tune", *FLAGS, "--out", str(tmp_path / "out")]) == 2
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.slow
def test_killed_it_goes_on_and_leaves_a_preset(tmp_path, capsys):
    out, cache = tmp_path / "out", tmp_path / "cache"
    command = [*processes.command([], out)[:3], "tune", *FLAGS, "--out", str(out), *SMALL]
    child = subprocess.Popen([*command, "--trials", "400"], env=processes.environment(cache))
    journal = out / JOURNAL
    while not journal.exists() or journal.read_text().count('"state": 1') < 2:
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    done = journal.read_text().count('"state": 1')
    assert cli.main(["tune", *FLAGS, "--out", str(out), *SMALL, "--trials", str(done + 2)]) == 0
    said = capsys.readouterr().out
    assert f"of {done + 2} trials done" in said
    assert "with 2 other seeds" in said
    assert (out / PICTURE).exists()
    best = tomllib.loads((out / tune.PRESET).read_text())
    assert (best["algo"], best["preset"], best["learner"]) == ("tal", "gym", "parallel")
    assert best["hidden"] == [8]
    assert 1e-5 <= best["learning_rate"] <= 1e-2
    with Directory(out) as folder:
        study = tune.open_study(folder, make_search(SHAPE))
    kept = [t for t in tune.finished(study) if t.value is not None]
    assert kept[0].value == max(t.value for t in kept)
    assert kept[0].params["beta"] == best["beta"]
    assert cli.main(["tune", *FLAGS, "--alpha", "0.5", "--out", str(out)]) == 2
    assert "holds another search" in capsys.readouterr().err


def test_one_other_seed_has_no_standard_error():
    """Warnings are errors here: NumPy's was printed."""
    assert np.isnan(tune.Confirmed(None, np.array([3.0])).error)
    assert tune.Confirmed(None, np.array([1.0, 3.0])).error == pytest.approx(1.0)


def test_a_negative_number_of_confirmations_is_refused_before_the_search(tmp_path, capsys):
    """It left out the worst trials, in the place of taking the best."""
    out = ["--out", str(tmp_path / "out")]
    assert cli.main(["tune", *FLAGS, *out, "--confirm", "-1"]) == 2
    assert "confirm must be 0 or more, not -1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
