"""The host loop: the compiled loop's equal, and what happens when an environment misbehaves."""

import shutil

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tsallax
from support import host_envs, tiny
from support.configs import paper
from tsallax import cli
from tsallax.envs.host import make_host
from tsallax.learners.host_programs import make_programs
from tsallax.learners.rollout import host_moments
from tsallax.training.build import make_run
from tsallax.types import Transition

SMALL = {
    "preset": "paper",
    "hidden": (8,),
    "steps": 120,
    "target_period": 40,
    "train_period": 4,
    "batch": 8,
    "buffer": 200,
    "seeds": 3,
    "eval_every": 120,
    "eval_episodes": 2,
}
TOLD = pytest.mark.filterwarnings("ignore:cell 1 stopped")


@pytest.fixture(autouse=True)
def good_behaviour():
    host_envs.MISCHIEF.clear()
    yield
    host_envs.MISCHIEF.clear()


def trained(**more):
    return tsallax.train("tests/Naughty-v0", **{**SMALL, **more})


@pytest.fixture(scope="module")
def good():
    return trained()


def test_metrics_and_episodes(good):
    assert good.config.loop == "host"
    np.testing.assert_array_equal(good.metrics["step"][0, 1], [40, 80, 120])
    np.testing.assert_array_equal(good.metrics["episodes"], np.full((1, 3, 3), 2))
    np.testing.assert_array_equal(good.metrics["episode_length"], np.full((1, 3, 3), 20))
    assert np.isfinite(good.metrics["loss"]).all()
    assert good.evaluations.shape == (1, 3, 3, 2)
    assert np.isfinite(good.evaluations[:, :, -1]).all()
    assert (good.metrics["episode_return"] <= 20).all()


def test_the_same_run_twice_is_the_same(good):
    again = trained()
    for name, values in good.metrics.items():
        np.testing.assert_array_equal(again.metrics[name], values)
    jax.tree.map(np.testing.assert_array_equal, again.params, good.params)


