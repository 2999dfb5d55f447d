"""Tables of numbers as CSV: one writer, one strict reader, both row by row.

A table is read only from a regular file of bounded size. An incomplete last line is ignored, as the
run may be writing it.
"""

import contextlib
import csv
import io
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tsallax.storage.files import Directory

METRICS, TIMING = "metrics.csv", "timing.csv"
LARGEST = 1 << 28  # most bytes of a table
LONGEST = 1 << 16  # most characters of a line
HUGE = 1e100  # beyond float32: such a number is damaged, or counts as infinite


class Rows:
    """The rows of an open table as text, without those that do not match its header."""

    def __init__(self, file: BinaryIO, name: str):
        self.file, self.name = file, name
        self.bad = 0  # number of rows left out, final once all are read
        self.rows = csv.reader(self._lines())
        self.names = self._next() or []

    def __iter__(self) -> Iterator[list[str]]:
        while (row := self._next()) is not None:
            if len(row) == len(self.names):
                yield row
            else:
                self.bad += 1

    def _next(self) -> list[str] | None:
        try:
            return next(self.rows, None)
        except csv.Error as error:
            raise ValueError(f"{self.name} is not a table: {error}") from None

    def _lines(self) -> Iterator[str]:
        while line := self.file.readline(LONGEST + 2):
            if len(line) > LONGEST + 1:
                raise ValueError(f"{self.name} has a line of more than {LONGEST:,} characters")
            if not line.endswith(b"\n"):
                self.bad += 1
                return
            yield line[:-1].decode(errors="replace")


class CellMetrics(NamedTuple):
    """The metrics of one cell of a run: one seed with its numbers."""

    seed: int
    numbers: dict[str, float]  # the hyper-parameters that differ between the cells
    steps: Int[np.ndarray, "periods"]
    columns: dict[str, Float[np.ndarray, "periods"]]


def append_rows(folder: Directory, name: str, rows: Iterable[Iterable[Any]]) -> None:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(rows)
    folder.append(name, lines.getvalue().encode())


def write_rows(folder: Directory, name: str, rows: Iterable[Iterable[Any]]) -> int:
    """Write a whole table at once; returns the number of rows without the header."""
    count = -1
    with folder.replacing(name) as file:
        text = io.TextIOWrapper(io.BufferedWriter(file), "utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            writer.writerow(row)
            count += 1
        text.flush()
        text.detach().detach()  # leaves the file open, as it must still be synced
    return count


@contextlib.contextmanager
def open_rows(folder: Directory, name: str, needed: Iterable[str] = ()) -> Iterator[Rows]:
    """Open the rows of a table, which must have the `needed` columns."""
    with folder.open(name) as raw, io.BufferedReader(raw) as file:
        size = os.fstat(raw.fileno()).st_size
        if size > LARGEST:
            raise ValueError(f"{name} has {size:,} bytes; at most {LARGEST:,} are read")
        table = Rows(file, name)
        if missing := set(needed) - set(table.names):
            raise ValueError(f"{name} is not a whole table: it lacks {', '.join(sorted(missing))}")
        if len(set(table.names)) < len(table.names):
            raise ValueError(f"{name} has two columns of the same name")
        yield table


def read_metrics(
    folder: Directory, needed: Sequence[str] = ("seed", "step")
) -> tuple[list[CellMetrics], int]:
    """Read the metrics of a run by its cells, and the number of rows that could not be used.

    The columns before `step` identify the cell of a row. Rows whose step is not an integer are left
    out; of two rows for the same step the later one counts.
    """
    with open_rows(folder, METRICS, {"seed", "step", *needed}) as table:
        at, seed = table.names.index("step"), table.names.index("seed")
        if seed > at:
            raise ValueError(f"{METRICS} does not say before the step which seed it is")
        cells: dict[tuple[float, ...], array[float]] = {}
        for row in table:
            values = [number(x) for x in row]
            key, step = tuple(map(_label, row[:at])), values[at]
            known = np.isfinite(values[seed]) and not np.isnan(key).any()
            if known and 0 < step < 2**53 and step == int(step):
                cells.setdefault(key, array("d")).extend(values)
            else:
                table.bad += 1
    return [_cell(table.names, key, rows) for key, rows in cells.items()], table.bad


def _cell(names: list[str], key: tuple[float, ...], values: "array[float]") -> CellMetrics:
    rows = np.frombuffer(values).reshape(-1, len(names))[::-1]  # without a copy: may be large
    steps, last = np.unique(rows[:, names.index("step")], return_index=True)
    columns = {name: rows[last, i] for i, name in enumerate(names)}
    labels = dict(zip(names, key, strict=False))
    return CellMetrics(int(labels.pop("seed")), labels, steps.astype(int), columns)


def read_timing(folder: Directory) -> list[tuple[int, float, float]]:
    """Step, seconds and environment steps per second of each period; empty without a table."""
    columns = ("step", "seconds", "steps_per_second")
    try:
        with open_rows(folder, TIMING, columns) as table:
            at = [table.names.index(name) for name in columns]
            rows = [[number(row[i]) for i in at] for row in table]
    except FileNotFoundError:
        return []
    return [(int(step), seconds, speed) for step, seconds, speed in rows if np.isfinite(step)]


def _label(text: str) -> float:
    """A number that identifies a cell; it may be infinite, as q = inf is the greedy policy."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def number(text: str) -> float:
    """The number in `text`; NaN if it is empty, infinite, or not a number."""
    try:
        value = float(text) if text else np.nan
    except ValueError:
        return np.nan
    return value if abs(value) < HUGE else np.nan
