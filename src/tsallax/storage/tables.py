"""Tables of numbers as CSV: one writer, one strict reader.

A table is read only from a regular file of bounded size. Its last line counts only if it ends: the
run may be writing it at this moment.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tsallax.storage.files import Directory

METRICS, TIMING = "metrics.csv", "timing.csv"
LARGEST = 1 << 28  # bytes of a table
LONGEST = 1 << 16  # characters of a line
HUGE = 1e100  # beyond any float32: damage, or as good as infinite


class Table(NamedTuple):
    """The rows of a file as text, without those that do not fit its header."""

    names: list[str]
    rows: list[list[str]]
    bad: int  # rows that were left out

    def text(self, name: str) -> list[str]:
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def numbers(self, name: str) -> Float[np.ndarray, "rows"]:
        """A column as floats: NaN where it is empty, infinite, or no number."""
        return np.array([_number(x) for x in self.text(name)], float)


class CellMetrics(NamedTuple):
    """One seed with its numbers, as measured: the rows of one cell of a run."""

    seed: int
    numbers: dict[str, float]  # the hyper-parameters that differ between the cells
    steps: Int[np.ndarray, "periods"]
    columns: dict[str, Float[np.ndarray, "periods"]]


def append_rows(folder: Directory, name: str, rows: Iterable[Iterable[Any]]) -> None:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(rows)
    folder.append(name, lines.getvalue().encode())


def write_rows(folder: Directory, name: str, rows: Iterable[Iterable[Any]]) -> int:
    """Write a whole table at once; return how many rows it has without the header."""
    lines, count = io.StringIO(), -1
    writer = csv.writer(lines, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        count += 1
    folder.write(name, lines.getvalue().encode())
    return count


def read_rows(folder: Directory, name: str, needed: Iterable[str] = ()) -> Table:
    """The rows of a table, which must have the `needed` columns."""
    text = folder.read(name, LARGEST).decode(errors="replace")
    lines = text.split("\n")
    unfinished = bool(lines.pop())
    if any(len(line) > LONGEST for line in lines):
        raise ValueError(f"{name} has a line of more than {LONGEST:,} characters")
    try:
        header, *rows = csv.reader(lines) if lines else [[]]
    except csv.Error as error:
        raise ValueError(f"{name} is not a table: {error}") from None
    if missing := set(needed) - set(header):
        raise ValueError(f"{name} is not a whole table: it lacks {', '.join(sorted(missing))}")
    if len(set(header)) < len(header):
        raise ValueError(f"{name} has two columns of the same name")
    good = [row for row in rows if len(row) == len(header)]
    return Table(header, good, len(rows) - len(good) + unfinished)


def read_metrics(
    folder: Directory, needed: Sequence[str] = ("seed", "step")
) -> tuple[list[CellMetrics], int]:
    """The metrics of a run by its cells, and how many rows could not be used.

    The columns before `step` say which cell a row belongs to. A row whose step is no whole number
    is left out; of two rows for one step the later counts.
    """
    table = read_rows(folder, METRICS, {"seed", "step", *needed})
    at, seed = table.names.index("step"), table.names.index("seed")
    if seed > at:
        raise ValueError(f"{METRICS} does not say before the step which seed it is")
    cells: dict[tuple[float, ...], dict[int, list[float]]] = {}
    bad = table.bad
    for row in table.rows:
        values = [_number(x) for x in row]
        key, step = tuple(map(_label, row[:at])), values[at]
        known = np.isfinite(values[seed]) and not np.isnan(key).any()
        if not (known and 0 < step < 2**53 and step == int(step)):
            bad += 1
            continue
        cells.setdefault(key, {})[int(step)] = values
    return [_cell(table.names, key, rows) for key, rows in cells.items()], bad


def _cell(names: list[str], key: tuple[float, ...], rows: dict[int, list[float]]) -> CellMetrics:
    steps = sorted(rows)
    block = np.array([rows[step] for step in steps])
    columns = {name: block[:, i] for i, name in enumerate(names)}
    labels = dict(zip(names, key, strict=False))
    return CellMetrics(int(labels.pop("seed")), labels, np.array(steps, int), columns)


def read_timing(folder: Directory) -> list[tuple[int, float, float]]:
    """Step, seconds and environment steps per second after each period; empty if there is none."""
    try:
        table = read_rows(folder, TIMING, ("step", "seconds", "steps_per_second"))
    except FileNotFoundError:
        return []
    rows = zip(*map(table.numbers, ("step", "seconds", "steps_per_second")), strict=True)
    return [(int(step), seconds, speed) for step, seconds, speed in rows if np.isfinite(step)]


def _label(text: str) -> float:
    """A number that names a cell, which may be infinite: q = inf is the greedy policy."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def _number(text: str) -> float:
    try:
        value = float(text) if text else np.nan
    except ValueError:
        return np.nan
    return value if abs(value) < HUGE else np.nan