@TOLD
@pytest.mark.parametrize(
    ("mischief", "message"),
    [
        ("raise", "RuntimeError: the cable is out"),
        ("hang", "no answer within 0.5 s"),
        ("shape", "step gave an observation (2,), not (3,)"),
        ("nan", "step gave an observation that is not finite"),
        ("inf", "step gave the reward inf"),
    ],
)
def test_a_bad_environment_is_stopped_alone(mischief, message, good):
    host_envs.MISCHIEF[1] = mischief
    bad = trained(env_timeout=0.5 if mischief == "hang" else 0.0)
    why = bad.stopped
    assert why == {1: f"stopped at step {host_envs.WHEN}: {message}"}
    assert bad.periods[0].period.failures == {}
    for name, values in good.metrics.items():
        np.testing.assert_array_equal(bad.metrics[name][:, [0, 2]], values[:, [0, 2]])
    for a, b in zip(jax.tree.leaves(bad.params), jax.tree.leaves(good.params), strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
    assert np.isnan(bad.metrics["loss"][0, 1, 1:]).all()
    assert np.isfinite(bad.metrics["loss"][0, 1, 0])


@TOLD
def test_the_last_good_weights_are_kept(good):
    """At step 45 the last update was the one of step 44: those of a run that ends there."""
    host_envs.MISCHIEF[1] = "raise"
    bad = trained()
    short = trained(steps=44, eval_every=0, epsilon_fraction=1.0)
    for a, b in zip(jax.tree.leaves(bad.params), jax.tree.leaves(short.params), strict=True):
        np.testing.assert_array_equal(a[1], b[1])


FLAGS = [
    *("--preset", "paper"),
    *("--seeds", "3", "--hidden", "8", "--steps", "120", "--batch", "8", "--buffer", "200"),
    *("--target-period", "40", "--eval-episodes", "2"),
]


def test_when_all_fail_the_command_says_so(tmp_path, capsys):
    host_envs.MISCHIEF.update({0: "nan", 1: "raise", 2: "raise"})
    out = tmp_path / "x"
    assert cli.main(["train", "tests/Naughty-v0", *FLAGS, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "every environment failed" in error
    assert error.count("\n") == 1


def test_the_folder_and_the_display_name_the_stopped(tmp_path, capsys):
    host_envs.MISCHIEF[1] = "raise"
    assert cli.main(["train", "tests/Naughty-v0", *FLAGS, "--out", str(tmp_path / "x")]) == 0
    assert "seed 1: stopped at step 45: RuntimeError: the cable is out" in capsys.readouterr().out
    about = (tmp_path / "x" / "run.json").read_text()
    assert '"1": "stopped at step 45' in about
    table = pd.read_csv(tmp_path / "x" / "metrics.csv")
    assert len(table) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["tests/Continuous-v0", "--algo", "tal"],
            "has continuous actions, for which --algo is one of sac",
        ),
        (["tests/Mapped-v0"], "only Box vectors and images"),
        (["tests/Naughty-v0", "--sticky", "0.1"], "has no option sticky"),
        (["Cartpole-v2"], "did you mean 'CartPole-v1'"),
        (["LunarLandr-v3"], "did you mean 'LunarLander-v3'"),
        (["ALE/Pongg-v5"], "did you mean 'ALE/Pong-v5'"),
        (["no_such_package:Env-v0"], "no_such_package"),
        (["CartPole-v1", "--stack", "4"], "host loop"),
        (["MinAtar/Breakout", "--loop", "host"], "it has no host loop"),
        (
            ["Pendulum-v1", "--algo", "tal"],
            "has continuous actions, for which --algo is one of sac",
        ),
        (["CartPole-v1", "--env-timeout", "-1", "--loop", "host"], "env_timeout"),
        (["FrozenLake-v1"], "--one-hot True"),
        (
            ["tests/Continuous-v0", "--preset", "paper", "--steps", "3"],
            "tal-ac has one preset, tuned",
        ),
        (["tests/Mapped-v0", "--preset", "paper", "--steps", "3"], "FlattenObservation"),
        (["CartPole-v1", "--loop", "host", "--one-hot", "True"], "one_hot is for Discrete ones"),
        (["CartPole-v1", "--one-hot", "True"], "has no option one_hot"),
    ],
)
def test_what_is_not_supported_is_one_line(arguments, message, tmp_path, capsys):
    assert cli.main(["train", *arguments, "--out", str(tmp_path / "x")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_lunar_lander_2_means_3(capsys, tmp_path):
    flags = tiny.flags(tiny.HOST)
    assert cli.main(["train", "LunarLander-v2", *flags, "--out", str(tmp_path / "x")]) == 0
    assert "LunarLander-v2 is called LunarLander-v3 now" in capsys.readouterr().out
    model = tsallax.load(tmp_path / "x")
    assert model.predict(np.zeros(8))[0] in range(4)
    assert cli.main(["evaluate", str(tmp_path / "x"), "--episodes", "2"]) == 0
    assert "over 8 episodes" in capsys.readouterr().out  # 2 of each of 2 seeds x 2 values of q


@pytest.fixture(scope="module")
def both():
    """CartPole in both loops, acting at random: 4 seeds of 1,200 steps."""
    fields = {"seeds": 4, "hidden": (8,), "steps": 1200, "target_period": 20, "epsilon": 1.0}
    fields |= {"preset": "paper", "epsilon_end": 1.0, "batch": 8, "buffer": 100, "train_period": 20}
    return [tsallax.train("CartPole-v1", loop=loop, **fields) for loop in ("compiled", "host")]


def test_both_loops_see_the_same_returns(both):
    """Random actions: episode lengths are drawn from one distribution, whichever loop draws."""
    compiled, on_host = (r.metrics["episode_return"][r.metrics["episodes"] == 1] for r in both)
    assert min(len(compiled), len(on_host)) > 90
    assert stats.ks_2samp(compiled, on_host).pvalue > 0.01
    total = [
        (r.metrics["episodes"] * np.nan_to_num(r.metrics["episode_return"])).sum() for r in both
    ]
    assert total[0] == pytest.approx(total[1], rel=0.03)  # steps, but for the unfinished episodes


def test_identical_updates_from_identical_batches():
    """The host's program and the agent's own function, cell by cell."""
    config = paper("CartPole-v1", seeds=2, hidden=(8,), batch=16, loop="host", alpha=(0.03, 0.3))
    run = make_run(config)
    random = np.random.default_rng(0)
    batch = Transition(
        random.normal(size=(4, 16, 4)).astype(np.float32),
        random.integers(2, size=(4, 16)),
        random.normal(size=(4, 16)).astype(np.float32),
        random.random((4, 16)) < 0.2,
        random.normal(size=(4, 16, 4)).astype(np.float32),
    )
    programs = make_programs(run.agent, run.hp, [0, 1, 0, 1], apart=False)
    held = programs.init()
    cell = lambda tree, i: jax.tree.map(lambda x: x[i], tree)  # noqa: E731
    alone = [
        jax.jit(run.agent.update)(cell(held, i), cell(batch, i), cell(run.hp, i), jax.random.key(0))
        for i in range(4)
    ]
    together, losses = programs.update(held, batch, 7)
    for i, (own, loss) in enumerate(alone):
        np.testing.assert_allclose(losses[i], loss, rtol=1e-6)
        for a, b in zip(jax.tree.leaves(cell(together, i)), jax.tree.leaves(own), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_draws_are_numbered_beyond_int32():
    """The i-th update after a step has the number `step + i steps`, by which SAL draws."""
    long = {"algo": "sal", "q": None, "steps": 2_000_000_000, "updates": 3, "eval_every": 0}
    run = make_run(tiny.config(tiny.HOST, **long))
    training = run.learner.train(run.learner.start(), lambda *_: None)
    assert np.isfinite(next(training).metrics.loss).all()
    training.close()


def test_play_shows_the_episodes_that_evaluate_plays():
    fields = {**SMALL, "stack": 3, "network": "mlp", "eval_every": 0, "steps": 40}
    result = tsallax.train("CartPole-v1", loop="host", **fields)
    for greedy in (False, True):
        returns = result.run.learner.evaluate(result.params, 2, greedy, 5)
        for seed in range(3):
            env, model = make_host("CartPole-v1", 1, render=True), result.model(0, seed)
            told = list(
                host_moments(
                    env, model.policy, model.act, stack=3, episodes=2, seed=5, greedy=greedy
                )
            )
            ends = [moment for moment in told if moment.action is None]
            np.testing.assert_array_equal([end.total for end in ends], returns[seed])
            assert env.action_names == ("left", "right")
            assert told[0].picture.shape == (400, 600, 3)
            assert not np.array_equal(told[0].picture, ends[0].picture)
            env.close()


def test_nothing_is_imported_by_a_name_in_a_file(finished, tmp_path, capsys):
    """The text of the environment in run.json is no permission."""
    (tmp_path / "innocent.py").write_text("raise SystemExit('this ran')")
    path = shutil.copytree(finished, tmp_path / "run")
    about = path / "run.json"
    about.write_text(about.read_text().replace('"CartPole-v1"', '"innocent:CartPole-v1"'))
    for command in ("evaluate", "play"):
        assert cli.main([command, str(path)]) == 2
        assert "needs 'innocent'" in capsys.readouterr().err
    assert cli.main(["train", "--resume", str(path)]) == 2
