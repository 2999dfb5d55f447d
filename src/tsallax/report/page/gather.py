"""What there is to report, each folder as far as it is good.

No file is believed: runs come from other machines and other versions, may name environments that
are not installed here, and may be cut or damaged. What cannot be read becomes a problem with a
reason, which names no path of this machine.
"""

import base64
import csv
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax.experiments.results import ABOUT, COLUMNS, Curve, read_table
from tsallax.training.folder import LONGEST, METRICS, RUN, read_json
from tsallax.training.tensors import open_regular

HUGE = 1e100  # beyond any float32: damage, or as good as infinite
CUT = 300  # characters of a value that are shown
CLIPS = {".mp4": ("video/mp4", 4, b"ftyp"), ".gif": ("image/gif", 0, b"GIF8")}
CLIP_BYTES = 25_000_000  # of all clips together: what a mail may hold
# What reading nonsense may raise, beside a line that says what is wrong.
DAMAGE = (LookupError, TypeError, AttributeError, OverflowError, RecursionError, csv.Error)
NEEDED = {"seed", "step", *COLUMNS}


class Cell(NamedTuple):
    """One seed with its numbers, as measured."""

    seed: int
    setting: dict[str, str]  # every field of the configuration
    steps: np.ndarray
    columns: dict[str, np.ndarray]  # finite or NaN
    whole: bool  # it came to its end

    @property
    def diverged(self) -> int:
        """The step, or -1."""
        found = self.columns["diverged"][self.columns["diverged"] >= 0]
        return int(found[0]) if len(found) else -1


class Run(NamedTuple):
    name: str
    status: str
    asked: int  # steps
    fields: dict[str, str]  # of the configuration, and versions
    cells: list[Cell]
    notes: list[str]


class Clip(NamedTuple):
    name: str
    kind: str
    data: str  # base64


class Results(NamedTuple):
    """A study's table, and how it came to be."""

    name: str
    about: dict[str, Any]
    curves: list[Curve]


class Found(NamedTuple):
    runs: list[Run]
    results: list[Results]
    clips: list[Clip]
    problems: list[tuple[str, str]]  # where, what


def gather(roots: Sequence[Path]) -> Found:
    """Every run and every table of results in these folders or below them."""
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
            below.clear()  # checkpoints and logs are no runs
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
    """A folder of `tsallax train`, finished or not."""
    about = read_json(path)
    config, cells, stopped = about["config"], about["cells"], about.get("stopped", {})
    if not all(isinstance(config.get(n), str) for n in ("env", "algo")):
        raise ValueError(f"{RUN} names no environment or algorithm")
    fields = {str(n)[:CUT]: text(v) for n, v in config.items()}
    keys = [{n: float(x) for n, x in cell.items()} for cell in cells]
    labels = _labels(keys)
    tables, bad = read_metrics(path / METRICS, keys)
    found, diverged, done = [], [], about["status"] == "done"
    notes = [f"rows of {METRICS} that cannot be read: {bad}"] if bad else []
    for i, (key, (steps, columns)) in enumerate(zip(keys, tables, strict=True)):
        last = int(steps[-1]) if len(steps) else 0
        whole = done and last >= config["steps"] and str(i) not in stopped
        setting = fields | {n: text(x) for n, x in key.items() if n != "seed"}
        cell = Cell(int(key["seed"]), setting, steps, columns, whole)
        if last:
            found.append(cell)
        if not last or (done and last < config["steps"]):
            notes.append(f"{labels[i]}: rows to step {last:,} only")
        if (step := cell.diverged) >= 0:
            diverged.append(f"{labels[i]} at step {step:,}")
    notes += [f"diverged: {text(diverged)}"] if diverged else []
    notes += [f"{labels[int(i)]}: {text(why)}" for i, why in stopped.items()]
    fields |= {f"version of {n}"[:CUT]: text(v) for n, v in about.get("versions", {}).items()}
    return Run(name, about["status"], int(config["steps"]), fields, found, notes)


