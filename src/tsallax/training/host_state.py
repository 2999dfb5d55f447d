"""What a host run is between two steps, and as arrays of a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from tsallax.agents import Learner
from tsallax.replay import HostRing
from tsallax.training import freeze
from tsallax.training.host_programs import Held, Programs


class Episodes:
    """Running return and length of each cell, and the sums over what ended in this period."""

    def __init__(self, cells: int):
        self.current, self.length = np.zeros(cells), np.zeros(cells, int)
        self.clear()

    def clear(self) -> None:
        self.ended = np.zeros(len(self.current), int)
        self.returns, self.lengths = np.zeros(len(self.current)), np.zeros(len(self.current))

    def add(self, reward: Float[np.ndarray, "cells"], over: Bool[np.ndarray, "cells"]) -> None:
        self.current, self.length = self.current + reward, self.length + 1
        self.ended += over
        self.returns += np.where(over, self.current, 0)
        self.lengths += np.where(over, self.length, 0)
        self.current, self.length = np.where(over, 0, self.current), np.where(over, 0, self.length)

    def mean(self, sums: Float[np.ndarray, "cells"]) -> Float[np.ndarray, "cells"]:
        """Over the episodes that ended, NaN if none did."""
        return np.divide(sums, self.ended, out=np.full_like(sums, np.nan), where=self.ended > 0)


@dataclass
class HostState:
    """Everything that a run is, but for what the environments keep to themselves."""

    step: Int[np.ndarray, "cells"]
    programs: Programs
    held: Held  # the learners, as the programs hold them
    replay: HostRing
    episodes: Episodes
    diverged: Int[np.ndarray, "cells"]
    stopped: dict[int, str] = field(default_factory=dict)  # cells whose environment failed
    kept: dict[int, Learner] = field(default_factory=dict)  # and their last good learners

    @property
    def learner(self) -> Learner:
        """Of all cells, with a leading axis; used up by the next update."""
        return self.programs.stack(self.held)

    @property
    def alive(self) -> Bool[np.ndarray, "cells"]:
        alive = np.ones(len(self.step), bool)
        alive[list(self.stopped)] = False
        return alive

    def about(self) -> dict[str, Any]:
        """What the arrays do not say."""
        return {"used": self.replay.used, "stopped": {str(i): x for i, x in self.stopped.items()}}

    def freeze(self) -> dict[str, np.ndarray]:
        own = {"step": self.step, "diverged": self.diverged}
        replay = {f"replay.{name}": x for name, x in self.replay.arrays().items()}
        return {**own, **replay, **freeze.freeze({"learner": self.learner})}

    def thaw(self, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """Become the state that was frozen. Running episodes are not counted."""
        self.step, self.diverged = arrays["step"].copy(), arrays["diverged"].copy()
        learner = freeze.thaw({"learner": self.learner}, arrays)["learner"]
        self.held = self.programs.unstack(learner)
        self.replay.fill(
            {n.removeprefix("replay."): x for n, x in arrays.items() if n.startswith("replay.")}
        )
        self.stopped = {int(i): str(why) for i, why in about["stopped"].items()}
        self.kept = {i: self.programs.take(self.held, i) for i in self.stopped}
