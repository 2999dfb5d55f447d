"""The display of a run during training: live on a terminal, else a line every few seconds."""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsallax.cli.live import Screen
from tsallax.spelling import counted, duration, printable
from tsallax.training.config import Config, grid, varied

if TYPE_CHECKING:
    from tsallax.learners import Ended
    from tsallax.training.driver import Progress

COMPILING = "compiling ..."  # next to the bar, until the first program runs
SPARKS = " ▁▂▃▄▅▆▇█"
NONE = "-"  # no episode ended
ROWS = 12  # most rows of the table; the rest is in the metrics file
DRAWN = 32  # most periods of a curve
EVERY = 5.0  # seconds between two plain lines
STOPPING = "stopping at the end of this period; press again to stop at once"


def title(config: Config) -> str:
    """The title of a run: the algorithm, the environment and the number of runs."""
    settings = len(grid(config))
    cells = config.seeds * settings
    parts = f": {counted(settings, 'setting')} x {counted(config.seeds, 'seed')}"
    parts = parts if settings > 1 < config.seeds else ""
    several = f", {cells} runs side by side{parts}" if cells > 1 else ""
    return f"{config.algo} on {config.env}{several}"


class Row(NamedTuple):
    """One line of the table: a cell, or the seeds of one setting."""

    label: str
    cells: slice


def rows_of(config: Config) -> list[Row] | None:
    """A row per setting, if a grid has several seeds per setting; None for a row per cell."""
    settings, seeds = grid(config), config.seeds
    if len(settings) == 1 or seeds == 1:
        return None
    labels = (" ".join(f"{n}={numbers[n]:g}" for n in varied(config)) for numbers in settings)
    return [Row(label, slice(i * seeds, (i + 1) * seeds)) for i, label in enumerate(labels)]


class Shown(NamedTuple):
    """The metrics of each cell that the display shows."""

    episode_return: np.ndarray
    max_q: np.ndarray
    action_gap: np.ndarray
    support: np.ndarray
    loss: np.ndarray
    diverged: np.ndarray


class Display:
    """A watcher of a run: `with Display(...) as show`.

    Args:
        title: the first line.
        labels: the labels of the cells.
        steps: number of steps of the whole run.
        waiting: the text shown until there are metrics.
        rows: rows of the table; one per cell if not given.
        early: whether the run may end before its last step.
        once: whether a plain line is printed without waiting.
    """

    def __init__(
        self,
        title: str,
        labels: list[str],
        steps: int,
        waiting: str = COMPILING,
        rows: list[Row] | None = None,
        early: bool = False,
        once: bool = False,
    ):
        self.console = Console()
        self.title, self.labels, self.steps, self.early = printable(title), labels, steps, early
        self.once = once
        self.rows = rows or [Row(label, slice(i, i + 1)) for i, label in enumerate(labels)]
        self.returns: list[list[float]] = [[] for _ in self.rows]
        self.metrics: Shown | None = None
        self.failures: dict[int, str] = {}
        self.told: set[int] = set()
        self.last = self.ticked = time.monotonic()
        self.speed = 0.0
        self.screen = (
            Screen(self.console, self.title, steps, waiting) if self.console.is_terminal else None
        )

    def __enter__(self) -> "Display":
        if self.screen:
            self.screen.live.start()
        else:
            self.console.print(Text(self.title))
        return self

    def __exit__(self, *_: Any) -> None:
        if self.screen:
            self.screen.live.stop()

    def stopping(self) -> None:
        """Called by another thread, possibly in the middle of a print."""
        if self.screen:
            self.screen.warning = STOPPING
            self.screen.live.refresh()
        else:
            os.write(2, f"{STOPPING}\n".encode())

    def begin_at(self, step: int) -> None:
        """Set the first step: a resumed run does not begin at 0."""
        if self.screen:
            self.screen.step = step

    def tick(self, step: int, episodes: "Ended | None" = None) -> None:
        """Show the step within a period, at most once per second."""
        now = time.monotonic()
        if now - self.ticked < (1 if self.screen else EVERY):
            return
        self.ticked = now
        note = self._note(step)
        if self.metrics is None and episodes is not None:  # else the table shows the last period
            note += _so_far(episodes.means(len(self.labels)))
        if self.screen:
            self.screen.show(step, note)
        else:
            self.console.print(note, highlight=False)

    def _note(self, step: int, last: bool = False) -> str:
        """The step, and the remaining time once the speed is known."""
        note = f"{step:,} / {self.steps:,} steps"
        if last and step < self.steps:
            return f"{note}   every run has reached --stop-at"
        if self.speed and step < self.steps:
            left = duration((self.steps - step) * len(self.labels) / self.speed)
            most = "at most " if self.early else ""
            note += f"   {self.speed:,.0f} steps/s   {most}{left} left"
        return note

    def __call__(self, progress: "Progress") -> None:
        """Show the results of a period of training."""
        period = progress.period
        values = (np.asarray(getattr(period.metrics, name)) for name in Shown._fields)
        shown = Shown(*values)
        self.show(period.step, shown, progress.speed, period.failures, progress.last)

    def show(
        self,
        step: int,
        metrics: Shown,
        speed: float,
        failures: dict[int, str] | None = None,
        last: bool = False,
    ) -> None:
        now = time.monotonic()
        self.metrics, self.failures, self.speed = metrics, failures or {}, speed
        self.remember(metrics)
        note = self._note(step, last)
        self.ticked = now
        if self.screen:
            self.screen.show(step, note, self.table())
        elif self.once or last or step >= self.steps or now - self.last >= EVERY:
            self.last = now
            ended = metrics.episode_return[np.isfinite(metrics.episode_return)]
            score = f"return {ended.mean():.1f}" if len(ended) else "no episode ended"
            self.console.print(f"{note}   {score}", highlight=False)
        self._tell_trouble()

    def remember(self, metrics: Shown) -> None:
        """Add a period to the curves, of which only the last part is drawn."""
        for series, row in zip(self.returns, self.rows, strict=True):
            ended = metrics.episode_return[row.cells]
            ended = ended[np.isfinite(ended)]
            series.append(float(ended.mean()) if len(ended) else np.nan)
            del series[:-DRAWN]

    def trouble(self, i: int) -> str:
        """The problem of a cell, if any."""
        if i in self.failures:
            return printable(self.failures[i])
        bad = int(self.metrics.diverged[i]) if self.metrics is not None else -1
        return f"diverged at step {bad:,}" if bad >= 0 else ""

    def table(self) -> list[Any]:
        """The rows with their latest metrics; empty before there are any."""
        if self.metrics is None:
            return []
        every = range(len(self.labels))
        wrong = [filter(None, map(self.trouble, every[row.cells])) for row in self.rows]
        troubles = [next(words, "") for words in wrong]
        return table_of(self.rows, self.metrics, self.returns, troubles)

    def print_table(self) -> None:
        """Print the table, unless a terminal shows it already."""
        if not self.screen:
            for part in self.table():
                self.console.print(part)

    def _tell_trouble(self) -> None:
        """Print a line for each cell with a new problem."""
        for i, label in enumerate(self.labels):
            if self.trouble(i) and i not in self.told:
                self.told.add(i)
                self.console.print(Text(f"{label}: {self.trouble(i)}"))


