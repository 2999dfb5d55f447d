"""What a run shows during training: live on a terminal, else a plain line every few seconds."""

import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from tsallax.cli import printable

if TYPE_CHECKING:
    from tsallax.training.driver import Progress as Trained

SPARKS = " ▁▂▃▄▅▆▇█"
SPARKLINE = 32  # periods drawn
ROWS = 12  # cells shown live; the rest is in the metrics file


def sparkline(values: list[float], width: int = SPARKLINE) -> str:
    """The last values as small bars, with a gap where no episode ended."""
    shown = np.array(values[-width:])
    finite = shown[np.isfinite(shown)]
    if not len(finite):
        return ""
    low, high = finite.min(), finite.max()
    scale = (len(SPARKS) - 2) / (high - low) if high > low else 0
    return "".join(
        SPARKS[1 + int((x - low) * scale)] if np.isfinite(x) else SPARKS[0] for x in shown
    )


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s"


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

    def __init__(self, title: str, labels: list[str], steps: int, every: float = 5.0):
        self.console = Console()
        self.title, self.labels, self.steps, self.every = printable(title), labels, steps, every
        self.returns: list[list[float]] = [[] for _ in labels]
        self.metrics: Shown | None = None
        self.failures: dict[int, str] = {}
        self.told: set[int] = set()
        self.begin = self.last = self.ticked = time.monotonic()
        self.first = 0  # the step that a resumed run starts from
        self.speed = 0.0
        self.live = Live(console=self.console, auto_refresh=False)
        self.progress = Progress(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(48),
            TextColumn("{task.fields[note]}"),
        )
        self.task = self.progress.add_task("", total=steps, note="compiling ...")

    def __enter__(self) -> "Display":
        if self.console.is_terminal:
            self.live.start()
            self._draw(None)
        else:
            self.console.print(Text(self.title))
        return self

    def __exit__(self, *_: Any) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def stopping(self) -> None:
        """Called by a signal handler, which must not print in the middle of another print."""
        note = "stopping at the end of this target period; press again to stop at once"
        if self.console.is_terminal:
            self.title = f"{self.title}: {note}"
        else:
            os.write(2, f"{note}\n".encode())

    def begin_at(self, step: int) -> None:
        """A resumed run does not begin at 0."""
        self.first = step
        self.progress.update(self.task, completed=step)

    def tick(self, step: int) -> None:
        """Between two periods: show the step, at most once per second."""
        now = time.monotonic()
        if now - self.ticked < (1 if self.console.is_terminal else self.every):
            return
        self.ticked = now
        note = self._note(step)
        if self.console.is_terminal:
            self._draw(self.metrics)
        else:
            self.console.print(note, highlight=False)

    def _note(self, step: int) -> str:
        """The step, and the time left as soon as the speed is known."""
        note = f"{step:,} / {self.steps:,} steps"
        if self.speed:
            left = duration((self.steps - step) * len(self.labels) / self.speed)
            note += f"   {self.speed:,.0f} steps/s   {left} left"
        self.progress.update(self.task, completed=step, note=note)
        return note

    def __call__(self, progress: "Trained") -> None:
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
        if self.console.is_terminal:
            self._draw(metrics)
        elif now - self.last >= self.every or step >= self.steps:
            self.last = now
            ended = metrics.episode_return[np.isfinite(metrics.episode_return)]
            score = f"return {ended.mean():.1f}" if len(ended) else "no episode ended"
            self.console.print(f"{note}   {score}", highlight=False)
        self._tell_trouble()

    def remember(self, metrics: Shown) -> None:
        """Add a period to the curves, of which only the last part is drawn."""
        for series, value in zip(self.returns, metrics.episode_return, strict=True):
            series.append(float(value))
            del series[:-SPARKLINE]

    def _trouble(self, i: int) -> str:
        """What is wrong with a cell, if anything is."""
        if i in self.failures:
            return printable(self.failures[i])
        bad = int(self.metrics.diverged[i]) if self.metrics is not None else -1
        return f"diverged at step {bad:,}" if bad >= 0 else ""

    def _tell_trouble(self) -> None:
        """A line for each cell that went bad in this period."""
        for i, label in enumerate(self.labels):
            if self._trouble(i) and i not in self.told:
                self.told.add(i)
                self.console.print(Text(f"{label}: {self._trouble(i)}"))

    def _draw(self, metrics: Shown | None) -> None:
        parts: list[Any] = [Text(self.title, style="bold"), self.progress]
        if metrics is not None:
            table = Table(box=None, pad_edge=False, header_style="dim")
            table.add_column("run")
            table.add_column("return", justify="right")
            table.add_column("")
            for name in ("max Q", "action gap", "support", "loss"):
                table.add_column(name, justify="right")
            for i, label in enumerate(self.labels[:ROWS]):
                trouble = self._trouble(i)
                table.add_row(
                    Text.assemble(label, (f"  {trouble[:40]}", "bold red") if trouble else ""),
                    f"{metrics.episode_return[i]:.1f}",
                    sparkline(self.returns[i]),
                    *(f"{x[i]:.3g}" for x in (metrics.max_q, metrics.action_gap)),
                    f"{metrics.support[i]:.2f}",
                    f"{metrics.loss[i]:.3g}",
                )
            parts.append(table)
            if len(self.labels) > ROWS:
                parts.append(Text(f"... and {len(self.labels) - ROWS} more", style="dim"))
        self.live.update(Group(*parts), refresh=True)
