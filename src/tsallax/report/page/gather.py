"""Gathers the data of a report, from each folder as much as can be read.

No file is trusted: runs come from other machines and other versions, may name environments that
are not installed here, and may be truncated or damaged. What cannot be read is reported as a
problem with a reason, which does not contain paths of this machine.
"""

import base64
import csv
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax.experiments.results import ABOUT, COLUMNS, Curve, read_provenance, read_table
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import RUN, read_about
from tsallax.storage.tables import METRICS, read_metrics
from tsallax.training.config import FIELDS, YOUNGER

CUT = 300  # number of characters shown of a value
CLIPS = {".mp4": ("video/mp4", 4, b"ftyp"), ".gif": ("image/gif", 0, b"GIF8")}
CLIP_BYTES = 25_000_000  # of all clips together, so that the page fits into a mail
# The exceptions that invalid files may raise, besides one-line errors that describe them.
DAMAGE = (LookupError, TypeError, AttributeError, OverflowError, RecursionError, csv.Error)
NEEDED = {"seed", "step", *COLUMNS}


class Cell(NamedTuple):
    """The metrics of one seed with its numbers."""

    seed: int
    setting: dict[str, str]  # every field of the configuration
    steps: np.ndarray
    columns: dict[str, np.ndarray]  # finite or NaN
    whole: bool  # whether it is complete

    @property
    def diverged(self) -> int:
        """The step at which it diverged, or -1."""
        found = self.columns["diverged"][self.columns["diverged"] >= 0]
        return int(found[0]) if len(found) else -1


class Run(NamedTuple):
    name: str
    status: str
    asked: int  # configured steps
    fields: dict[str, str]  # the configuration, and versions
    cells: list[Cell]
    notes: list[str]


class Clip(NamedTuple):
    name: str
    kind: str
    data: str  # base64


class Results(NamedTuple):
    """A study's table and its provenance."""

    name: str
    about: dict[str, Any]
    curves: list[Curve]


class Found(NamedTuple):
    runs: list[Run]
    results: list[Results]
    clips: list[Clip]
    problems: list[tuple[str, str]]  # where, what


def gather(roots: Sequence[Path]) -> Found:
    """Gather every run and every table of results in these folders or below them."""
    found = Found([], [], [], [])
    seen: set[Path] = set()
    for root in roots:
        if not root.is_dir():
            raise FileNotFoundError(f"there is no folder {root}")
        paths = list(_folders(root, found.problems))
        for path in paths:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                _read(path, _name(root, path, len(roots) > 1), found)
        if not paths:
            found.problems.append((_name(root, root), "no run and no results in it"))
    return found


def _folders(root: Path, problems: list[tuple[str, str]]) -> Iterator[Path]:
    def closed(error: OSError) -> None:
        problems.append((_name(root, Path(error.filename)), error.strerror or "closed"))

    for path, below, files in os.walk(root, onerror=closed):
        below.sort()
        if RUN in files or RUN in below or METRICS in files:
            below.clear()  # checkpoints and logs are not runs
            yield Path(path)


def _name(root: Path, path: Path, several: bool = False) -> str:
    inside = path.relative_to(root)
    top = root.resolve().name or "/"
    return top if inside == Path() else str(top / inside if several else inside)


def _read(path: Path, name: str, found: Found) -> None:
    try:
        if (path / RUN).exists():
            found.runs.append(read_run(path, name))
            _read_clips(path, name, found)
        elif (path / ABOUT).exists():
            found.results.append(read_results(path, name))
        else:
            raise ValueError(f"{METRICS} without {RUN} or {ABOUT}")
    except (ValueError, OSError, *DAMAGE) as error:
        found.problems.append((name, _reason(error, path)))


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, DAMAGE):
        return "damaged"
    text = str(error).removeprefix(f"{path / METRICS} ").removeprefix(f"{path} ")
    return text[:CUT]


