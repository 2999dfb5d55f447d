"""The emulator through ale-py's vector environment: frames, scores, lives, options."""

import numpy as np
import pytest

from tsallax.envs.atari import GAMES, AtariEnvs, rom_of, snake

pytest.importorskip("ale_py")


def play(envs, steps, seed=0):
    """Random actions; the moves of each step."""
    random = np.random.default_rng(seed)
    return [envs.step(random.integers(len(envs.action_names), size=2)) for _ in range(steps)]


@pytest.fixture(scope="module")
def breakout():
    envs = AtariEnvs("ALE/Breakout-v5", 2)
    first = envs.reset([1, 2])
    moves = play(envs, 400)
    envs.close()
    return first, moves


def test_frames(breakout):
    first, moves = breakout
    assert first.shape == (2, 84, 84)
    assert first.dtype == np.uint8
    assert first.max() > 0
    assert not np.array_equal(moves[10].observation[0], moves[11].observation[0])


def test_an_episode_ends_and_the_next_begins(breakout):
    _, moves = breakout
    ends = [i for i, m in enumerate(moves) if m.over[0]]
    assert ends
    end = moves[ends[0]]
    assert end.terminated[0]
    assert not end.truncated[0]
    assert not np.array_equal(end.final[0], end.observation[0])
    np.testing.assert_array_equal(moves[0].final, moves[0].observation)


def test_the_score_is_raw(breakout):
    """A row of bricks is worth 1, 4 or 7: clipped ones would all be 1."""
    envs = AtariEnvs("ALE/SpaceInvaders-v5", 2)
    envs.reset([0, 1])
    rewards = np.concatenate([m.reward for m in play(envs, 300)])
    envs.close()
    assert rewards.max() >= 5
    assert set(np.concatenate([m.reward for m in breakout[1]])) <= {0, 1, 4, 7}


def test_a_lost_life_terminates_for_the_learner_only():
    envs = AtariEnvs("ALE/Breakout-v5", 2, episodic_life=True)
    envs.reset([1, 2])
    moves = play(envs, 400)
    envs.close()
    lost = sum(m.terminated[0] & ~m.over[0] for m in moves)
    over = sum(m.over[0] for m in moves)
    assert 4 * over <= lost <= 4 * (over + 1)  # five lives, the last one ends the game


def test_the_same_seeds_give_the_same_games():
    def frames(sticky):
        envs = AtariEnvs("ALE/Pong-v5", 2, sticky=sticky)
        envs.reset([3, 4])
        observation = np.stack([m.observation for m in play(envs, 60)])
        envs.close()
        return observation

    plain = frames(0.0)
    np.testing.assert_array_equal(plain, frames(0.0))
    assert not np.array_equal(plain, frames(0.25))
    assert not np.array_equal(plain[:, 0], plain[:, 1])


def test_a_time_limit_truncates():
    envs = AtariEnvs("ALE/Pong-v5", 2, time_limit=20, noop_max=0)
    envs.reset([0, 0])
    moves = play(envs, 25)
    envs.close()
    ends = [i for i, m in enumerate(moves) if m.over[0]]
    assert ends[:1] == [19]
    assert moves[19].truncated[0]
    assert not moves[19].terminated[0]


def test_names():
    envs = AtariEnvs("ALE/Pong-v5", 1)
    assert envs.action_names == ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")
    envs.close()
    assert snake("KungFuMaster") == "kung_fu_master"
    assert len(GAMES) == 15
    for game in GAMES:
        assert rom_of(f"ALE/{game}-v5") == snake(game)
    with pytest.raises(ValueError, match=r"did you mean 'ALE/KungFuMaster-v5'"):
        rom_of("ALE/KungFumaster-v5")
