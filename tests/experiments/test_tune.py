"""A search for settings: what it searches, what it is worth, and that it survives a kill."""

import dataclasses
import signal
import subprocess
import time
import tomllib

import numpy as np
import pytest

from support import faults

pytest.importorskip("optuna")

from tsallax import cli
from tsallax.experiments import tune
from tsallax.experiments.journal import JOURNAL, Journal
from tsallax.storage.files import Directory
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.driver import Silent, periods
from tsallax.training.options import Range
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


def test_what_is_given_is_not_searched_and_the_start_is_in_the_range():
    search = tune.make_search(dataclasses.replace(SHAPE, alpha=(0.1,)), ["beta=1.5"])
    assert "alpha" not in search.space
    assert search.space["beta"] == Range(0.0, 1.5)
    assert search.space["learning_rate"] == Range(1e-5, 1e-2, log=True)
    assert search.start()["beta"] == 1.5
    assert search.base.eval_every == 16
    assert "lambda_" not in tune.make_search(Config("CartPole-v1", learner="replay")).space
    with pytest.raises(ValueError, match="start: 'betta' is not searched; did you mean 'beta'"):
        tune.make_search(SHAPE, ["betta=1"])


def test_trials_side_by_side_are_the_runs_alone():
    """The cells of two settings in one program have the numbers and seeds of two programs."""
    search = tune.make_search(SHAPE)
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


def test_the_cost_of_a_goal_is_the_step_or_more_than_all_of_them():
    """Reached at 80 of 160; never, 3 short: 160 (1 + 3/4) = 280; never evaluated: 320."""
    config = resolve(dataclasses.replace(SHAPE, seeds=3, stop_at=10.0))
    seen = tune.Reached(make_run(config))
    seen.add(40, np.array([5.0, 7.0, np.nan]))
    seen.add(80, np.array([12.0, 6.0, np.nan]))
    seen.add(120, np.array([11.0, 5.0, np.nan]))
    np.testing.assert_array_equal(seen.cost(), [80, 280, 320])


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
    command = [*faults.command([], out)[:3], "tune", *FLAGS, "--out", str(out), "--width", "2"]
    child = subprocess.Popen([*command, "--trials", "400"], env=faults.environment(cache))
    journal = out / JOURNAL
    while not journal.exists() or journal.read_text().count('"state": 1') < 2:
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    done = journal.read_text().count('"state": 1')
    assert (
        cli.main(["tune", *FLAGS, "--out", str(out), "--width", "2", "--trials", str(done + 2)])
        == 0
    )
    said = capsys.readouterr().out
    assert f"of {done + 2} trials are done" in said
    best = tomllib.loads((out / tune.PRESET).read_text())
    assert (best["preset"], best["learner"]) == ("gym", "parallel")
    assert best["hidden"] == [8]
    assert 1e-5 <= best["learning_rate"] <= 1e-2
    with Directory(out) as folder:
        study = tune.open_study(folder, tune.make_search(SHAPE))
    kept = [t for t in tune.finished(study) if t.value is not None]
    assert kept[0].value == max(t.value for t in kept)
    assert kept[0].params["beta"] == best["beta"]
    assert cli.main(["tune", *FLAGS, "--alpha", "0.5", "--out", str(out)]) == 2
    assert "holds another search" in capsys.readouterr().err