def _labels(keys: Sequence[dict[str, float]]) -> list[str]:
    several = [n for n in keys[0] if n != "seed" and len({key[n] for key in keys}) > 1]
    return [
        " ".join([f"seed {key['seed']:g}", *(f"{n} = {key[n]:g}" for n in several)]) for key in keys
    ]


def text(value: Any) -> str:
    """A value of a configuration as people write it, cut where nobody would read on."""
    if isinstance(value, list):
        return ", ".join(map(text, value))[:CUT]
    if isinstance(value, bool | dict):
        return json.dumps(value)[:CUT]
    return (
        f"{value:.12g}" if isinstance(value, float) else "" if value is None else str(value)[:CUT]
    )


def read_metrics(
    path: Path, cells: Sequence[dict[str, float]]
) -> tuple[list[tuple[np.ndarray, dict[str, np.ndarray]]], int]:
    """Steps and columns of each cell, and how many rows are cut, odd or of no cell.

    The last line counts only with its end: it may be half written.
    """
    with open_regular(path) as file:
        header, *lines = file.read().decode(errors="replace").split("\n")
    names = header.split(",")
    if missing := NEEDED - set(names):
        raise ValueError(f"{METRICS} lacks {', '.join(sorted(missing))}")
    at = names.index("step")
    keys = [tuple(cell[n] for n in names[:at]) for cell in cells]
    rows: dict[tuple[float, ...], dict[int, list[float]]] = {key: {} for key in keys}
    bad = bool(lines and lines[-1])
    for line in lines[:-1]:
        try:
            row = [float(x) if x else np.nan for x in line.split(",")]
            if len(row) != len(names) or not (0 < row[at] < 2**53 and row[at] == int(row[at])):
                raise ValueError
            rows[tuple(row[:at])][int(row[at])] = row
        except (ValueError, KeyError):
            bad += 1
    return [_columns(names, rows[key]) for key in keys], int(bad)


def _columns(
    names: list[str], rows: dict[int, list[float]]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    steps = sorted(rows)
    block = np.array([rows[step] for step in steps]).reshape(-1, len(names))
    return np.array(steps, int), clean(dict(zip(names, block.T, strict=True)))


def clean(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Infinite values as NaN; no episodes where there is no return."""
    found = {n: np.where(np.abs(x) < HUGE, x, np.nan) for n, x in columns.items()}
    some = np.isfinite(found["episode_return"]) & (found["episodes"] > 0)
    return found | {"episodes": np.where(some, found["episodes"], 0.0)}


def read_results(path: Path, name: str) -> Results:
    """A study's folder of `tsallax reproduce` or `tsallax sweep`."""
    with open_regular(path / ABOUT) as file:
        about = json.loads(file.read(LONGEST))
    if not isinstance(about, dict) or not {"study", "title", "scale"} <= set(about):
        raise ValueError(f"damaged {ABOUT}")
    with np.errstate(invalid="ignore"):  # a step that is no number
        curves = read_table(path / METRICS)
    if not curves:
        raise ValueError("no run is done yet")
    if missing := {"env", "algo"} - set(curves[0].labels):
        raise ValueError(f"{METRICS} lacks {', '.join(sorted(missing))}")
    if any(c.steps[0] < 1 for c in curves):
        raise ValueError(f"{METRICS}: a step below 1")
    return Results(name, about, [c._replace(columns=clean(c.columns)) for c in curves])


def _read_clips(path: Path, name: str, found: Found) -> None:
    for file in sorted(p for p in path.iterdir() if p.suffix.lower() in CLIPS):
        kind, at, mark = CLIPS[file.suffix.lower()]
        left = CLIP_BYTES - sum(len(clip.data) for clip in found.clips) * 3 // 4
        with open_regular(file) as opened:
            data = opened.read(left + 1)
        if data[at : at + len(mark)] != mark:
            found.problems.append((f"{name}/{file.name}", f"no {file.suffix} video"))
        elif len(data) > left:
            found.problems.append((f"{name}/{file.name}", "left out: the clips are too large"))
        else:
            found.clips.append(Clip(f"{name}/{file.name}", kind, base64.b64encode(data).decode()))
