"""The live display of a run on a terminal: a bar, and a table of its cells, redrawn in place."""

from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

PER_SECOND = 2  # redraws, so that it is up to date while a program is compiled, too


class Screen:
    """The terminal that `Display` draws on."""

    def __init__(self, console: Console, title: str, steps: int, waiting: str):
        self.title, self.note, self.warning, self.step = title, waiting, "", 0
        self.table: list[Any] = []
        self.bar = Progress(
            TextColumn("{task.percentage:>3.0f} %"), BarColumn(), TextColumn("{task.fields[note]}")
        )
        self.task = self.bar.add_task("", total=steps, note=waiting)
        self.live = Live(console=console, get_renderable=self._look, refresh_per_second=PER_SECOND)

    def show(self, step: int, note: str, table: list[Any] | None = None) -> None:
        """Set the contents; the table is kept if no new one is given."""
        self.step, self.note = step, note
        self.table = self.table if table is None else table
        self.live.refresh()

    def _look(self) -> Group:
        """Called by a separate thread, also while the run waits for the compiler."""
        from tsallax.training.compile_time import compiling_for

        seconds, note = compiling_for(), self.note
        if seconds is not None and seconds >= 1:
            note = f"{self.step:,} steps   compiling for {seconds:.0f} s"
        self.bar.update(self.task, completed=self.step, note=note)
        head = Text(self.title, style="bold")
        if self.warning:
            head.append(f"\n{self.warning}", style="yellow")
        return Group(head, self.bar, *self.table)
