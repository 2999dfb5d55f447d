"""What a run shows during training: live on a terminal, else a plain line every few seconds."""

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

from tsallax.cli import printable
from tsallax.cli.live import Screen, cell_table
from tsallax.training.config import Config, grid

if TYPE_CHECKING:
    from tsallax.training.driver import Progress

DRAWN = 32  # periods of a curve
EVERY = 5.0  # seconds between two plain lines
COMPILING = "compiling ..."  # beside the bar, until the first program runs


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s"


def title(config: Config) -> str:
    """What is trained: the algorithm, the environment and how many runs."""
    cells = config.seeds * len(grid(config))
    several = f", {cells} runs side by side" if cells > 1 else ""
    return f"{config.algo} on {config.env}{several}"


class Shown(NamedTuple):
    """The metrics that the display shows, of each cell."""

    episode_return: np.ndarray
    max_q: np.ndarray
    action_gap: np.ndarray
    support: np.ndarray
    loss: np.ndarray
    diverged: np.ndarray


class Display:
    """A watcher of a run: `with Display(...) as show`."""

    def __init__(self, title: str, labels: list[str], steps: int, waiting: str = COMPILING):
        self.console = Console()
        self.title, self.labels, self.steps = printable(title), labels, steps
        self.returns: list[list[float]] = [[] for _ in labels]
        self.metrics: Shown | None = None
        self.failures: dict[int, str] = {}
        self.told: set[int] = set()
        self.last = self.ticked = time.monotonic()
        self.speed = 0.0
        self.screen = Screen(self.console, steps, waiting) if self.console.is_terminal else None

    def __enter__(self) -> "Display":
        if self.screen:
            self.screen.live.start()
            self.screen.draw(self)
        else:
            self.console.print(Text(self.title))
        return self

    def __exit__(self, *_: Any) -> None:
        if self.screen:
            self.screen.live.stop()

    def stopping(self) -> None:
        """Called by a signal handler, which must not print in the middle of another print."""
        note = "stopping at the end of this target period; press again to stop at once"
        if self.screen:
            self.title = f"{self.title}: {note}"
        else:
            os.write(2, f"{note}\n".encode())

    def begin_at(self, step: int) -> None:
        """A resumed run does not begin at 0."""
        if self.screen:
            self.screen.update(step)
            self.screen.draw(self)

    def tick(self, step: int) -> None:
        """Between two periods: show the step, at most once per second."""
        now = time.monotonic()
        if now - self.ticked < (1 if self.screen else EVERY):
            return
        self.ticked = now
        note = self._note(step)
        if self.screen:
            self.screen.draw(self)
        else:
            self.console.print(note, highlight=False)

    def _note(self, step: int) -> str:
        """The step, and the time left as soon as the speed is known."""
        note = f"{step:,} / {self.steps:,} steps"
        if self.speed and step < self.steps:
            left = duration((self.steps - step) * len(self.labels) / self.speed)
            note += f"   {self.speed:,.0f} steps/s   {left} left"
        if self.screen:
            self.screen.update(step, note)
        return note

    def __call__(self, progress: "Progress") -> None:
        """Show what a period of training left."""
        period = progress.period
        values = (np.asarray(getattr(period.metrics, name)) for name in Shown._fields)
        self.show(period.step, Shown(*values), progress.speed, period.failures)

    def show(
        self, step: int, metrics: Shown, speed: float, failures: dict[int, str] | None = None
    ) -> None:
        now = time.monotonic()
        self.metrics, self.failures, self.speed = metrics, failures or {}, speed
        self.remember(metrics)
        note = self._note(step)
        self.ticked = now
        if self.screen:
            self.screen.draw(self)
        elif now - self.last >= EVERY or step >= self.steps:
            self.last = now
            ended = metrics.episode_return[np.isfinite(metrics.episode_return)]
            score = f"return {ended.mean():.1f}" if len(ended) else "no episode ended"
            self.console.print(f"{note}   {score}", highlight=False)
        self._tell_trouble()

    def remember(self, metrics: Shown) -> None:
        """Add a period to the curves, of which only the last part is drawn."""
        for series, value in zip(self.returns, metrics.episode_return, strict=True):
            series.append(float(value))
            del series[:-DRAWN]

    def trouble(self, i: int) -> str:
        """What is wrong with a cell, if anything is."""
        if i in self.failures:
            return printable(self.failures[i])
        bad = int(self.metrics.diverged[i]) if self.metrics is not None else -1
        return f"diverged at step {bad:,}" if bad >= 0 else ""

    def print_cells(self) -> None:
        """The table of the cells, where there is no terminal that shows it already."""
        if not self.screen:
            for part in cell_table(self):
                self.console.print(part)

    def _tell_trouble(self) -> None:
        """A line for each cell that went bad in this period."""
        for i, label in enumerate(self.labels):
            if self.trouble(i) and i not in self.told:
                self.told.add(i)
                self.console.print(Text(f"{label}: {self.trouble(i)}"))
