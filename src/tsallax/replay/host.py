"""A replay ring on the host, for all cells, of frames that may be stacked.

A frame is stored once, unchanged. Each slot is an observation; the transition that starts there
ends in the next slot. The final observation of a truncated episode has its own slot, where no
transition starts; if it is drawn, the draw is repeated.
"""

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from tsallax.replay.host_priorities import HostPriorities
from tsallax.types import Masked, Seen, Segment, Transition, allowed_at, bare, stacked


def tables(
    cells: int,
    slots: int,
    shape: tuple[int, ...],
    dtype: Any,
    dimensions: int | None = None,
    masks: int = 0,
    prioritised: bool = False,
) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shapes and dtypes of the arrays of a ring with `slots` slots."""
    one = (cells, slots)
    actions = (one, np.int32) if dimensions is None else ((*one, dimensions), np.float32)
    own = {"leaves": (one, np.float32), "largest": ((cells,), np.float32)} if prioritised else {}
    return {
        "frames": ((*one, *shape), dtype),
        **({"allowed": ((*one, masks), bool)} if masks else {}),  # action mask of each frame
        "first": (one, bool),  # an episode starts here
        "starts": (one, bool),  # a transition starts here
        "actions": actions,
        "rewards": (one, np.float32),
        "terminated": (one, bool),
        "newest": ((cells,), np.int64),  # the slot of the observation to act on
        "filled": ((cells,), np.int64),
        **own,
    }


class HostRing:
    """The last `capacity` slots of each cell.

    Args:
        cells: number of rings.
        capacity: transitions per cell, at least 2: with 1, a truncated episode's end and the next
            start could leave no transition. The system provides memory only as it fills.
        shape: shape of one frame.
        dtype: dtype of one frame.
        stack: frames per observation, on a leading axis; 0 for a single frame without that axis.
        dimensions: dimensions of an action; None for an index.
        masks: number of actions in a mask; 0 if observations have none.
        prioritised: keep priorities, to draw by them.
    """

    def __init__(
        self,
        cells: int,
        capacity: int,
        shape: tuple[int, ...],
        dtype: Any,
        stack: int,
        dimensions: int | None = None,
        masks: int = 0,
        prioritised: bool = False,
    ):
        self.capacity, self.stack, self.window = capacity, stack, max(stack, 1)
        self.masks = masks
        self.slots = (
            capacity + self.window
        )  # room for the newest observation and for the oldest stack
        kept = tables(cells, self.slots, shape, dtype, dimensions, masks)
        own: dict[str, Any] = {name: np.zeros(*x) for name, x in kept.items()}
        self.allowed = own.get("allowed")
        self.frames, self.first, self.starts = own["frames"], own["first"], own["starts"]
        self.actions, self.rewards = own["actions"], own["rewards"]
        self.terminated, self.filled = own["terminated"], own["filled"]
        self.newest = own["newest"] - 1
        self.priorities = HostPriorities(cells, self.slots) if prioritised else None

    @property
    def used(self) -> int:
        """The number of slots that were ever written, counted from the first."""
        return int(self.filled.max())

    def arrays(self) -> dict[str, np.ndarray]:
        """All contents, without the slots that were never used."""
        own = {name: getattr(self, name) for name in tables(1, 1, (), bool, None, self.masks)}
        if self.priorities is not None:
            own |= {"leaves": self.priorities.leaves, "largest": self.priorities.largest}
        used = {n: np.ascontiguousarray(x[:, : self.used]) for n, x in own.items() if x.ndim > 1}
        return {**own, **used}

    def fill(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the contents that `arrays` returned."""
        newest, filled = arrays["newest"], arrays["filled"]
        if not (0 <= newest).all() or not (newest < filled).all() or (filled > self.slots).any():
            raise ValueError("the replay points beyond its end")
        for name, x in arrays.items():
            if x.ndim > 1 and name != "leaves":
                getattr(self, name)[:, : x.shape[1]] = x
        self.newest, self.filled = newest.copy(), filled.copy()
        if self.priorities is not None:
            self.priorities.fill(arrays["leaves"], arrays["largest"])

    def restart(self, cells: Bool[np.ndarray, "cells"], observation: Seen) -> None:
        """Continue in new episodes; the newest observation stays the end of its transition."""
        self._push(cells, observation, np.ones_like(cells))

    def begin(self, observation: Seen) -> None:
        """Store the first observation of every cell."""
        every = np.ones(len(self.newest), bool)
        self._push(every, observation, every)

    def add(
        self,
        cells: Bool[np.ndarray, "cells"],
        action: Shaped[np.ndarray, "cells ..."],
        reward: Float[np.ndarray, "cells"],
        terminated: Bool[np.ndarray, "cells"],
        cut: Bool[np.ndarray, "cells"],
        over: Bool[np.ndarray, "cells"],
        final: Seen,
        observation: Seen,
    ) -> None:
        """Add one step of the `cells` that are alive; `cut` is truncated and not terminated."""
        rows = np.flatnonzero(cells)
        at = rows, self.newest[rows]
        self.actions[at], self.rewards[at] = action[rows], reward[rows]
        self.terminated[at], self.starts[at] = terminated[rows], True
        if (cut & cells).any():
            self._push(cut & cells, final, np.zeros_like(over))
        self._push(cells, observation, over)
        if self.priorities is not None:
            self.priorities.put(*at, self.priorities.largest[rows])

    def _push(self, cells, frames, first) -> None:
        rows = np.flatnonzero(cells)
        self.newest[rows] = (self.newest[rows] + 1) % self.slots
        at = rows, self.newest[rows]
        self.frames[at], self.first[at], self.starts[at] = bare(frames)[rows], first[rows], False
        if self.allowed is not None:
            self.allowed[at] = allowed_at(frames)[rows]
        self.filled[rows] = np.minimum(self.filled[rows] + 1, self.slots)
        if self.priorities is not None:  # the oldest stack now overlaps the newest frames
            self.priorities.put(rows, (self.newest[rows] + self.window - 1) % self.slots, 0.0)

    def current(self) -> Seen:
        """The observation that each cell acts on, exactly as it will be replayed."""
        cells = range(len(self.newest))
        each = [self._observations(i, self.newest[i : i + 1]) for i in cells]
        if self.allowed is None:
            return np.concatenate(each)
        return Masked(*map(np.concatenate, zip(*each, strict=True)))

    def sample(self, draws: list[np.random.Generator], batch: int) -> Transition:
        """`batch` transitions of each cell, uniformly with replacement."""
        return self.take(self.draw(draws, batch))

    def draw(self, draws: list[np.random.Generator], batch: int) -> Int[np.ndarray, "cells batch"]:
        """Slots of each cell, uniformly with replacement."""
        return np.stack([self._draw(cell, random, batch) for cell, random in enumerate(draws)])

    def draw_by_priority(
        self, draws: list[np.random.Generator], batch: int
    ) -> tuple[Int[np.ndarray, "cells batch"], Float[np.ndarray, "cells batch"]]:
        """Draw slots of each cell in proportion to their priorities; also returns these."""
        assert self.priorities is not None
        by = self.priorities
        at, leaves = _stacked(by.draw(cell, random, batch) for cell, random in enumerate(draws))
        return at, leaves

    def take(self, at: Int[np.ndarray, "cells batch"]) -> Transition:
        """The transitions in these slots."""
        return Transition(*_stacked(self._transition(cell, own) for cell, own in enumerate(at)))

    def segments(self, at: Int[np.ndarray, "cells batch"], n: int) -> Segment:
        """The n consecutive transitions from each of these slots on."""
        return Segment(*_stacked(self._segment(cell, own, n) for cell, own in enumerate(at)))

    def _draw(self, cell: int, random: np.random.Generator, batch: int) -> Int[np.ndarray, "batch"]:
        # The oldest stack must not overlap the newest frames.
        oldest = min(self.filled[cell] - 1, self.slots - self.window)
        at = np.zeros(batch, int)
        missing = np.full(batch, oldest > 0)  # a cell without any step has only slot 0
        while missing.any():
            age = random.integers(1, oldest + 1, missing.sum())
            at[missing] = (self.newest[cell] - age) % self.slots
            missing = ~self.starts[cell, at]
        return at

    def _transition(self, cell: int, at: Int[np.ndarray, "batch"]) -> tuple[Any, ...]:
        return (
            self._observations(cell, at),
            self.actions[cell, at],
            self.rewards[cell, at],
            self.terminated[cell, at],
            self._observations(cell, (at + 1) % self.slots),
        )

    def _segment(self, cell: int, at: Int[np.ndarray, "batch"], n: int) -> tuple[Any, ...]:
        steps = (at[:, None] + np.arange(n)) % self.slots
        following = (steps + 1) % self.slots
        # No transition starts where an episode was truncated, nor in the newest slot.
        cut = self.terminated[cell, steps] | ~self.starts[cell, following]
        ending = np.argmax(np.concatenate([cut[:, :-1], np.ones_like(cut[:, :1])], 1), 1)
        seen = self._observations(cell, steps.ravel())
        return (
            jax.tree.map(lambda x: x.reshape(*steps.shape, *x.shape[1:]), seen),
            self.actions[cell, steps],
            self.rewards[cell, steps],
            self.terminated[cell, steps],
            cut,
            self._observations(cell, following[np.arange(len(at)), ending]),
        )

    def _observations(self, cell: int, at: Int[np.ndarray, "n"]) -> Any:
        """The observations in these slots, with their masks if there are any."""
        if self.allowed is None:
            return self._stacks(cell, at)
        return Masked(self._stacks(cell, at), self.allowed[cell, at])

    def _stacks(self, cell: int, at: Int[np.ndarray, "n"]) -> Shaped[np.ndarray, "n ..."]:
        """The frames in these slots; a stack is zero before the start of its episode."""
        if not self.stack:
            return self.frames[cell, at]
        back = (at[:, None] - np.arange(self.stack)[::-1]) % self.slots  # oldest first
        frames, first = self.frames[cell, back], self.first[cell, back]
        later = np.cumsum(first[:, ::-1], 1)[:, ::-1] - first  # starts after this frame
        frames[later > 0] = 0
        return frames


def _stacked(cells: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [stacked(column) for column in zip(*cells, strict=True)]
