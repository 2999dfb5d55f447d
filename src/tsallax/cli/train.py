"""`tsallax train`: train one algorithm, many seeds and numbers as one program."""

import contextlib
import signal
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from tsallax.cli.display import Display, duration
from tsallax.cli.errors import one_line
from tsallax.report.curves import draw_curves
from tsallax.training.config import Config, resolve, varied
from tsallax.training.folder import CURVES, METRICS, Folder
from tsallax.training.run import Run, make_run
from tsallax.training.session import session


@one_line
def run(config: Annotated[Config, tyro.conf.arg(name="")], out: Path | None = None) -> int:
    """Train an agent: every seed and every combination of numbers in one compiled program.

    Args:
        config: the run.
        out: the run's folder; runs/ENV-ALGO-TIME if left open.
    """
    asked, config = config.env, resolve(config)
    if config.env != asked:
        print(f"{asked} is called {config.env} now")
    name = f"{config.env.replace('/', '-')}-{config.algo}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = out or Path("runs") / name
    built = make_run(config)
    folder = Folder(path, config, built.cells, varied(config))
    begin, describe = time.monotonic(), f"{config.algo} on {config.env}"
    try:
        status, params, score = _train(built, folder)
        folder.save(params)
        draw_curves(path / METRICS, path / CURVES, f"{describe}, seeds: {config.seeds}")
        folder.close(status)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            folder.close("failed")
        raise
    print(f"{describe}: {status} after {duration(time.monotonic() - begin)}, return {score}")
    print(f"metrics {path / METRICS}\ncurves  {path / CURVES}")
    return 0 if status == "done" else 130


class Interrupt:
    """The first Ctrl-C ends the run after the period under way, the second at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "Interrupt":
        self.old = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.old)


def _train(run: Run, folder: Folder):
    config, status = run.config, "done"
    title = f"{config.algo} on {config.env}, {len(run.cells)} runs side by side"
    labels = [cell.label(folder.varied) for cell in run.cells]
    begin, params = time.monotonic(), None
    recent: list[Any] = []
    with Interrupt() as interrupt, Display(title, labels, config.steps) as show:
        for step, state, metrics, evaluation, stopped in session(run, run.start(), show.tick):
            params = state.learner.params
            folder.add(metrics, evaluation)
            folder.note_stopped(stopped)
            speed = show(step, metrics, stopped)
            folder.add_timing(step, time.monotonic() - begin, speed)
            recent = [*recent[-9:], metrics.episode_return]
            if interrupt.asked and step < config.steps:
                status = "stopped"
                break
    finite = np.array(recent)[np.isfinite(recent)]
    score = (
        f"{finite.mean():.1f} (mean of the last {len(recent)} periods)" if len(finite) else "none"
    )
    return status, params, score
