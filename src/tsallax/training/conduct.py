"""A run into its folder: from its last checkpoint if there is one, to the end or to a stop."""

import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tsallax.networks import Params
from tsallax.training import checkpoint
from tsallax.training.folder import Folder, last_checkpoint, status
from tsallax.training.loop import Metrics
from tsallax.training.run import Run
from tsallax.training.session import session


@runtime_checkable
class Watch(Protocol):
    """Sees a run while it goes on."""

    def begin_at(self, step: int) -> None:
        """Before anything else: the step that the run starts or goes on from."""

    def tick(self, step: int) -> None:
        """Between two target periods, if there is anything to tell."""

    def __call__(self, step: int, metrics: Metrics, stopped: dict[int, str]) -> float:
        """After a target period; returns environment steps a second, of all cells together."""
        ...


class Ending(NamedTuple):
    status: str  # done or stopped
    returns: list[np.ndarray]  # of each cell, in the last ten periods


class Interrupt:
    """The first SIGINT or SIGTERM ends the run after the period under way, another at once."""

    def __init__(self, tell: Callable[[], None] = lambda: None) -> None:
        self.asked, self.tell = False, tell

    def __enter__(self) -> "Interrupt":
        self.old = {s: signal.signal(s, self._note) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _note(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.tell()

    def __exit__(self, *_: object) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)


def conduct(
    run: Run,
    path: Path,
    watch: Watch,
    asked: Callable[[], bool] = lambda: False,
    finish: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = print,
) -> Ending:
    """Train a run in its folder, new or resumed.

    Args:
        run: what to train.
        path: its folder, which is not `done` yet.
        watch: sees each period.
        asked: whether to stop; heard after each period.
        finish: adds to the folder before it says how the run ended.
        say: told where a resumed run goes on.
    """
    before = status(path, run.config)
    folder = Folder(path, run.config, run.cells, resume=before is not None)
    try:
        state = resume(run, folder, say) if before else run.start()
        ending, params = _train(run, folder, state, watch, asked)
        if params is not None:
            folder.save(params)
            finish()
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            folder.close("failed")
        raise
    folder.close(ending.status)
    return ending


def resume(run: Run, folder: Folder, say: Callable[[str], None]) -> Any:
    """The state of the last whole checkpoint, and the metrics as they were then."""
    saved, refused = last_checkpoint(folder.path, run.config, run.specs)
    for why in refused:
        say(f"tsallax: {why}")
    checkpoint.drop_after(folder.path, -1 if saved is None else saved.step)
    if saved is None:
        say(f"{folder.path} has no checkpoint: the run starts anew")
        folder.restart()
        return run.start()
    say(f"{folder.path} goes on from step {saved.step:,}")
    folder.rewind(saved.about["sizes"])
    return run.thaw(saved.arrays, saved.about["run"])


def _train(
    run: Run, folder: Folder, state: Any, watch: Watch, asked: Callable[[], bool]
) -> tuple[Ending, Params | None]:
    config, ended = run.config, "done"
    begin, params, recent = time.monotonic(), None, []
    saved, saved_step = begin, int(state.step[0])
    watch.begin_at(saved_step)
    for step, state, metrics, evaluation, stopped in session(run, state, watch.tick):  # noqa: B020
        params = state.learner.params
        folder.add(metrics, evaluation)
        folder.note_stopped(stopped)
        folder.add_timing(step, time.monotonic() - begin, watch(step, metrics, stopped))
        recent = [*recent[-9:], metrics.episode_return]
        if step == config.steps:
            break
        stop = asked()
        due = config.save_seconds and time.monotonic() - saved >= config.save_seconds
        if stop or (due and step - saved_step >= config.save_steps):
            folder.checkpoint(step, *run.freeze(state))
            saved, saved_step = time.monotonic(), step
        if stop:
            ended = "stopped"
            break
    return Ending(ended, recent), params
