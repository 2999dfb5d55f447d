"""What a study measured, as one tidy table: one row per setting, seed and target period."""

import dataclasses
import json
import math
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tsallax.experiments.jobs import Job
from tsallax.experiments.study import RECORDED, Setting, Study
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import read_about
from tsallax.storage.tables import CellMetrics, read_metrics, read_rows, read_timing, write_rows
from tsallax.training.config import NUMBERS

METRICS, ABOUT = "metrics.csv", "about.json"
COLUMNS = ("episodes", *RECORDED, "diverged")
ITERATIONS = 50  # points of a curve, as in the paper


class Curve(NamedTuple):
    """All seeds of one setting."""

    labels: dict[str, str]
    seeds: list[int]
    steps: Int[np.ndarray, "periods"]
    columns: dict[str, Float[np.ndarray, "seeds periods"]]

    def iterations(self, column: str, count: int = ITERATIONS) -> tuple[np.ndarray, np.ndarray]:
        """Steps (iterations,) and means (seeds, iterations) over about equal parts of the run.

        A mean return is that of the episodes that ended, NaN where none did.
        """
        values = self.columns[column]
        returns = column == "episode_return"
        weights = self.columns["episodes"] if returns else np.isfinite(values).astype(float)
        parts = np.array_split(np.arange(len(self.steps)), min(count, len(self.steps)))
        known = np.where(weights > 0, values, 0.0) * weights
        total = np.stack([known[:, p].sum(1) for p in parts], 1)
        weight = np.stack([weights[:, p].sum(1) for p in parts], 1)
        means = np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)
        return self.steps[[p[-1] for p in parts]], means

    def final(self, column: str = "episode_return", share: float = 0.2) -> np.ndarray:
        """The mean of each seed over the last `share` of its iterations, NaN if it has none."""
        means = self.iterations(column)[1]
        last = means[:, -max(1, round(share * means.shape[1])) :]
        known = np.isfinite(last)
        return np.divide(
            np.where(known, last, 0).sum(1),
            known.sum(1),
            out=np.full(len(last), np.nan),
            where=known.any(1),
        )


def collect(
    study: Study, settings: Iterable[Setting], done: Iterable[Job], folder: Directory
) -> int:
    """Write the table of the jobs that are done; return how many rows it has."""
    runs = [(job, _cells(job)) for job in done]

    def rows() -> Iterator[list[Any]]:
        yield [*study.keys, "seed", "step", *COLUMNS]
        for labels, config in settings:
            named = [_text(labels[key]) for key in study.keys]
            for job, cells in runs:
                for cell in cells if _covers(job.config, config) else ():
                    if all(getattr(config, n) == (x,) for n, x in cell.numbers.items()):
                        yield from _rows(named, cell)

    return write_rows(folder, METRICS, rows())


def _rows(named: list[str], cell: CellMetrics) -> Iterator[list[Any]]:
    for i, step in enumerate(cell.steps):
        yield [*named, cell.seed, step, *(_number(cell.columns[c][i]) for c in COLUMNS)]


def _cells(job: Job) -> list[CellMetrics]:
    with Directory(job.path) as folder:
        return read_metrics(folder, COLUMNS)[0]


def _covers(job: Any, config: Any) -> bool:
    """Whether the grid and seeds of a job contain this setting, or a part of its seeds."""
    open_fields = dict.fromkeys(NUMBERS, ()) | {"seeds": 1, "first_seed": 0}
    alike = dataclasses.replace(job, **open_fields) == dataclasses.replace(config, **open_fields)
    pairs = [(getattr(config, n) or (), getattr(job, n) or ()) for n in NUMBERS]
    numbers = all(set(own) <= set(there) and bool(own) == bool(there) for own, there in pairs)
    last = config.first_seed + config.seeds
    return alike and numbers and config.first_seed <= job.first_seed < last


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    """Six significant figures, which are enough for pictures; run folders have all digits."""
    return "" if math.isnan(value) else f"{value:.6g}"


def read_table(path: Path) -> list[Curve]:
    """The curves of a study's table, in its order."""
    with Directory(path.parent) as folder:
        table = read_rows(folder, path.name, ("seed", "step", *COLUMNS))
    keys = table.names[: table.names.index("seed")]
    block = np.stack([table.numbers(name) for name in ("seed", "step", *COLUMNS)], -1)
    if table.bad or not np.isfinite(block[:, :2]).all():
        raise ValueError(f"{path} has rows that are no numbers")
    curves: dict[tuple[str, ...], dict[int, list[np.ndarray]]] = {}
    for row, numbers in zip(table.rows, block, strict=True):
        seeds = curves.setdefault(tuple(row[: len(keys)]), {})
        seeds.setdefault(int(numbers[0]), []).append(numbers[1:])
    return [
        _curve(dict(zip(keys, labels, strict=True)), seeds, path)
        for labels, seeds in curves.items()
    ]


def _curve(labels: dict[str, str], seeds: dict[int, list[np.ndarray]], path: Path) -> Curve:
    lengths = {len(rows) for rows in seeds.values()}
    if len(lengths) > 1:
        raise ValueError(f"{path} mixes runs of different lengths: {labels}")
    block = np.array(list(seeds.values()))
    steps = block[:, :, 0]
    if not (np.all(np.diff(steps) > 0) and np.all(steps == steps[0])):
        raise ValueError(f"{path} has rows twice, or out of order: {labels}")
    columns = {name: block[:, :, 1 + i] for i, name in enumerate(COLUMNS)}
    return Curve(labels, list(seeds), block[0, :, 0].astype(int), columns)


def select(curves: Iterable[Curve], **labels: Any) -> list[Curve]:
    """The curves with these labels."""
    wanted = {name: _text(float(v) if isinstance(v, int) else v) for name, v in labels.items()}
    return [c for c in curves if all(c.labels.get(n) == v for n, v in wanted.items())]


class Made(NamedTuple):
    """The study and scale of a table, and the command that makes it."""

    study: Study
    scale: str
    command: str


def write_about(
    folder: Directory,
    made: Made,
    jobs: Sequence[Job],
    done: Sequence[Job],
    failed: dict[Job, str],
) -> None:
    """Write the provenance of a table: command, versions, time, and what is missing."""
    found = [read_about(job.path).everything["versions"] for job in done]
    names = dict.fromkeys(name for versions in found for name in versions)
    ended = {*done, *failed}
    about = {
        "study": made.study.name,
        "title": made.study.title,
        "scale": made.scale,
        "command": made.command,
        "written": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": {n: ", ".join(sorted({v.get(n, "?") for v in found})) for n in names},
        "machine": f"{platform.machine()}, {platform.system()}",
        "jobs": len(jobs),
        "done": len(done),
        "environment steps": sum(job.steps for job in done),
        "core hours": round(sum(_seconds(job) for job in done) / 3600, 2),
        "failed": {job.path.name: why for job, why in failed.items()},
        "unfinished": [job.path.name for job in jobs if job not in ended],
    }
    folder.write(ABOUT, (json.dumps(about, indent=1) + "\n").encode())


def _seconds(job: Job) -> float:
    """Seconds of training; a resumed run counts from 0 again."""
    with Directory(job.path) as folder:
        times = [seconds for _, seconds, _ in read_timing(folder)]
    gaps = (t - before if t >= before else t for before, t in pairwise([0.0, *times]))
    return sum(gaps, 0.0)
