"""`tsallax train`: train one algorithm, many seeds and numbers side by side."""

import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from tsallax.cli.cache import use_cache
from tsallax.cli.display import Display, duration
from tsallax.cli.errors import one_line, printable
from tsallax.report.curves import draw_curves
from tsallax.training.config import Config, resolve
from tsallax.training.folder import (
    CURVES,
    METRICS,
    Folder,
    last_checkpoint,
    read_about,
    status,
)
from tsallax.training.run import Run, check_memory, make_run
from tsallax.training.session import session


@one_line
def run(
    config: Annotated[Config, tyro.conf.arg(name="")],
    out: Path | None = None,
    resume: Path | None = None,
) -> int:
    """Train an agent: every seed and every combination of numbers side by side.

    Args:
        config: the run.
        out: the run's folder; runs/ENV-ALGO-TIME if left open.
        resume: a folder whose run goes on from its last checkpoint, with its own configuration;
            ENV is needed only if it is `package:Name`, to allow that import.
    """
    if resume is not None:
        config, path = read_about(resume, config.env)["config"], resume
    else:
        asked, config = config.env, resolve(config)
        if config.env != asked:
            print(f"{asked} is called {config.env} now")
        name = f"{config.env.replace('/', '-')}-{config.algo}-{time.strftime('%Y%m%d-%H%M%S')}"
        path = out or Path("runs") / name
    before = status(path, config)
    if before == "done":
        print(f"{path} is done: there is nothing to resume")
        return 0
    use_cache()
    built = make_run(config)
    check_memory(built)
    folder = Folder(path, config, built.cells, resume=before is not None)
    begin, describe = time.monotonic(), printable(f"{config.algo} on {config.env}")
    try:
        state = _resume(built, folder) if before else built.start()
        end, params, score = _train(built, folder, state)
        if params is not None:
            folder.save(params)
            draw_curves(path / METRICS, path / CURVES, f"{describe}, seeds: {config.seeds}")
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            folder.close("failed")
        raise
    folder.close(end)
    print(f"{describe}: {end} after {duration(time.monotonic() - begin)}, return {score}")
    print(f"metrics {path / METRICS}\ncurves  {path / CURVES}")
    if end == "stopped":
        print(f"to go on: tsallax train --resume {path}")
    return 0 if end == "done" else 130


class Interrupt:
    """The first SIGINT or SIGTERM ends the run after the period under way, another at once."""

    def __init__(self, tell: Callable[[], None]) -> None:
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


def _resume(run: Run, folder: Folder) -> Any:
    """The state of the last whole checkpoint, and the metrics as they were then."""
    saved, refused = last_checkpoint(folder.path, run.config, run.specs)
    for why in refused:
        print(f"tsallax: {why}")
    if saved is None:
        print(f"{folder.path} has no checkpoint: the run starts anew")
        folder.restart()
        return run.start()
    print(f"{folder.path} goes on from step {saved.step:,}")
    folder.rewind(saved.about["sizes"])
    return run.thaw(saved.arrays, saved.about["run"])


def _train(run: Run, folder: Folder, state: Any):
    config, status = run.config, "done"
    title = f"{config.algo} on {config.env}, {len(run.cells)} runs side by side"
    labels = [cell.label(folder.varied) for cell in run.cells]
    begin, params, recent = time.monotonic(), None, []
    saved, saved_step = begin, int(state.step[0])
    with Display(title, labels, config.steps) as show, Interrupt(show.stopping) as interrupt:
        for step, state, metrics, evaluation, stopped in session(run, state, show.tick):  # noqa: B020
            params = state.learner.params
            folder.add(metrics, evaluation)
            folder.note_stopped(stopped)
            speed = show(step, metrics, stopped)
            folder.add_timing(step, time.monotonic() - begin, speed)
            recent = [*recent[-9:], metrics.episode_return]
            if step == config.steps:
                break
            due = config.save_seconds and time.monotonic() - saved >= config.save_seconds
            if interrupt.asked or (due and step - saved_step >= config.save_steps):
                folder.checkpoint(step, *run.freeze(state))
                saved, saved_step = time.monotonic(), step
            if interrupt.asked:
                status = "stopped"
                break
    finite = np.array(recent)[np.isfinite(recent)]
    score = (
        f"{finite.mean():.1f} (mean of the last {len(recent)} periods)" if len(finite) else "none"
    )
    return status, params, score
