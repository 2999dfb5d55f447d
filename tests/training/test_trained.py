"""The agents that come with the package are whole, small, and as good as they say."""

import shutil

import jax
import numpy as np
import pytest

import tsallax
from tsallax import cli
from tsallax.training import trained
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.initial import take_initial
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import load_weights, read_run

GAMES = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
CLASSIC = ("Acrobot-v1", "CartPole-v1", "LunarLander-v3", "MountainCar-v0", "Pendulum-v1")
NAMES = sorted((*CLASSIC, *(f"MinAtar/{game}" for game in GAMES)))
QUICK = {"CartPole-v1", "Pendulum-v1"}  # of one length, so that the episodes take no time
EPISODES = 100


def test_there_is_one_for_each_environment_and_all_are_small():
    found = trained.agents()
    assert [one.name for one in found] == NAMES
    assert all(one.size <= 1_000_000 for one in found)
    assert sum(one.size for one in found) < 4_000_000
    files = {"run.json", "metrics.csv", "best.safetensors"}
    for name in NAMES:
        assert {path.name for path in trained.agent_folder(name).iterdir()} == files


@pytest.mark.parametrize("name", NAMES)
def test_it_acts(name):
    model = tsallax.load_agent(name)
    assert name in repr(model)
    action, _ = model.predict(np.zeros(model._shape, model._dtype))
    assert np.isfinite(action).all()


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_its_score_holds_on_other_episodes(name):
    """Two means of 100 episodes each: four standard errors of their difference."""
    (one,) = [one for one in trained.agents() if one.name == name]
    path = trained.agent_folder(name)
    config, about = read_run(path)
    run = make_run(config)
    params = load_weights(path, about, run.learner.params(), best=True)
    (returns,) = run.learner.evaluate(params, EPISODES, False, 3_000)
    error = np.hypot(returns.std(ddof=1) / EPISODES**0.5, one.standard_error)
    assert abs(returns.mean() - one.mean) <= 4 * error + 0.01


def test_it_is_read_as_strictly_as_any_run(tmp_path, monkeypatch):
    there = shutil.copytree(trained.agent_folder("CartPole-v1"), tmp_path / "CartPole-v1")
    monkeypatch.setattr(trained, "ROOT", tmp_path)
    assert tsallax.load_agent("CartPole-v1")
    weights = there / "best.safetensors"
    whole = bytearray(weights.read_bytes())
    whole[-1] ^= 1
    weights.write_bytes(whole)
    with pytest.raises(ValueError, match="its sha256 does not agree"):
        tsallax.load_agent("CartPole-v1")


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ('"agent": {', '"agent": [], "more": {', "a damaged run.json"),
        ('"env": "CartPole-v1"', '"env": 7', ""),
        ('"env": "CartPole-v1"', '"place": "CartPole-v1"', "a damaged run.json"),
        ('"env": "CartPole-v1"', '"env": "[/]\\u001b[31m"', ""),
    ],
)
def test_one_that_is_damaged_is_listed_or_refused_in_a_line(
    good, bad, words, tmp_path, monkeypatch, capsys
):
    for name in ("Acrobot-v1", "CartPole-v1"):
        shutil.copytree(trained.agent_folder(name), tmp_path / name)
    about = tmp_path / "CartPole-v1" / "run.json"
    text = about.read_text()
    assert good in text
    about.write_text(text.replace(good, bad))
    monkeypatch.setattr(trained, "ROOT", tmp_path)
    assert cli.main(["agents"]) == (2 if words else 0)
    out, err = capsys.readouterr()
    assert words in err
    assert err.count("\n") == bool(words)
    assert "\x1b" not in out + err


def test_a_run_starts_from_it():
    config = resolve(Config("CartPole-v1", seeds=2, init_from="agent:CartPole-v1"))
    initial = take_initial(make_run(config))
    assert initial is not None
    own = tsallax.load_agent("CartPole-v1").params
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[0], y), initial.params, own)
    assert initial.source["run"] == "agent:CartPole-v1"
    assert initial.source["weights"] == "best"


def test_the_table_fits_a_screen(capsys):
    assert cli.main(["agents"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[1 : 1 + len(NAMES)]] == NAMES


def test_evaluate_and_play(tmp_path, monkeypatch, capsys):
    """The video is in the folder where one is, not beside the agent."""
    monkeypatch.chdir(tmp_path)
    before = sorted(trained.ROOT.rglob("*"))
    assert cli.main(["evaluate", "--agent", "CartPole-v1", "--episodes", "2"]) == 0
    assert "all: 500.0 over 2 episodes" in capsys.readouterr().out
    assert cli.main(["play", "--agent", "CartPole-v1", "--steps", "3"]) == 0
    (video,) = tmp_path.iterdir()
    assert video.name in ("CartPole-v1.mp4", "CartPole-v1.gif")
    assert f"video {video.name}" in capsys.readouterr().out
    assert sorted(trained.ROOT.rglob("*")) == before


@pytest.mark.parametrize("command", ["evaluate", "play", "export"])
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--agent", "CartPole"], "no trained agent 'CartPole'; did you mean 'CartPole-v1'?"),
        (["--agent", "../CartPole-v1"], "no trained agent '../CartPole-v1'"),
        (["runs/x", "--agent", "CartPole-v1"], "the folder of a run or --agent NAME"),
        ([], "the folder of a run or --agent NAME"),
    ],
)
def test_what_is_not_there_is_refused_in_a_line(command, words, why, capsys):
    assert cli.main([command, *words]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert why in line
