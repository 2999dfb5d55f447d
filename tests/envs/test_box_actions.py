"""Continuous actions of Gymnasium's environments: which are refused, and how they are scaled."""

import gymnasium
import numpy as np
import pytest

from support import box_envs
from tsallax import cli
from tsallax.envs.actions import action_names, nobody
from tsallax.envs.host import make_host
from tsallax.types import Box


@pytest.mark.parametrize("name", box_envs.REFUSED)
def test_what_cannot_be_learned_is_one_line(name, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["train", f"tests/{name}-v0", "--algo", "tal-ac", "--steps", "2000"]
    assert cli.main([*command, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert box_envs.REFUSED[name][1] in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tests/Picture-v0"], "takes vectors of numbers, not images (20, 20, 3)"),
        (["tests/Unmade-v0"], "tests/Unmade-v0 cannot be made: No low value"),
        (["tests/Reach-v0", "--learner", "parallel"], "learns from a replay"),
        (["LunarLanderContinous-v3"], "did you mean 'LunarLanderContinuous-v3'"),
    ],
)
def test_other_bad_input_is_one_line(arguments, message, tmp_path, capsys):
    out = tmp_path / "run"
    command = ["train", *arguments, "--algo", "sac", "--steps", "2000", "--out", str(out)]
    assert cli.main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_actions_are_scaled_to_the_bounds_and_never_beyond():
    """-1, 0 and 1 are the lower bound, the middle and the upper bound."""
    box = Box(tuple(map(float, box_envs.LOW)), tuple(map(float, box_envs.HIGH)))
    found = box.scale(np.array([[-1, -1], [0, 0], [1, 1]], np.float32))
    np.testing.assert_allclose(found, [[-2, 0], [0, 0.15], [2, 0.3]], rtol=1e-6)
    # Without the clip, the width's rounding leads out of some bounds.
    random = np.random.default_rng(0)
    low, high = (random.random((2, 5000)) * [[-0.1], [10]]).astype(np.float32)
    wide = Box(tuple(map(float, low)), tuple(map(float, high)))
    ends = np.ones(5000, np.float32)
    assert (wide.scale(ends) <= high).all()
    assert (wide.scale(-ends) >= low).all()
    unclipped = low + 2 * ((high - low) / 2)
    assert (unclipped > high).any()


def test_an_environment_takes_its_own_units_and_types():
    envs = make_host(box_envs.HOST, 2)
    assert envs.action_box == Box((-2.0, 0.0), (2.0, float(np.float32(0.3))))
    envs.reset([0, 1])
    best = np.array([0.5, 0.2 / 0.15 - 1], np.float32)  # 1 and 0.2 in its units
    moves = envs.step(np.stack([best, -np.ones(2, np.float32)]))
    np.testing.assert_allclose(moves.reward, [0, -(3**2) - 0.2**2], atol=1e-5)
    envs.close()


def test_no_action_is_no_step_and_a_diverged_policy_stops_its_environment():
    envs = make_host(box_envs.HOST, 2)
    envs.reset([0, 1])
    assert envs.action_box is not None
    none = np.full((2, 2), nobody(envs.action_box), np.float32)
    assert (envs.step(none).reward == 0).all()
    assert not envs.failures
    envs.step(np.array([[0, 0], [np.nan, 0]], np.float32))
    assert envs.failures == {1: "the policy gave an action that is not finite"}
    envs.close()


def test_dimensions_have_names():
    lander = gymnasium.make("LunarLanderContinuous-v3")
    assert action_names(lander) == ("main engine", "side engines")
    lander.close()


@pytest.mark.slow  # the default suite does without MuJoCo
def test_joints_have_names():
    cheetah = gymnasium.make("HalfCheetah-v5")
    assert action_names(cheetah)[:2] == ("bthigh", "bshin")
    cheetah.close()
