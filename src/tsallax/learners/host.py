"""The parts that the learners of host environments share."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Shaped

from tsallax.types import Masked, allowed_at, bare


def generators(seeds: list[int], draw: int) -> list[np.random.Generator]:
    """Generators that depend on seed and `draw` only, so that no state has to be saved."""
    return [np.random.default_rng([seed, draw]) for seed in seeds]


def word(draw: int) -> np.uint32:
    """The number of a draw as a program takes it: many updates of a long run are beyond int32."""
    return np.uint32(draw % 2**32)


class Episodes:
    """Running return and length of each environment, and sums over the episodes that ended."""

    def __init__(self, count: int):
        self.current, self.length = np.zeros(count), np.zeros(count, int)
        self.clear()

    def clear(self) -> None:
        self.ended = np.zeros(len(self.current), int)
        self.returns, self.lengths = np.zeros(len(self.current)), np.zeros(len(self.current))

    def add(self, reward: Float[np.ndarray, "envs"], over: Bool[np.ndarray, "envs"]) -> None:
        self.current, self.length = self.current + reward, self.length + 1
        self.ended += over
        self.returns += np.where(over, self.current, 0)
        self.lengths += np.where(over, self.length, 0)
        self.current, self.length = np.where(over, 0, self.current), np.where(over, 0, self.length)

    def means(self, cells: int) -> dict[str, Shaped[np.ndarray, "cells"]]:
        """Means over the episodes that ended in each cell's environments, NaN if none did."""
        ended, returns, lengths = (
            x.reshape(cells, -1).sum(-1) for x in (self.ended, self.returns, self.lengths)
        )
        none = np.full(cells, np.nan)
        return {
            "episodes": ended,
            "episode_return": np.divide(returns, ended, out=none.copy(), where=ended > 0),
            "episode_length": np.divide(lengths, ended, out=none, where=ended > 0),
        }


class FrameStack:
    """The last frames of every environment, oldest first: zero before an episode's first frame.

    With `stack` 0 an observation is a single frame without a stack axis.
    """

    def __init__(self, frames: Any, stack: int):
        self.stack, shown = stack, bare(frames)
        self.current: Any = np.zeros((len(shown), stack, *shown.shape[1:]), shown.dtype)
        self.push(frames, np.ones(len(shown), bool))

    def after(self, frames: Any) -> Any:
        """The observations if the episodes continue with these frames, which may be `Masked`."""
        if not self.stack:
            return frames
        stack = np.concatenate([bare(self.current)[:, 1:], bare(frames)[:, None]], 1)
        allowed = allowed_at(frames)
        return stack if allowed is None else Masked(stack, allowed)

    def push(self, frames: Any, first: Bool[np.ndarray, "envs"]) -> None:
        """Append the next frames; `first` marks those that start an episode."""
        self.current = self.after(frames)
        if self.stack:
            bare(self.current)[first, :-1] = 0


def in_cells(seen: Any, cells: int) -> Any:
    """Observations of all environments, which may be `Masked`, with a leading axis of cells."""
    return jax.tree.map(lambda x: x.reshape(cells, -1, *x.shape[1:]), seen)


def chosen_rows(chosen: Bool[np.ndarray, "rows"], new: Any, old: Any) -> Any:
    """The rows of `new` where `chosen`, and those of `old` elsewhere."""

    def rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(chosen.reshape(-1, *(1,) * (x.ndim - 1)), x, y)

    return jax.tree.map(rows, new, old)
