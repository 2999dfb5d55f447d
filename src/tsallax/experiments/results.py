"""What a study measured, as one tidy table: a row for each setting, seed and target period."""

import csv
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
from tsallax.training.config import RANGES, varied
from tsallax.training.folder import METRICS, TIMING, read_about, write_atomically

ABOUT = "about.json"
COLUMNS = ("episodes", *RECORDED, "diverged")
ITERATIONS = 50  # a curve's points, as the paper has them


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


def collect(study: Study, settings: Iterable[Setting], done: Iterable[Job], path: Path) -> int:
    """Write the table of the jobs that are done; how many rows it has."""
    runs = [(job, list(_rows(job))) for job in done]
    part, count = path.with_suffix(".part"), 0
    with part.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*study.keys, "seed", "step", *COLUMNS])
        for labels, config in settings:
            named = [_text(labels[key]) for key in study.keys]
            for job, rows in runs:
                if not _covers(job.config, config):
                    continue
                own = [row for row in rows if _is(row, config)]
                count += len(own)
                writer.writerows(
                    [*named, row["seed"], row["step"], *(_number(row[c]) for c in COLUMNS)]
                    for row in own
                )
    part.replace(path)
    return count


def _covers(job: Any, config: Any) -> bool:
    """Whether a job's grid and seeds hold this setting, or a part of its seeds."""
    open_fields = dict.fromkeys(RANGES, ()) | {"seeds": 1, "first_seed": 0}
    alike = dataclasses.replace(job, **open_fields) == dataclasses.replace(config, **open_fields)
    pairs = [(getattr(config, n), getattr(job, n)) for n in RANGES]
    numbers = all(set(own) <= set(there) and bool(own) == bool(there) for own, there in pairs)
    last = config.first_seed + config.seeds
    return alike and numbers and config.first_seed <= job.first_seed < last


def _is(row: dict[str, Any], config: Any) -> bool:
    return all(float(row[n]) == getattr(config, n)[0] for n in row["varied"])


def _rows(job: Job) -> Iterator[dict[str, Any]]:
    several = varied(job.config)
    with (job.path / METRICS).open(newline="") as file:
        for row in csv.DictReader(file):
            yield {**row, "varied": several}


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(text: str) -> str:
    """Six figures: a table for people and pictures, the run folders have them all."""
    value = float(text) if text else math.nan
    return "" if math.isnan(value) else f"{value:.6g}"


def read_table(path: Path) -> list[Curve]:
    """The curves of a table, in its order."""
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        names = list(reader.fieldnames or [])
        if missing := {"seed", "step", *COLUMNS} - set(names):
            raise ValueError(
                f"{path} is no table of results: it lacks {', '.join(sorted(missing))}"
            )
        keys = names[: names.index("seed")]
        table: dict[tuple[str, ...], dict[int, list[list[float]]]] = {}
        for row in reader:
            seeds = table.setdefault(tuple(row[key] for key in keys), {})
            numbers = [float(row[c] or "nan") for c in ("step", *COLUMNS)]
            seeds.setdefault(int(row["seed"]), []).append(numbers)
    return [
        _curve(dict(zip(keys, labels, strict=True)), seeds, path) for labels, seeds in table.items()
    ]


def _curve(labels: dict[str, str], seeds: dict[int, list[list[float]]], path: Path) -> Curve:
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
    """Those with these labels."""
    wanted = {name: _text(float(v) if isinstance(v, int) else v) for name, v in labels.items()}
    return [c for c in curves if all(c.labels.get(n) == v for n, v in wanted.items())]


class Made(NamedTuple):
    """What a table is of, and the command that makes it."""

    study: Study
    scale: str
    command: str


def write_about(
    path: Path, made: Made, jobs: Sequence[Job], done: Sequence[Job], failed: dict[Job, str]
) -> None:
    """How the table came to be: command, versions, time, and what is missing."""
    found = [read_about(job.path, job.config.env)["versions"] for job in done]
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
    write_atomically(path, json.dumps(about, indent=1) + "\n")


def _seconds(job: Job) -> float:
    """Of its training; a resumed run counts from 0 again."""
    with (job.path / TIMING).open(newline="") as file:
        times = [float(row["seconds"]) for row in csv.DictReader(file)]
    gaps = (t - before if t >= before else t for before, t in pairwise([0.0, *times]))
    return sum(gaps, 0.0)
