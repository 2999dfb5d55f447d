"""A run on a terminal: a bar, and a table of its cells that is redrawn in place."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from tsallax.spelling import counted

if TYPE_CHECKING:
    from tsallax.cli.display import Shown

COMPILING = "compiling ..."  # beside the bar, until the first program runs
SPARKS = " ▁▂▃▄▅▆▇█"
NONE = "-"  # no episode ended
ROWS = 12  # of the table; the rest is in the metrics file
PER_SECOND = 2  # how often it is drawn, so that it is true while a program is compiled, too


class Row(NamedTuple):
    """One line of the table: a cell, or the seeds of one setting."""

    label: str
    cells: slice


class Screen:
    """What `Display` draws on, where there is a terminal."""

    def __init__(self, console: Console, title: str, steps: int, waiting: str):
        self.title, self.note, self.warning, self.step = title, waiting, "", 0
        self.table: list[Any] = []
        self.bar = Progress(
            TextColumn("{task.percentage:>3.0f} %"), BarColumn(), TextColumn("{task.fields[note]}")
        )
        self.task = self.bar.add_task("", total=steps, note=waiting)
        self.live = Live(console=console, get_renderable=self._look, refresh_per_second=PER_SECOND)

    def show(self, step: int, note: str, table: list[Any] | None = None) -> None:
        """What is drawn from now on; the table stays if there is no other."""
        self.step, self.note = step, note
        self.table = self.table if table is None else table
        self.live.refresh()

    def _look(self) -> Group:
        """Called by a thread of its own, also while the run waits for a compiler."""
        from tsallax.training.compile_time import compiling_for

        seconds, note = compiling_for(), self.note
        if seconds is not None and seconds >= 1:
            note = f"{self.step:,} steps   compiling for {seconds:.0f} s"
        self.bar.update(self.task, completed=self.step, note=note)
        head = Text(self.title, style="bold")
        if self.warning:
            head.append(f"\n{self.warning}", style="yellow")
        return Group(head, self.bar, *self.table)


def table_of(
    rows: Sequence[Row], metrics: "Shown", returns: Sequence[list[float]], troubles: Sequence[str]
) -> list[Any]:
    """The latest metrics of each row, as far as there is room for them; means over its seeds."""
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
    """From the lowest to the highest seed."""
    known = ended[np.isfinite(ended)]
    return f"{known.min():.1f} to {known.max():.1f}" if len(known) else NONE


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
