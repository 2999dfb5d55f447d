"""`tsallax train`: train one algorithm, many seeds and numbers side by side."""

import dataclasses
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from tsallax.cli.display import Display, duration
from tsallax.cli.errors import one_line, printable
from tsallax.cli.logs import Log, Logged, check_logs, make_writers
from tsallax.report.curves import draw_curves
from tsallax.training.cache import use_cache
from tsallax.training.conduct import Interrupt, conduct
from tsallax.training.config import Config, resolve, varied
from tsallax.training.folder import CURVES, METRICS, read_about, status
from tsallax.training.run import check_memory, make_run


@one_line
def run(
    config: Annotated[Config, tyro.conf.arg(name="")],
    out: Path | None = None,
    resume: Path | None = None,
    devices: int = 1,
    log: tuple[Log, ...] = (),
) -> int:
    """Train an agent: every seed and every combination of numbers side by side.

    Args:
        config: the run.
        out: the run's folder; runs/ENV-ALGO-TIME if left open.
        resume: a folder whose run goes on from its last checkpoint, with its own configuration;
            ENV is needed only if it is `package:Name`, to allow that import.
        devices: of this host, among which seeds and numbers are shared out.
        log: where to write live logs as well.
    """
    if resume is not None:
        if out is not None or dataclasses.replace(config, env="") != Config(env=""):
            raise ValueError("a resumed run has its own configuration and folder: give neither")
        config, path = read_about(resume, config.env)["config"], resume
    else:
        asked, config = config.env, resolve(config)
        if config.env != asked:
            print(f"{asked} is called {config.env} now")
        name = f"{config.env.replace('/', '-')}-{config.algo}-{time.strftime('%Y%m%d-%H%M%S')}"
        path = out or Path("runs") / name
    if status(path, config) == "done":
        print(f"{path} is done: there is nothing to resume")
        return 0
    check_logs(log)
    use_cache()
    built = make_run(config, devices=devices)
    check_memory(built)
    begin, describe = time.monotonic(), printable(f"{config.algo} on {config.env}")
    labels = [cell.label(varied(config)) for cell in built.cells]
    title = f"{config.algo} on {config.env}, {len(labels)} runs side by side"

    def draw() -> None:
        draw_curves(path / METRICS, path / CURVES, f"{describe}, seeds: {config.seeds}")

    with Display(title, labels, config.steps) as show, Interrupt(show.stopping) as interrupt:
        watch = Logged(show, labels, lambda: make_writers(log, path, config)) if log else show
        end = conduct(built, path, watch, lambda: interrupt.asked, finish=draw)
    finite = np.array(end.returns)[np.isfinite(end.returns)]
    mean = (
        f"{finite.mean():.1f} (mean of the last {len(end.returns)} periods)"
        if len(finite)
        else "none"
    )
    took = duration(time.monotonic() - begin)
    print(f"{describe}: {end.status} after {took}, return {mean}")
    print(f"metrics {path / METRICS}\ncurves  {path / CURVES}")
    if end.status == "stopped":
        print(f"to go on: tsallax train --resume {path}")
    return 0 if end.status == "done" else 130
