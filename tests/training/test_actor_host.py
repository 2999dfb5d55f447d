"""Actor-critics on the host: as the compiled ones, with failures, resumption and every command."""

import json
import shutil

import jax
import numpy as np
import pandas as pd
import pytest

import tsallax
from support import host_envs
from support.box_envs import HIGH, HOST, LOW
from tsallax import cli
from tsallax.envs.host import make_host
from tsallax.learners.host_programs import make_programs
from tsallax.learners.rollout import host_moments
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve
from tsallax.types import Transition

SHAPE = {"hidden": (8,), "batch": 8, "warmup": 20, "buffer": 100, "target_period": 40}
TINY = {**SHAPE, "steps": 120, "eval_every": 80, "eval_episodes": 2}
ACTOR = {"algo": "tal-ac", "density": "q-gaussian", "q": (1.5, 2.0), "seeds": 2}
MUJOCO = pytest.mark.slow  # the default suite does without that package
TOLD = pytest.mark.filterwarnings("ignore:cell . stopped")


@pytest.fixture(autouse=True)
def good_behaviour():
    host_envs.MISCHIEF.clear()
    yield
    host_envs.MISCHIEF.clear()


def trained(**more):
    return tsallax.train(HOST, **{**TINY, **ACTOR, **more})


def flags(**more):
    words = []
    for name, value in {**TINY, **ACTOR, **more}.items():
        several = value if isinstance(value, tuple) else (value,)
        words += [f"--{name.replace('_', '-')}", *map(str, several)]
    return words


@pytest.fixture(scope="module")
def good():
    return trained()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("actor") / "run"
    assert cli.main(["train", HOST, *flags(), "--out", str(path)]) == 0
    return path


def test_seeds_and_numbers_side_by_side(good):
    assert good.config.loop == "host"
    for name in ("loss", "width", "support", "temperature", "critic_gap", "entropy"):
        assert good.metrics[name].shape == (2, 2, 3)
        assert np.isfinite(good.metrics[name]).all(), name
        assert len(np.unique(good.metrics[name][:, :, -1])) == 4, name
    assert (good.metrics["support"] < 1).all()
    assert (good.metrics["temperature"][:, :, -1] < good.metrics["temperature"][:, :, 0]).all()
    np.testing.assert_array_equal(good.metrics["episode_length"], np.full((2, 2, 3), 20))
    assert np.isfinite(good.evaluations[:, :, -1]).all()


def test_the_same_run_twice_is_the_same(good):
    again = trained()
    jax.tree.map(np.testing.assert_array_equal, again.params, good.params)
    np.testing.assert_array_equal(again.evaluations, good.evaluations)


@TOLD
@pytest.mark.parametrize("mischief", ["raise", "nan"])
def test_a_bad_environment_stops_its_cells_alone(mischief, good):
    """Seed 1 is in the cells 1 and 3, one for each q."""
    host_envs.MISCHIEF[1] = mischief
    bad = trained()
    assert sorted(bad.stopped) == [1, 3]
    for a, b in zip(jax.tree.leaves(bad.params), jax.tree.leaves(good.params), strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
    assert np.isnan(bad.metrics["width"][:, 1, 1:]).all()
    np.testing.assert_array_equal(bad.metrics["width"][:, 0], good.metrics["width"][:, 0])


def test_an_update_is_the_agents_own_on_what_is_stored():
    """Held together or apart, and as the agent's functions give them for one cell."""
    run = make_run(resolve(Config(HOST, algo="tal-ac", q=(1.5, 2.0), **SHAPE, steps=120)))
    random, shape = np.random.default_rng(0), (2, 8)
    numbers = [random.normal(size=(*shape, n)).astype(np.float32) for n in (3, 2, 1, 3)]
    seen, action, reward, following = numbers
    over = random.random(shape) < 0.3
    batch = Transition(seen, np.tanh(action), reward[..., 0], over, following)
    both = []
    for apart in (False, True):
        programs = make_programs(run.agent, run.hp, [0, 0], apart)
        held, loss = programs.update(programs.init(), batch, 7)
        action = programs.act(held, seen[:, 0], 200)
        params = programs.unstack(programs.stack(held).params)
        drawn = programs.choose(params, seen, np.full((2, 8, 2, 2), 0.3, np.float32), False)
        both.append(tuple(map(np.asarray, (loss, action, drawn))))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), *both)
    assert both[0][1].shape == (2, 2)
    assert both[0][2].shape == (2, 8, 2)