def read_run(path: Path, name: str) -> Run:
    """Read a folder of `tsallax train`, finished or not."""
    read = read_about(path)
    about, config = read.everything, read.config
    cells, stopped = about["cells"], about.get("stopped", {})
    if not all(isinstance(config.get(n), str) for n in ("env", "algo")):
        raise ValueError(f"{RUN} names no environment or algorithm")
    keys = [{n: float(x) for n, x in cell.items()} for cell in cells]
    fields = _in_effect(config, keys)
    labels = _labels(keys)
    tables, bad = _tables(path, keys)
    found, diverged, done = [], [], about["status"] == "done"
    end = int(config["steps"])
    if done and config.get("stop_at") is not None:  # all cells ended at the same step
        end = max((int(steps[-1]) for steps, _ in tables if len(steps)), default=end)
    notes = [f"rows of {METRICS} that cannot be read: {bad}"] if bad else []
    for i, (key, (steps, columns)) in enumerate(zip(keys, tables, strict=True)):
        last = int(steps[-1]) if len(steps) else 0
        whole = done and last >= end and str(i) not in stopped
        setting = fields | {n: text(x) for n, x in key.items() if n != "seed"}
        cell = Cell(int(key["seed"]), setting, steps, columns, whole)
        if last:
            found.append(cell)
        if not last or (done and last < end):
            notes.append(f"{labels[i]}: rows to step {last:,} only")
        if (step := cell.diverged) >= 0:
            diverged.append(f"{labels[i]} at step {step:,}")
    notes += [f"diverged: {text(diverged)}"] if diverged else []
    notes += [f"{labels[int(i)]}: {text(why)}" for i, why in stopped.items()]
    fields |= {f"version of {n}"[:CUT]: text(v) for n, v in about.get("versions", {}).items()}
    return Run(name, about["status"], int(config["steps"]), fields, found, notes)


def _in_effect(config: dict[str, Any], keys: Sequence[dict[str, float]]) -> dict[str, str]:
    """The options of a run: numbers from its cells, and defaults that are not stored."""
    stored = {str(n)[:CUT]: text(v) for n, v in config.items()}
    younger = {n: text(FIELDS[n].default) for n in YOUNGER if n not in stored}
    numbers = {n: text(list(dict.fromkeys(key[n] for key in keys))) for n in keys[0] if n != "seed"}
    return stored | younger | numbers


def _labels(keys: Sequence[dict[str, float]]) -> list[str]:
    several = [n for n in keys[0] if n != "seed" and len({key[n] for key in keys}) > 1]
    return [
        " ".join([f"seed {key['seed']:g}", *(f"{n} = {key[n]:g}" for n in several)]) for key in keys
    ]


def text(value: Any) -> str:
    """A value of a configuration as readable text, cut to `CUT` characters."""
    if isinstance(value, list):
        return ", ".join(map(text, value))[:CUT]
    if isinstance(value, bool | dict):
        return json.dumps(value)[:CUT]
    return (
        f"{value:.12g}" if isinstance(value, float) else "" if value is None else str(value)[:CUT]
    )


def _tables(
    path: Path, keys: Sequence[dict[str, float]]
) -> tuple[list[tuple[np.ndarray, dict[str, np.ndarray]]], int]:
    """Steps and columns of each cell, and the number of truncated, malformed or unknown rows."""
    with Directory(path) as folder:
        found, bad = read_metrics(folder, tuple(NEEDED))
    by_cell = {(float(cell.seed), *cell.numbers.values()): cell for cell in found}
    names = list(found[0].numbers) if found else []
    none = np.array([], int), clean({name: np.array([]) for name in NEEDED})
    tables = []
    for key in keys:
        cell = by_cell.pop((key["seed"], *(key[n] for n in names)), None)
        tables.append(none if cell is None else (cell.steps, clean(cell.columns)))
    return tables, bad + sum(len(cell.steps) for cell in by_cell.values())


def clean(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Set the number of episodes to 0 where there is no return."""
    found = dict(columns)
    some = np.isfinite(found["episode_return"]) & (found["episodes"] > 0)
    return found | {"episodes": np.where(some, found["episodes"], 0.0)}


def read_results(path: Path, name: str) -> Results:
    """Read a study's folder of `tsallax reproduce` or `tsallax sweep`."""
    with Directory(path) as folder:
        about = read_provenance(folder)
    curves = read_table(path / METRICS)
    if not curves:
        raise ValueError("no run is done yet")
    if any(c.steps[0] < 1 for c in curves):
        raise ValueError(f"{METRICS}: a step below 1")
    return Results(name, about, [c._replace(columns=clean(c.columns)) for c in curves])


def _read_clips(path: Path, name: str, found: Found) -> None:
    for file in sorted(p for p in path.iterdir() if p.suffix.lower() in CLIPS):
        kind, at, mark = CLIPS[file.suffix.lower()]
        left = CLIP_BYTES - sum(len(clip.data) for clip in found.clips) * 3 // 4
        with Directory(path) as folder, folder.open(file.name) as opened:
            data = opened.read(left + 1)
        if data[at : at + len(mark)] != mark:
            found.problems.append((f"{name}/{file.name}", f"no {file.suffix} video"))
        elif len(data) > left:
            found.problems.append((f"{name}/{file.name}", "left out: the clips are too large"))
        else:
            found.clips.append(Clip(f"{name}/{file.name}", kind, base64.b64encode(data).decode()))
