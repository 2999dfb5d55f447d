"""A replay ring on the host, for all cells, of frames that may be stacked.

A frame is stored once, as it came. Each slot is an observation; the transition that starts there
ends in the next slot. A truncated episode leaves its final observation in a slot of its own, where
no transition starts; a draw that hits one is drawn again.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from tsallax.types import Transition

TABLES = ("frames", "first", "starts", "actions", "rewards", "terminated")


class HostRing:
    """The last `capacity` slots of each cell.

    Args:
        cells: how many rings, side by side.
        capacity: of each; memory is taken from the system as it fills.
        shape: of one frame.
        dtype: of one frame.
        stack: how many frames make an observation, on a leading axis; 0 is a frame as it is.
    """

    def __init__(self, cells: int, capacity: int, shape: tuple[int, ...], dtype: Any, stack: int):
        self.capacity, self.stack, self.window = capacity, stack, max(stack, 1)
        self.slots = (
            capacity + self.window
        )  # the newest observation, and what the oldest stack needs
        size = (cells, self.slots)
        self.frames = np.zeros((*size, *shape), dtype)
        self.first = np.zeros(size, bool)  # an episode starts here
        self.starts = np.zeros(size, bool)  # a transition starts here
        self.actions = np.zeros(size, np.int32)
        self.rewards = np.zeros(size, np.float32)
        self.terminated = np.zeros(size, bool)
        self.newest = np.full(cells, -1)  # the slot of the observation to act on
        self.filled = np.zeros(cells, int)

    @property
    def used(self) -> int:
        """Slots that were ever written, from the first on."""
        return int(self.filled.max())

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that is in it, without what was never used."""
        table = {name: np.ascontiguousarray(getattr(self, name)[:, : self.used]) for name in TABLES}
        return {**table, "newest": self.newest, "filled": self.filled}

    def specs(self, used: int) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Shapes and types of `arrays` when so many slots are used."""
        table = {name: getattr(self, name) for name in TABLES}
        shapes = {name: ((len(x), used, *x.shape[2:]), x.dtype) for name, x in table.items()}
        cells = (self.newest.shape, self.newest.dtype)
        return {**shapes, "newest": cells, "filled": cells}

    def fill(self, arrays: dict[str, np.ndarray]) -> None:
        """Take what `arrays` gave."""
        if arrays["newest"].max() >= self.slots or arrays["filled"].max() > self.slots:
            raise ValueError("the replay points beyond its end")
        for name in TABLES:
            getattr(self, name)[:, : arrays[name].shape[1]] = arrays[name]
        self.newest, self.filled = arrays["newest"].copy(), arrays["filled"].copy()

    def restart(
        self, cells: Bool[np.ndarray, "cells"], observation: Shaped[np.ndarray, "cells ..."]
    ) -> None:
        """Go on in new episodes; the observation that was to be acted on stays a next one."""
        self._push(cells, observation, np.ones_like(cells))

    def begin(self, observation: Shaped[np.ndarray, "cells ..."]) -> None:
        """The first observation of every cell."""
        every = np.ones(len(observation), bool)
        self._push(every, observation, every)

    def add(
        self,
        cells: Bool[np.ndarray, "cells"],
        action: Int[np.ndarray, "cells"],
        reward: Float[np.ndarray, "cells"],
        terminated: Bool[np.ndarray, "cells"],
        cut: Bool[np.ndarray, "cells"],
        over: Bool[np.ndarray, "cells"],
        final: Shaped[np.ndarray, "cells ..."],
        observation: Shaped[np.ndarray, "cells ..."],
    ) -> None:
        """One step of the `cells` that are alive; `cut` are truncated, not terminated."""
        rows = np.flatnonzero(cells)
        at = rows, self.newest[rows]
        self.actions[at], self.rewards[at] = action[rows], reward[rows]
        self.terminated[at], self.starts[at] = terminated[rows], True
        if (cut & cells).any():
            self._push(cut & cells, final, np.zeros_like(over))
        self._push(cells, observation, over)

    def follow(
        self, over: Bool[np.ndarray, "cells"], observation: Shaped[np.ndarray, "cells ..."]
    ) -> None:
        """The next observation of every cell, without a transition: to act, not to learn."""
        self._push(np.ones_like(over), observation, over)

    def _push(self, cells, frames, first) -> None:
        rows = np.flatnonzero(cells)
        self.newest[rows] = (self.newest[rows] + 1) % self.slots
        at = rows, self.newest[rows]
        self.frames[at], self.first[at], self.starts[at] = frames[rows], first[rows], False
        self.filled[rows] = np.minimum(self.filled[rows] + 1, self.slots)

    def current(self) -> Shaped[np.ndarray, "cells ..."]:
        """What each cell acts on: seen just as it will be replayed."""
        cells = range(len(self.newest))
        return np.concatenate([self._observations(i, self.newest[i : i + 1]) for i in cells])

    def sample(self, draws: list[np.random.Generator], batch: int) -> Transition:
        """`batch` transitions of each cell, uniformly with replacement."""
        each = [self._sample(cell, random, batch) for cell, random in enumerate(draws)]
        arrays: list[Any] = [np.stack(column) for column in zip(*each, strict=True)]
        return Transition(*arrays)

    def _sample(self, cell: int, random: np.random.Generator, batch: int) -> tuple[Any, ...]:
        # The oldest stack must not reach back into the newest frames.
        oldest = min(self.filled[cell] - 1, self.slots - self.window)
        at = np.zeros(batch, int)
        missing = np.full(batch, oldest > 0)  # a cell that never made a step has only its zeros
        while missing.any():
            age = random.integers(1, oldest + 1, missing.sum())
            at[missing] = (self.newest[cell] - age) % self.slots
            missing = ~self.starts[cell, at]
        return (
            self._observations(cell, at),
            self.actions[cell, at],
            self.rewards[cell, at],
            self.terminated[cell, at],
            self._observations(cell, (at + 1) % self.slots),
        )

    def _observations(self, cell: int, at: Int[np.ndarray, "n"]) -> Shaped[np.ndarray, "n ..."]:
        """The frames in these slots; a stack is zero where it reaches before its episode."""
        if not self.stack:
            return self.frames[cell, at]
        back = (at[:, None] - np.arange(self.stack)[::-1]) % self.slots  # oldest first
        frames, first = self.frames[cell, back], self.first[cell, back]
        later = np.cumsum(first[:, ::-1], 1)[:, ::-1] - first  # starts after this frame
        frames[later > 0] = 0
        return frames
