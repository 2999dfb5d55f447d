"""Evaluations on the host: episodes side by side are the episodes one at a time."""

import numpy as np
import pytest

from support.host_envs import Naughty
from tsallax.envs.host import GymEnvs
from tsallax.learners.rollout import by_policy, evaluate_host, side_by_side

EPISODES, CELLS = 11, 2


class Sum(Naughty):
    """A walk along the observation's first number; the seeds of an episode decide its length.

    The episode of seed 9 fails at its third step.
    """

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.x = seed, float(seed or 0)
        return self.seen(), {}

    def seen(self):
        return np.array([self.x, self.t, 1], np.float32)

    def step(self, action):
        self.t, self.x = self.t + 1, self.x + (1 if action == 6 else -0.5)
        if self.seed == 9 and self.t == 3:
            raise RuntimeError("out of order")
        over = self.t == 4 + (self.seed or 0) % 5
        return self.seen(), self.x, over, False, {}


def played(side: int, seed: int, greedy: bool = False, stack: int = 0):
    """The returns, and the number of calls of the policy."""
    envs = GymEnvs("tests/Naughty-v0", CELLS * side)
    envs.envs = [Sum() for _ in range(envs.count)]
    calls = []

    def policy(seen):
        assert seen.shape == (CELLS, side, *((stack,) if stack else ()), 3)
        calls.append(seen)
        own = seen.reshape(CELLS, side, -1).sum(-1) + np.arange(CELLS)[:, None]
        right = 0.5 + 0.4 * np.sin(3 * own)
        pi = np.stack([1 - right, right], -1)
        return pi, pi

    act = by_policy(policy)
    return evaluate_host(envs, act, CELLS, stack, EPISODES, greedy, seed), len(calls)


@pytest.mark.parametrize("stack", [0, 2])
@pytest.mark.parametrize("greedy", [False, True])
def test_the_same_returns_in_fewer_calls(greedy, stack):
    alone, most = played(1, 20, greedy, stack)
    assert most == sum(4 + seed % 5 for seed in range(20, 20 + EPISODES))
    assert len(np.unique(alone)) > EPISODES  # the cells act differently, the episodes too
    for side in (3, EPISODES):
        together, calls = played(side, 20, greedy, stack)
        np.testing.assert_array_equal(together, alone)
        assert calls <= most / side + 8  # an even share, and the last episode
    assert calls == 8


def test_a_return_by_hand():
    """Seed 20 starts at 20 and lasts 4 steps: greedily right if sin(3 (x + t + 1)) > 0."""
    x, total = 20.0, 0.0
    for t in range(4):
        x += 1 if np.sin(3 * (x + t + 1)) > 0 else -0.5
        total += x
    assert played(3, 20, greedy=True)[0][0, 0] == total


@pytest.mark.parametrize("side", [1, 2, EPISODES])
def test_nothing_counts_from_a_failure_on(side):
    """Seed 9 is the sixth episode from 4 on."""
    returns, _ = played(side, 4)
    assert np.isfinite(returns[:, :5]).all()
    assert np.isnan(returns[:, 5:]).all()


def test_how_many_are_played_at_once():
    assert [side_by_side(cells, 100) for cells in (1, 3, 16, 40)] == [16, 5, 1, 1]
    assert side_by_side(1, 4) == 4
