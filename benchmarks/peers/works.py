"""The works: one set of numbers, read by every contender, with the standard library only."""

from typing import NamedTuple


class Work(NamedTuple):
    title: str
    env: str
    hidden: tuple[int, ...]  # fully connected layers, after MinAtar's or Nature's convolutions
    batch: int
    train_period: int  # environment steps per update
    target_period: int  # environment steps per copy of the target network
    buffer: int
    optimiser: str
    learning_rate: float
    epsilon: float  # constant, as a random action costs some contenders less than a greedy one
    gamma: float = 0.99
    planes: int = 0  # of MinAtar's images
    actions: int = 6


def minatar(game: str, planes: int) -> Work:
    env = f"MinAtar/{game}"
    return Work(env, env, (128,), 32, 1, 1000, 100_000, "rmsprop", 2.5e-4, 0.05, planes=planes)


WORKS = {
    "gym": Work(
        "CartPole", "CartPole-v1", (512, 512), 128, 4, 2500, 50_000, "adam", 1e-3, 0.01, actions=2
    ),
    "breakout": minatar("Breakout", 4),
    "seaquest": minatar("Seaquest", 10),
    # The preset has a replay of 10^6, which is too large for two contenders at a time here.
    "pong": Work("Atari Pong", "ALE/Pong-v5", (512,), 32, 4, 8000, 100_000, "adam", 1e-4, 0.01),
}
CONV = 16  # channels of MinAtar's convolution, 3x3
QUANTILES = 200  # of Pong's head
RMSPROP = {"decay": 0.95, "eps": 0.01, "centered": True}
