"""Trains a run in its folder, from its last checkpoint if any, to the end or to a stop."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

from tsallax.learners import Ended, Period, metrics_of
from tsallax.learners.host import chosen_rows
from tsallax.storage.run_folder import RunFolder, status
from tsallax.training.build import Run
from tsallax.training.compile_time import compile_seconds
from tsallax.training.config import to_json, varied
from tsallax.training.initial import Initial, take_initial


class Progress(NamedTuple):
    """The results of one period, as a `Watcher` sees them."""

    period: Period
    evaluation: Float[np.ndarray, "cells episodes"] | None
    speed: float  # environment steps per second, of all cells together
    last: bool = False  # whether the run ends here


@runtime_checkable
class Watcher(Protocol):
    """Observes a run during training."""

    def begin_at(self, step: int) -> None:
        """Called first, with the step from which the run starts or resumes."""

    def tick(self, step: int, episodes: Ended | None = None) -> None:
        """Called occasionally within a period, if the learner supports it."""

    def __call__(self, progress: Progress) -> None:
        """Called after each period."""


class Silent:
    """A watcher that shows nothing."""

    def begin_at(self, step: int) -> None: ...
    def tick(self, step: int, episodes: Ended | None = None) -> None: ...
    def __call__(self, progress: Progress) -> None: ...


class Ending(NamedTuple):
    status: str  # done or stopped
    evaluation: Float[np.ndarray, "cells episodes"] | None = None  # the last one, if any
    best: Float[np.ndarray, "cells"] | None = None  # mean returns of the best evaluations


class Best:
    """The best evaluation of each cell so far, its step and its weights."""

    def __init__(self, cells: int):
        self.returns, self.steps = np.full(cells, -np.inf), np.full(cells, -1)
        self.params: Any = None

    def add(self, step: int, params: Any, evaluation: Float[np.ndarray, "cells episodes"]) -> bool:
        """Update the cells whose evaluation is better, and return whether there are any."""
        returns = evaluation.mean(-1)
        better = returns > self.returns  # false for the NaN of a failed cell
        self.returns = np.where(better, returns, self.returns)
        self.steps = np.where(better, step, self.steps)
        new = jax.tree.map(np.array, params)  # a copy: the next period donates the buffers
        if self.params is not None:
            new = chosen_rows(better, new, self.params)
        self.params = new
        return bool(better.any())


class Speed:
    """Environment steps per second of all cells, excluding compilation."""

    def __init__(self, cells: int, step: int):
        self.cells, self.first, self.begin = cells, step, self._seconds()

    @staticmethod
    def _seconds() -> float:
        return time.monotonic() - compile_seconds()

    def __call__(self, step: int) -> float:
        return (step - self.first) * self.cells / max(self._seconds() - self.begin, 1e-9)


def periods(run: Run, state: Any, watcher: Watcher, best: Best | None = None) -> Iterator[Progress]:
    """Train from `state`, whose buffers are donated, to the end, with the configured evaluations.

    The end is the last step, or earlier if every cell has reached `stop_at`. `best` holds the best
    evaluations from before a resumption.
    """
    config, every = run.config, run.config.eval_every
    before = int(state.step[0])
    speed = Speed(len(run.cells), before)
    best = best or Best(len(run.cells))
    watcher.begin_at(before)
    for period in run.learner.train(state, watcher.tick):
        evaluation = None
        if every and (period.step // every > before // every or period.step == config.steps):
            greedy = config.eval_acting == "argmax"
            evaluation = run.learner.evaluate(period.params, config.eval_episodes, greedy)
            best.add(period.step, period.params, evaluation)
        before = period.step
        solved = config.stop_at is not None and bool((best.returns >= config.stop_at).all())
        last = solved or period.step == config.steps
        progress = Progress(period, evaluation, speed(period.step), last)
        watcher(progress)
        yield progress
        if last:
            return


def train_into(
    run: Run,
    path: Path,
    watcher: Watcher,
    asked: Callable[[], bool] = lambda: False,
    picture: Callable[[Path], bytes] | None = None,
    say: Callable[[str], None] = print,
    keep_state: bool = True,
) -> Ending:
    """Train a run in its folder, new or resumed.

    Args:
        run: what to train.
        path: its folder, which must not be `done`.
        watcher: called with each period.
        asked: returns whether to stop; called after each period.
        picture: draws `curves.png` from the folder at the end.
        say: called with a message on where a resumed run continues.
        keep_state: keep the state of a finished run, up to the size in its configuration.
    """
    resumed = status(path, to_json(run.config)) is not None
    start_from = run.config.init_from and not resumed
    initial = take_initial(run) if start_from else None  # may refuse: before a folder is made
    folder = make_folder(path, run, resumed)
    try:
        if resumed:
            from tsallax.training.resume import known_best, resume

            state, best = resume(run, folder, say), known_best(run, folder)
        else:
            state, best = begin(run, folder, initial), Best(len(run.cells))
        ending, last = _train(run, folder, state, best, watcher, asked)
        if last is not None:
            folder.save_weights(last.params)
            if picture:
                folder.write("curves.png", picture(path))
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            folder.close("failed")
        raise
    folder.close(ending.status, lambda: _keep(run, folder, last) if last and keep_state else -1)
    return ending


def make_folder(path: Path, run: Run, resume: bool = False) -> RunFolder:
    cells = [{"seed": cell.seed, **cell.numbers} for cell in run.cells]
    numbers = varied(run.config)
    return RunFolder(
        path, to_json(run.config), cells, metrics_of(run.agent)._fields, numbers, resume
    )


def begin(run: Run, folder: RunFolder, initial: Initial | None) -> Any:
    """The state before the first step; initial weights of another run are copied to `folder`."""
    if initial is None:
        return run.learner.start()
    folder.save_initial(*initial)
    return run.learner.start(initial.params)


def _keep(run: Run, folder: RunFolder, period: Period) -> int:
    """Save the state of a finished run if it is small enough; returns its step, or -1."""
    arrays, notes = run.learner.save(period.state)
    if sum(x.nbytes for x in arrays.values()) > 1e6 * run.config.keep_state:
        return -1
    folder.save_checkpoint(period.step, arrays, notes)
    return period.step


def _train(
    run: Run,
    folder: RunFolder,
    state: Any,
    best: Best,
    watcher: Watcher,
    asked: Callable[[], bool],
) -> tuple[Ending, Period | None]:
    """Train to the end or to a stop; returns how it ended, and the last period if there is one."""
    config, ended, latest, period = run.config, "done", None, None
    begin = saved = time.monotonic()
    saved_step = int(state.step[0])
    for period, evaluation, speed, last in periods(run, state, watcher, best):
        step = period.step
        folder.add_metrics(period.metrics, evaluation)
        folder.add_failures(period.failures)
        folder.add_timing(step, time.monotonic() - begin, speed)
        if evaluation is not None:
            latest = evaluation
            if (best.steps == step).any():
                folder.save_best(best.params, best.returns.tolist(), best.steps.tolist())
        if last:
            break
        stop = asked()
        due = config.save_seconds and time.monotonic() - saved >= config.save_seconds
        if stop or (due and step - saved_step >= config.save_steps):
            folder.save_checkpoint(step, *run.learner.save(period.state))
            saved, saved_step = time.monotonic(), step
        if stop:
            ended = "stopped"
            break
    return Ending(ended, latest, None if latest is None else best.returns), period
