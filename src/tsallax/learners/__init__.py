"""How experience is gathered and learned from: one protocol, one file per way of doing it.

A run has *cells*: every seed with every combination of numbers. The leading axis of every array
that a learner gives or takes is its cells.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from tsallax.learners.schedule import Metrics
from tsallax.networks.dense import Params
from tsallax.storage.tensors import Spec

Arrays = dict[str, np.ndarray]
Notes = dict[str, Any]  # what the arrays do not say, as JSON
Tick = Callable[[int], None]  # told the step now and then, between two periods


class Period(NamedTuple):
    """What one period of training left."""

    step: int
    state: Any  # used up by the next period
    params: Params
    metrics: Metrics
    failures: dict[int, str]  # cells whose environment failed, and how


@runtime_checkable
class Learner(Protocol):
    """Trains all cells of a run, from a state to the next."""

    def start(self) -> Any:
        """The state before the first step."""
        ...

    def train(self, state: Any, tick: Tick) -> Iterator[Period]:
        """Train from a state, which is used up, to the last step: one item per period."""
        ...

    def evaluate(
        self, params: Params, episodes: int, greedy: bool, seed: int = 0
    ) -> Float[np.ndarray, "cells episodes"]:
        """Returns of whole episodes, which start alike for every cell."""
        ...

    def params(self) -> Params:
        """The shapes of the parameters of all cells."""
        ...

    def save(self, state: Any) -> tuple[Arrays, Notes]:
        """A state as named arrays, and what they do not say."""
        ...

    def layout(self, notes: Mapping[str, Any]) -> dict[str, Spec]:
        """The arrays of a state saved with these notes; without notes, the largest there can be."""
        ...

    def restore(self, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]) -> Any:
        """The state that was saved."""
        ...
