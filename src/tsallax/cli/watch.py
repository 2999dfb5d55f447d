"""`tsallax watch`: show a run of another process."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from tsallax.cli.display import Display, Shown, rows_of, title
from tsallax.spelling import printable
from tsallax.storage.files import Directory, is_unlocked
from tsallax.storage.tables import read_metrics, read_timing
from tsallax.training.build import make_cells
from tsallax.training.config import varied
from tsallax.training.final import folder_scores, in_words
from tsallax.training.stored_config import read_run

LONGEST = 86_400  # seconds between two looks


def run(
    path: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    every: float = 1.0,
    once: bool = False,
    env: str = "",
) -> None:
    """Show the progress of a run in another process, until it ends or Ctrl-C.

    Args:
        path: a run's folder.
        every: seconds between updates of the display.
        once: show the present state of the run, then exit.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    if not 0 <= every <= LONGEST:
        raise ValueError(f"every must be between 0 and {LONGEST:,} seconds, not {every:g}")
    config = read_run(path, env)[0]
    cells = make_cells(config)
    labels = [cell.label(varied(config)) for cell in cells]
    seen = 0
    waiting = "no period has ended yet"
    early = config.stop_at is not None
    what = (title(config), labels, config.steps, waiting, rows_of(config), early, once)
    with Display(*what) as show:
        while True:
            # The status is read before the rows, so that the last rows are not missed.
            ended = read_run(path, env)[1].status
            with Directory(path) as folder:
                gone = ended == "running" and is_unlocked(folder)  # the process has died
                rows, timing = list(periods(folder, len(cells))), read_timing(folder)
            for _, shown in rows[seen:-1]:
                show.remember(shown)
            if len(rows) > seen:
                running = ended == "running" and not gone
                speed = timing[-1][2] if timing and running else 0.0
                show.show(*rows[-1], speed=speed, last=ended == "done")
            seen = len(rows)
            if once or gone or ended != "running":
                break
            time.sleep(every)
    if gone:
        ended = f"its process is gone; `tsallax train --resume {printable(path)}` resumes it"
    show.print_table()
    with Directory(path) as folder:
        print(f"{printable(path)}: {ended}, {in_words(folder_scores(folder))}")


def periods(folder: Directory, cells: int) -> Iterator[tuple[int, Shown]]:
    """The periods for which every cell has a row."""
    found, _ = read_metrics(folder, Shown._fields)
    if len(found) != cells:
        return
    for i in range(min(len(cell.steps) for cell in found)):
        values = {
            name: np.array([cell.columns[name][i] for cell in found]) for name in Shown._fields
        }
        yield int(found[0].steps[i]), Shown(**values)
