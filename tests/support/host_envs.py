"""Gymnasium environments that misbehave on demand, and one that has to be seen to be solved."""

import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

MISCHIEF: dict[int, str] = {}  # seed: what its environment does at step `WHEN`
WHEN = 45


class Naughty(gymnasium.Env):
    """A random walk: reward 1 for stepping to the right, at most 20 steps an episode."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float32)
    action_space = Discrete(2, start=5)

    def __init__(self):
        self.total = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.mischief = MISCHIEF.get(seed, "")
        self.t = 0
        return self.np_random.normal(size=3).astype(np.float32), {}

    def step(self, action):
        assert action in (5, 6)
        self.t, self.total = self.t + 1, self.total + 1
        observation = self.np_random.normal(size=3).astype(np.float32)
        reward = float(action == 6)
        if self.total == WHEN:
            match self.mischief:
                case "raise":
                    raise RuntimeError("the cable is out")
                case "hang":
                    time.sleep(60)
                case "shape":
                    observation = observation[:2]
                case "nan":
                    observation[1] = np.nan
                case "inf":
                    reward = np.inf
        return observation, reward, False, self.t >= 20, {}


class Continuous(Naughty):
    action_space = Box(-1, 1, (2,))


class Mapped(Naughty):
    observation_space = Dict({"a": Box(-1, 1, (2,)), "b": MultiBinary(3)})


class Drop(gymnasium.Env):
    """A ball falls for ten steps, drifting; be below it when it lands.

    One frame does not show the drift: it takes a stack to know early enough where to go.
    """

    SIZE, CELLS = 36, 9
    observation_space = Box(0, 255, (SIZE, SIZE), np.uint8)
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = int(self.np_random.integers(self.CELLS))
        self.drift = int(self.np_random.choice([-1, 1]))
        self.paddle, self.y = self.CELLS // 2, 0
        return self.picture(), {}

    def picture(self):
        frame = np.zeros((self.CELLS, self.CELLS), np.uint8)
        frame[self.y, self.x] = 255
        frame[-1, self.paddle] = 128
        return np.kron(frame, np.ones((4, 4), np.uint8))

    def step(self, action):
        self.paddle = int(np.clip(self.paddle + action - 1, 0, self.CELLS - 1))
        self.x = (self.x + self.drift) % self.CELLS
        self.y += 1
        landed = self.y == self.CELLS - 1
        reward = (1.0 if abs(self.x - self.paddle) <= 1 else -1.0) * landed
        return self.picture(), reward, landed, False, {}


def register() -> None:
    for maker in (Naughty, Continuous, Mapped, Drop):
        name = f"tests/{maker.__name__}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(name, maker)


register()
