"""`tsallax watch`: a run of another process, as it goes on."""

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import tyro

from tsallax.cli.display import Display
from tsallax.cli.errors import one_line
from tsallax.training.config import varied
from tsallax.training.folder import METRICS, TIMING, read_about
from tsallax.training.lock import is_unlocked
from tsallax.training.run import make_cells


class Shown(NamedTuple):
    """Of a run's metrics, what the display shows."""

    episode_return: np.ndarray
    max_q: np.ndarray
    action_gap: np.ndarray
    support: np.ndarray
    loss: np.ndarray
    diverged: np.ndarray


@one_line
def run(
    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    every: float = 1.0,
    once: bool = False,
    env: str = "",
) -> None:
    """Show how a run in another process goes on, until it ends or Ctrl-C.

    Args:
        path: the run's folder.
        every: seconds between looks at it.
        once: one look, and no more.
        env: the run's own environment, needed only if it is `package:Name`, to allow that import.
    """
    config = read_about(path, env)["config"]
    cells = make_cells(config)
    labels = [cell.label(varied(config)) for cell in cells]
    title = f"{config.algo} on {config.env}, {len(cells)} runs side by side"
    seen = 0
    with Display(title, labels, config.steps) as show:
        while True:
            ended = read_about(path, env)["status"]  # before the rows: what it wrote last is seen
            gone = ended == "running" and is_unlocked(path)
            rows = list(periods(path / METRICS, len(cells)))
            for _, metrics in rows[seen:-1]:
                show.remember(metrics)
            if len(rows) > seen:
                step, metrics = rows[-1]
                show(step, metrics, speed=speed_at(path / TIMING))
            seen = len(rows)
            if once or gone or ended != "running":
                break
            time.sleep(every)
    if gone:
        ended = f"its process is gone; tsallax train --resume {path} goes on"
    print(f"{path}: {ended}")


def periods(metrics: Path, cells: int) -> Iterator[tuple[int, Shown]]:
    """The whole target periods of a table that may be written to just now."""
    with metrics.open(newline="") as file:
        whole = [line for line in file if line.endswith("\n")]
    rows = list(csv.DictReader(whole))
    for start in range(0, len(rows) - cells + 1, cells):
        block = rows[start : start + cells]
        values = {n: np.array([float(row[n] or "nan") for row in block]) for n in Shown._fields}
        yield int(block[0]["step"]), Shown(**values)


def speed_at(timing: Path) -> float:
    """Steps a second, as the run itself last said; 0 if it did not."""
    try:
        return float(timing.read_text().splitlines()[-1].split(",")[2])
    except (OSError, ValueError, IndexError):
        return 0.0
