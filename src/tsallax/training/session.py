"""A run under way: its periods, with the evaluations that were asked for between them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from tsallax.training.loop import Metrics
from tsallax.training.run import Run


class Progress(NamedTuple):
    """What one target period left. The leading axis of every array is the cells."""

    step: int
    state: Any
    metrics: Metrics
    evaluation: Float[np.ndarray, "cells episodes"] | None
    stopped: dict[int, str]  # cells whose environment failed, and how


def session(run: Run, state: Any, tick: Callable[[int], None] | None = None) -> Iterator[Progress]:
    """Train from `state`, which is used up, to the end; `tick` hears of the steps in between."""
    config = run.config
    before = int(state.step[0])
    for state, metrics in run.train(state, tick):  # noqa: B020 (the old state is used up)
        step, evaluation = int(metrics.step[0]), None
        every = config.eval_every
        if every and (step // every > before // every or step == config.steps):
            greedy = config.eval_acting == "argmax"
            params = state.learner.params
            evaluation = np.asarray(run.evaluate(params, config.eval_episodes, greedy))
        before = step
        yield Progress(step, state, metrics, evaluation, dict(getattr(state, "stopped", {})))
