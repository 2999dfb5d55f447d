"""Priorities of the transitions in a host ring, for all cells: see `tsallax.replay.priorities`."""

import numpy as np
from jaxtyping import Float, Int

from tsallax.replay.priorities import LEVELS, draw, fan_out


class HostPriorities:
    """The trees of all cells, changed in place."""

    def __init__(self, cells: int, slots: int):
        F = fan_out(slots)
        self.slots, self.largest = slots, np.ones(cells, np.float32)
        self.sums = tuple(np.zeros((cells, *(F,) * n), np.float32) for n in range(1, LEVELS + 1))

    @property
    def leaves(self) -> Float[np.ndarray, "cells slots"]:
        return self.sums[-1].reshape(len(self.largest), -1)[:, : self.slots]

    def fill(
        self, leaves: Float[np.ndarray, "cells used"], largest: Float[np.ndarray, "cells"]
    ) -> None:
        """Restore saved leaves and compute their sums."""
        self.leaves[:, : leaves.shape[1]] = leaves
        for above, below in zip(self.sums[-2::-1], self.sums[:0:-1], strict=True):
            above[:] = below.sum(-1)
        self.largest = largest.copy()

    def put(
        self, cells: Int[np.ndarray, "n"], at: Int[np.ndarray, "n"], leaves: np.ndarray | float
    ) -> None:
        """Set the leaves in these slots of these cells, and update the sums above them."""
        *above, lowest = self.sums
        index = (cells, *np.unravel_index(at, lowest.shape[1:]))
        lowest[index] = leaves
        for level, below in zip(reversed(above), self.sums[:0:-1], strict=True):
            index = index[:-1]
            level[index] = below[index].sum(-1)

    def renew(self, at: Int[np.ndarray, "cells n"], leaves: Float[np.ndarray, "cells n"]) -> None:
        """Set the priorities of a batch after its update, from its errors."""
        cells = np.repeat(np.arange(len(at)), at.shape[1])
        self.put(cells, at.ravel(), leaves.ravel())
        self.largest = np.maximum(self.largest, leaves.max(1))

    def draw(
        self, cell: int, random: np.random.Generator, batch: int
    ) -> tuple[Int[np.ndarray, "batch"], Float[np.ndarray, "batch"]]:
        """Draw slots, with their leaves; a cell without any step has only slot 0."""
        uniform = random.random((LEVELS, batch), np.float32)
        at, leaves = draw(tuple(level[cell] for level in self.sums), uniform)
        return at, np.where(leaves > 0, leaves, 1)