def test_what_was_done_is_what_is_replayed():
    """Actions are stored as the policy gave them, in [-1, 1], and are not those of the bounds."""
    run = make_run(resolve(Config(HOST, algo="tal-ac", **TINY)))
    period = next(run.learner.train(run.learner.start(), lambda *_: None))
    stored = period.state.replay.actions[0, :40]
    assert stored.shape == (40, 2)
    assert (np.abs(stored) <= 1).all()
    assert np.abs(stored).max() > 0.5
    rewards = period.state.replay.rewards[0, :40]
    done = LOW + (stored + 1) / 2 * (HIGH - LOW)
    begun = np.flatnonzero(period.state.replay.starts[0, :40])
    expected = -np.sum((done - [1, 0.2]) ** 2, -1)
    np.testing.assert_allclose(rewards[begun], expected[begun], rtol=1e-4)


def test_a_folder_is_resumed_and_extended(folder, tmp_path, good):
    """Interrupted runs go on in new episodes: the promise is their length and their replay."""
    path = shutil.copytree(folder, tmp_path / "run")
    assert cli.main(["train", "--resume", str(path), "--steps", "200"]) == 0
    table = pd.read_csv(path / "metrics.csv")
    assert sorted(table["step"]) == sorted([40, 80, 120, 160, 200] * 4)
    before = pd.read_csv(folder / "metrics.csv")
    width = before[before["step"] == 120]["width"].to_numpy()
    np.testing.assert_allclose(width, good.metrics["width"][:, :, -1].ravel(), rtol=1e-5)


def test_every_command_serves_it(folder, tmp_path, capsys):
    run = str(folder)
    assert cli.main(["evaluate", run, "--episodes", "3"]) == 0
    assert cli.main(["evaluate", run, "--episodes", "2", "--greedy", "--best"]) == 0
    page = tmp_path / "page.html"
    assert cli.main(["report", run, "--out", str(page)]) == 0
    assert "width" in page.read_text()
    warm = ["--init-from", run, "--stop-at", "-1000"]
    alone = flags(seeds=1, q=(2.0,))
    assert cli.main(["train", HOST, *alone, *warm, "--out", str(tmp_path / "warm")]) == 0
    about = json.loads((tmp_path / "warm" / "run.json").read_text())
    assert about["initial"]["env"] == HOST
    capsys.readouterr()


def test_a_loaded_model_acts_within_the_bounds(folder):
    model, random = tsallax.load(folder, best=True), np.random.default_rng(0)
    seen = random.normal(size=(50, 3))
    for greedy in (False, True):
        action, _ = model.predict(seen, deterministic=greedy)
        assert action.shape == (50, 2)
        assert ((action >= LOW) & (action <= HIGH)).all()
    assert model.predict(seen[0])[0].shape == (2,)
    assert len(np.unique(action[:, 0])) > 1


def test_play_shows_the_episodes_that_evaluate_plays():
    fields = {**TINY, "algo": "sac", "seeds": 2, "time_limit": 30, "eval_every": 0}
    result = tsallax.train("Pendulum-v1", loop="host", **fields)
    for greedy in (False, True):
        returns = result.run.learner.evaluate(result.params, 2, greedy, 5)
        model = result.model(0, 1)
        env = make_host("Pendulum-v1", 1, render=True, time_limit=30)
        shown = host_moments(env, model.policy, model.act, episodes=2, seed=5, greedy=greedy)
        told = list(shown)
        ends = [moment for moment in told if moment.action is None]
        np.testing.assert_allclose([end.total for end in ends], returns[1], rtol=1e-4)
        assert env.action_names == ("torque",)
        assert np.shape(told[0].action) == (1,)
        assert told[0].pi.shape == (1, 120)
        env.close()


@pytest.mark.parametrize(
    ("env", "settings"),
    [
        ("Pendulum-v1", {"steps": 20_000, "learning_rate": (1e-3,), "warmup": 256}),
        ("LunarLanderContinuous-v2", {"steps": 200_000, "tau": (0.01,), "warmup": 10_000}),
        pytest.param("HalfCheetah-v5", {"steps": 1_000_000, "batch": 256}, marks=MUJOCO),
        pytest.param("Swimmer-v5", {"gamma": (0.9999,)}, marks=MUJOCO),
        (HOST, {"steps": 100_000, "learning_rate": (3e-4,), "batch": 256, "hidden": (256, 256)}),
    ],
)
def test_presets(env, settings):
    found = resolve(Config(env, algo="tal-ac"))
    assert {name: getattr(found, name) for name in settings} == settings