def _so_far(ended: dict[str, np.ndarray]) -> str:
    """Describes the episodes that have ended so far in a period."""
    count = ended["episodes"]
    if not count.sum():
        return "   no episode ended yet"
    mean = np.nansum(ended["episode_return"] * count) / count.sum()
    return f"   {counted(int(count.sum()), 'episode')}, return {mean:.1f}"


def table_of(
    rows: Sequence[Row], metrics: Shown, returns: Sequence[list[float]], troubles: Sequence[str]
) -> list[Any]:
    """The latest metrics of the rows that fit on the screen; means over the seeds of a row."""
    several = any(len(metrics.loss[row.cells]) > 1 for row in rows)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting" if several else "run")
    table.add_column("return", justify="right")
    if several:
        table.add_column("seeds", justify="right")
    table.add_column("")
    for name in ("max Q", "action gap", "support", "loss"):
        table.add_column(name, justify="right")
    for row, series, trouble in list(zip(rows, returns, troubles, strict=True))[:ROWS]:
        ended = metrics.episode_return[row.cells]
        means = [x[row.cells].mean() for x in (metrics.max_q, metrics.action_gap, metrics.loss)]
        table.add_row(
            Text.assemble(row.label, (f"  {trouble[:40]}", "bold red") if trouble else ""),
            NONE if np.isnan(ended).all() else f"{np.nanmean(ended):.1f}",
            *([_range(ended)] if several else []),
            sparkline(series),
            *(f"{x:.3g}" for x in means[:2]),
            f"{metrics.support[row.cells].mean():.2f}",
            f"{means[2]:.3g}",
        )
    more = len(rows) - ROWS
    rest = [Text(f"... and {counted(more, 'more row')}", style="dim")] if more > 0 else []
    return [table, *rest]


def _range(ended: np.ndarray) -> str:
    """The range from the lowest to the highest seed."""
    known = ended[np.isfinite(ended)]
    return f"{known.min():.1f} to {known.max():.1f}" if len(known) else NONE


def sparkline(values: list[float]) -> str:
    """Values as small bars, with a gap where no episode ended."""
    shown = np.array(values)
    finite = shown[np.isfinite(shown)]
    if not len(finite):
        return ""
    low, high = finite.min(), finite.max()
    heights = (shown - low) / (high - low or 1)  # 1 of the highest, without rounding
    return "".join(
        SPARKS[1 + int((len(SPARKS) - 2) * x)] if np.isfinite(x) else SPARKS[0] for x in heights
    )
