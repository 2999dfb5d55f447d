"""`tsallax.train` with an environment instead of a name."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import tsallax
from support import host_envs
from support.host_envs import Naughty
from support.masked_envs import ALLOWED, TOP, Stairs, stairs
from tsallax import cli
from tsallax.envs import ready
from tsallax.envs.own import Source, own_environment
from tsallax.envs.pendulum import pendulum
from tsallax.types import Box

SMALL = {
    "preset": "paper",
    "hidden": (8,),
    "batch": 8,
    "buffer": 100,
    "target_period": 40,
    "steps": 80,
    "q": 2,
    "eval_episodes": 2,
}
PARALLEL = {
    "preset": "paper",
    "hidden": (8,),
    "q": 2,
    "rollout": 10,
    "minibatches": 4,
    "target_period": 80,
    "steps": 240,
    "eval_every": 240,
    "eval_episodes": 3,
}


@pytest.fixture(autouse=True)
def good_behaviour():
    host_envs.register()
    host_envs.MISCHIEF.clear()
    yield
    host_envs.MISCHIEF.clear()


def same(one, other):
    for name, values in one.metrics.items():
        np.testing.assert_array_equal(other.metrics[name], values)
    np.testing.assert_array_equal(one.evaluations, other.evaluations)
    jax.tree.map(np.testing.assert_array_equal, one.params, other.params)


@pytest.fixture(scope="module")
def by_name():
    host_envs.register()
    return tsallax.train("tests/Naughty-v0", **SMALL, seeds=2, eval_every=40)


@pytest.mark.parametrize(
    "give",
    [
        lambda: gymnasium.make("tests/Naughty-v0"),  # and a copy, for the second seed
        lambda: Naughty,
        lambda: lambda: gymnasium.make("tests/Naughty-v0"),
    ],
    ids=["object", "class", "function"],
)
def test_an_environment_is_what_its_name_stands_for(give, by_name):
    same(by_name, tsallax.train(give(), **SMALL, seeds=2, eval_every=40))


def test_an_object_is_used_as_it_is_and_left_open():
    class Counted(Naughty):
        closed = 0

        def close(self):
            self.closed += 1

    env = Counted()
    result = tsallax.train(env, **SMALL, eval_every=0)
    assert env.total == 80
    assert env.closed == 0
    assert result.config.env == "own/Counted"


@pytest.mark.parametrize("more", [{"seeds": 2, "eval_every": 0}, {"eval_every": 40}])
def test_an_object_that_cannot_be_copied_is_refused_at_once(more):
    env = Naughty()
    with pytest.raises(ValueError, match=r"second Naughty.*no spec.*give a function") as error:
        tsallax.train(env, **SMALL, **more)
    assert env.total == 0
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (3, "env must be a name, an environment, or a function that makes one, not int"),
        (lambda: 3, "env must make an environment, not int"),
        (Stairs, r"observations Discrete\(7\): --one-hot True"),
        (host_envs.Continuous, "has continuous actions, for which --algo is one of sac"),
        (host_envs.Mapped, "FlattenObservation"),
    ],
)
def test_what_is_no_environment_is_one_line(env, message):
    with pytest.raises(ValueError, match=message) as error:
        tsallax.train(env, **SMALL)
    assert "\n" not in str(error.value)


def test_a_function_that_gives_one_object_twice_is_refused():
    env = Naughty()
    with pytest.raises(ValueError, match="same environment twice"):
        tsallax.train(lambda: env, **SMALL, seeds=2)


def test_options_of_named_environments_are_refused():
    for env in (Naughty, stairs()):
        with pytest.raises(ValueError, match="has no option time_limit"):
            tsallax.train(env, **SMALL, time_limit=5)


def test_lists_and_arrays_may_stand_in_it():
    """What a compiled program is found by must have a hash."""
    bounds = Box(np.array([-2.0], np.float32), [2])  # type: ignore[arg-type]
    env = pendulum()._replace(action_names=["torque"], action_box=bounds)
    for own in (own_environment(env), own_environment(lambda: env), ready(env)):
        assert own.action_names == ("torque",)
        assert own.action_box == Box((-2.0,), (2.0,))
        hash(own)


def test_a_run_of_it_is_saved_and_loaded_with_it_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = stairs()
    env = env._replace(action_names=list(env.action_names))
    result = tsallax.train(env, **SMALL)
    folder = result.save(tmp_path / "run")
    with pytest.raises(ValueError, match="own/Stairs is an environment of a user's own"):
        tsallax.load(folder)
    model = tsallax.load(folder, env=env)
    seen, mask = np.eye(TOP + 1)[2], ALLOWED[2]
    np.testing.assert_array_equal(model.policy(seen, mask)[1], result.model().policy(seen, mask)[1])
    for command in ("evaluate", "play"):
        assert cli.main([command, str(folder)]) == 2
        assert "give it in Python" in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path)]) == 0
    with pytest.raises(ValueError, match="it needs no other"):
        tsallax.load(tsallax.train("CartPole-v1", **SMALL).save(tmp_path / "named"), env=env)


def test_the_command_line_knows_no_such_name(tmp_path, capsys):
    assert cli.main(["train", "own/Stairs", "--out", str(tmp_path / "x")]) == 2
    assert "give it in Python" in capsys.readouterr().err


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_is_so_many_environments(mode):
    """Whatever its own way of starting the next episode, to the bit."""
    vector = SyncVectorEnv([Stairs] * 4, autoreset_mode=mode)
    result = tsallax.train(vector, one_hot=True, **PARALLEL)
    assert result.config.num_envs == 4
    assert not result.stopped
    assert np.isfinite(result.evaluations[:, :, -1]).all()
    same(tsallax.train(Stairs, one_hot=True, learner="parallel", num_envs=4, **PARALLEL), result)


def test_several_seeds_take_several_vectors():
    """Of three; two seeds of four environments are eight, so that one is not looked at."""
    make = lambda: SyncVectorEnv([Stairs] * 3)  # noqa: E731
    result = tsallax.train(make, one_hot=True, seeds=2, num_envs=4, **PARALLEL)
    assert not result.stopped
    alone = {"learner": "parallel", "num_envs": 4, "seeds": 2, "one_hot": True}
    same(tsallax.train(Stairs, **alone, **PARALLEL), result)


def test_one_of_a_vector_that_misbehaves_is_stopped_alone():
    class Bad(Naughty):
        def step(self, action):
            observation, reward, *rest = super().step(action)
            return observation, np.inf if self.total == 15 else reward, *rest

    source = own_environment(SyncVectorEnv([Naughty, Bad, Naughty]))
    assert isinstance(source, Source)
    envs = source.envs(3)
    envs.reset([0, 1, 2])
    for _ in range(20):
        moves = envs.step(np.array([0, 1, 1]))
    assert envs.failures == {1: "step gave the reward inf"}
    assert moves.truncated.tolist() == [True, True, True]


def test_what_raises_in_a_vector_stops_all_of_it():
    host_envs.MISCHIEF[1] = "raise"
    source = own_environment(SyncVectorEnv([Naughty] * 2))
    envs = source.envs(2)
    envs.reset([0, 1])
    for _ in range(host_envs.WHEN):
        envs.step(np.zeros(2, int))
    assert set(envs.failures.values()) == {"RuntimeError: the cable is out"}
    assert set(envs.failures) == {0, 1}


def test_a_vector_is_for_the_parallel_learner():
    with pytest.raises(ValueError, match="parallel learner"):
        tsallax.train(SyncVectorEnv([Naughty] * 2), learner="replay")


def test_a_vector_without_single_resets_is_refused():
    fast = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match="cannot be reset one by one"):
        tsallax.train(fast, **{**PARALLEL, "eval_every": 0})


def test_one_hot_of_a_space_that_starts_elsewhere():
    class Shifted(Stairs):
        observation_space = gymnasium.spaces.Discrete(TOP + 1, start=3)

        def reset(self, **options):
            at, info = super().reset(**options)
            return at + 3, info

        def step(self, action):
            at, *rest = super().step(action)
            return 99 if at == 4 else at + 3, *rest

    envs = own_environment(Shifted).envs(1, one_hot=True, masks=True)
    seen = envs.reset([0])
    for action in (2, 1, 1):  # from 1 to 3, and to 4
        at = envs.envs[0].x
        np.testing.assert_array_equal(seen.observation, [np.arange(TOP + 1) == at])
        action = action if ALLOWED[at, action] else 1
        seen = envs.step(np.array([action])).observation
        if envs.envs[0].x == 4:
            break
    assert envs.failures == {0: "step gave the observation 99"}
