"""A run on a terminal: a bar, and a table of its cells that is redrawn in place."""

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from tsallax.cli.display import Display

SPARKS = " ▁▂▃▄▅▆▇█"
NONE = "-"  # no episode ended
ROWS = 12  # cells shown; the rest is in the metrics file


class Screen:
    """What `Display` draws on, where there is a terminal."""

    def __init__(self, console: Console, steps: int, waiting: str):
        self.live = Live(console=console, auto_refresh=False)
        self.progress = Progress(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(48),
            TextColumn("{task.fields[note]}"),
        )
        self.task = self.progress.add_task("", total=steps, note=waiting)

    def update(self, step: int, note: str | None = None) -> None:
        """Move the bar, and change what stands beside it."""
        self.progress.update(self.task, completed=step)
        if note is not None:
            self.progress.update(self.task, note=note)

    def draw(self, shown: "Display") -> None:
        parts = [Text(shown.title, style="bold"), self.progress, *cell_table(shown)]
        self.live.update(Group(*parts), refresh=True)


def cell_table(shown: "Display") -> list[Any]:
    """The latest metrics of each cell, as far as there is room for them."""
    metrics = shown.metrics
    if metrics is None:
        return []
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("run")
    table.add_column("return", justify="right")
    table.add_column("")
    for name in ("max Q", "action gap", "support", "loss"):
        table.add_column(name, justify="right")
    for i, label in enumerate(shown.labels[:ROWS]):
        trouble = shown.trouble(i)
        table.add_row(
            Text.assemble(label, (f"  {trouble[:40]}", "bold red") if trouble else ""),
            NONE if np.isnan(metrics.episode_return[i]) else f"{metrics.episode_return[i]:.1f}",
            sparkline(shown.returns[i]),
            *(f"{x[i]:.3g}" for x in (metrics.max_q, metrics.action_gap)),
            f"{metrics.support[i]:.2f}",
            f"{metrics.loss[i]:.3g}",
        )
    more = len(shown.labels) - ROWS
    return [table, *([Text(f"... and {more} more", style="dim")] if more > 0 else [])]


def sparkline(values: list[float]) -> str:
    """Values as small bars, with a gap where no episode ended."""
    shown = np.array(values)
    finite = shown[np.isfinite(shown)]
    if not len(finite):
        return ""
    low, high = finite.min(), finite.max()
    scale = (len(SPARKS) - 2) / (high - low) if high > low else 0
    return "".join(
        SPARKS[1 + int((x - low) * scale)] if np.isfinite(x) else SPARKS[0] for x in shown
    )
