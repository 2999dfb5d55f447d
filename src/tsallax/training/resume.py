"""Restores a run from its folder: the state of its last checkpoint, and its best weights."""

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tsallax.spelling import printable
from tsallax.storage.run_folder import RunFolder, read_about
from tsallax.training.build import Run
from tsallax.training.driver import Best, begin
from tsallax.training.initial import kept_initial
from tsallax.training.stored_config import load_weights


def resume(run: Run, folder: RunFolder, say: Callable[[str], None]) -> Any:
    """Restore the state of the last intact checkpoint, and the metrics of that time."""
    saved, refused = folder.last_checkpoint(run.learner.layout)
    for why in refused:
        say(f"tsallax: {printable(why)}")
    if saved is None:
        say(f"{printable(folder.path)} has no checkpoint: the run starts from the beginning")
        return begin(run, folder, kept_initial(run, folder.path) if run.config.init_from else None)
    say(f"{printable(folder.path)} resumes from step {saved.step:,}")
    return run.learner.restore(saved.arrays, saved.about["run"])


def known_best(run: Run, folder: RunFolder) -> Best:
    """The best evaluations in a resumed run's folder, if they are intact."""
    best, about = Best(len(run.cells)), read_about(folder.path)
    with contextlib.suppress(ValueError, KeyError, TypeError, OSError):
        returns, steps = (np.array(about.everything["best"][n]) for n in ("return", "step"))
        params = load_weights(folder.path, about, run.learner.params(), best=True)
        if returns.shape == steps.shape == best.steps.shape:
            best.returns, best.steps = returns.astype(float), steps
            best.params = jax.tree.map(np.asarray, params)
    return best
