"""Gymnasium environments with continuous actions: a good one, and spaces that cannot be learned."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from support.host_envs import Naughty

HOST = "tests/Reach-v0"
LOW, HIGH = np.array([-2, 0], np.float32), np.array([2, 0.3], np.float32)


class Reach(Naughty):
    """Reward for actions near 1 and 0.2; episodes of 20 steps, which end by a time limit.

    It does what `host_envs.MISCHIEF` says at its step `WHEN`.
    """

    action_space = Box(LOW, HIGH)

    def step(self, action):
        assert self.action_space.contains(action), action
        observation, reward, terminated, truncated, info = super().step(5)
        near = -float(np.sum((action - [1, 0.2]) ** 2))
        return observation, reward + near, terminated, truncated, info


def with_nan() -> Box:
    """Gymnasium refuses such bounds, unless they come later."""
    space = Box(-1, 1, (2,))
    space.low[1] = np.nan
    return space


# What each name's actions are, and what is said of them.
REFUSED: dict[str, tuple[gymnasium.Space, str]] = {
    "Unbounded": (Box(-np.inf, np.inf, (2,)), "no bounds in dimension 0, [-inf, inf]"),
    "HalfBounded": (
        Box(np.array([-1, 0], np.float32), np.array([1, np.inf], np.float32)),
        "no bounds in dimension 1, [0, inf]",
    ),
    "NaN": (with_nan(), "a bound that is not a number in dimension 1, [nan, 1]"),
    "Flat": (
        Box(np.array([-1, 3], np.float32), np.array([1, 3], np.float32)),
        "no width in dimension 1, [3, 3]",
    ),
    "Thin": (Box(1, 1 + 1e-12, (1,), np.float64), "no width in dimension 0, [1, 1]"),
    "Wide": (Box(-3e38, 3e38, (1,)), "bounds too far apart for float32 in dimension 0"),
    "Huge": (Box(-1e300, 1e300, (1,), np.float64), "no bounds in dimension 0, [-1e+300, 1e+300]"),
    "Whole": (Box(0, 5, (2,), np.int32), "a Box of int32 actions"),
    "Matrix": (Box(-1, 1, (2, 2)), "a Box of actions of the shape (2, 2)"),
    "Scalar": (Box(-1, 1, ()), "a Box of actions of the shape ()"),
    "Nothing": (Box(-1, 1, (0,)), "a Box of actions of the shape (0,)"),
    "Mixed": (Dict({"go": Discrete(2), "how": Box(-1, 1, (1,))}), "Dict actions"),
    "Pair": (Tuple((Discrete(2), Box(-1, 1, (1,)))), "Tuple actions"),
    "Several": (MultiDiscrete([2, 3]), "MultiDiscrete actions"),
    "Bits": (MultiBinary(3), "MultiBinary actions"),
}


class Refused(Naughty):
    def __init__(self, name: str):
        super().__init__()
        self.action_space = REFUSED[name][0]


class Picture(Reach):
    observation_space = Box(0, 255, (20, 20, 3), np.uint8)


class Unmade(Reach):
    def __init__(self):
        self.action_space = Box(np.float32(np.nan), 1, (2,))


def register() -> None:
    for maker in (Reach, Picture, Unmade):
        gymnasium.register(f"tests/{maker.__name__}-v0", maker)
    for name in REFUSED:
        gymnasium.register(f"tests/{name}-v0", Refused, kwargs={"name": name})


if HOST not in gymnasium.registry:
    register()
