"""What a run shows while it goes on: live on a terminal, a plain line now and then elsewhere."""

import os
import time
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from tsallax.cli.errors import printable

SPARKS = " ▁▂▃▄▅▆▇█"
ROWS = 12  # cells shown live; the rest is in the metrics file


def sparkline(values: list[float], width: int = 32) -> str:
    """The last values as small bars; a hole where no episode ended."""
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


class Display:
    """`with Display(...) as show: show(step, metrics)` after each target period."""

    def __init__(self, title: str, labels: list[str], steps: int, every: float = 5.0):
        self.console = Console()
        self.title, self.labels, self.steps, self.every = printable(title), labels, steps, every
        self.returns: list[list[float]] = [[] for _ in labels]
        self.metrics: Any = None
        self.stopped: dict[int, str] = {}
        self.told: set[int] = set()
        self.begin = self.last = self.ticked = time.monotonic()
        self.first = 0  # the step that a resumed run goes on from
        self.warm: tuple[float, int] | None = None  # speed counts from the first metrics on
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
        """For a signal: a print could meet one under way, so a live title waits its turn."""
        note = "stopping at the end of this target period; once more: at once"
        if self.console.is_terminal:
            self.title = f"{self.title}: {note}"
        else:
            os.write(2, f"{note}\n".encode())

    def begin_at(self, step: int) -> None:
        """Not at 0, if the run is resumed."""
        self.first = step

    def tick(self, step: int) -> None:
        """Between two periods: how far it is, once a second at most."""
        now = time.monotonic()
        if now - self.ticked < (1 if self.console.is_terminal else self.every):
            return
        self.ticked = now
        note = self._progress(step, now)[0]
        if self.console.is_terminal:
            self._draw(self.metrics)
        else:
            self.console.print(note, highlight=False)

    def _progress(self, step: int, now: float, known: float | None = None) -> tuple[str, float]:
        since, first = self.warm or (self.begin, self.first)
        measured = (step - first) * len(self.labels) / max(now - since, 1e-9)
        speed = measured if known is None else known
        self.warm = self.warm or (now, step)
        ahead = (self.steps - step) * len(self.labels)
        left = "?" if ahead and not speed else duration(ahead / (speed or 1))
        note = f"{step:,} / {self.steps:,} steps   {speed:,.0f} steps/s   {left} left"
        self.progress.update(self.task, completed=step, note=note)
        return note, speed

    def __call__(
        self,
        step: int,
        metrics: Any,
        stopped: dict[int, str] | None = None,
        speed: float | None = None,
    ) -> float:
        """Shows the metrics, returns the speed: environment steps a second, all cells together.

        It is measured, unless it is given.
        """
        now = time.monotonic()
        self.metrics, self.stopped = metrics, stopped or {}
        self.remember(metrics)
        note, speed = self._progress(step, now, speed)
        self.ticked = now
        if self.console.is_terminal:
            self._draw(metrics)
        elif now - self.last >= self.every or step >= self.steps:
            self.last = now
            ended = metrics.episode_return[np.isfinite(metrics.episode_return)]
            score = f"return {ended.mean():.1f}" if len(ended) else "no episode ended"
            self.console.print(f"{note}   {score}", highlight=False)
        self._tell_trouble()
        return speed

    def remember(self, metrics: Any) -> None:
        """A period that is past: part of the curve, and not drawn."""
        for series, value in zip(self.returns, metrics.episode_return, strict=True):
            series.append(float(value))

    def _trouble(self, i: int) -> str:
        """What is wrong with a cell, if anything is."""
        if i in self.stopped:
            return printable(self.stopped[i])
        bad = int(self.metrics.diverged[i])
        return f"diverged at step {bad:,}" if bad >= 0 else ""

    def _tell_trouble(self) -> None:
        """A line for each cell that went bad in this period."""
        for i, label in enumerate(self.labels):
            if self._trouble(i) and i not in self.told:
                self.told.add(i)
                self.console.print(Text(f"{label}: {self._trouble(i)}"))

    def _draw(self, metrics: Any) -> None:
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
