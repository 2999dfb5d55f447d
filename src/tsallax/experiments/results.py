"""The results of a study as one tidy table: one row per setting, seed and target period."""

import dataclasses
import json
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from tsallax.experiments.jobs import Job
from tsallax.experiments.study import RECORDED, Setting, Study, label_text, label_texts
from tsallax.spelling import suggest
from tsallax.storage.files import Directory
from tsallax.storage.tables import CellMetrics, number, open_rows, read_metrics, write_rows
from tsallax.training.config import Config, grid
from tsallax.training.final import PARTS, final_scores, part_means

METRICS, ABOUT = "metrics.csv", "about.json"
LONGEST = 1 << 24  # most bytes of `about.json`
COLUMNS = ("episodes", *RECORDED, "diverged")
ITERATIONS = PARTS  # points of a curve
PROVENANCE: dict[str, Any] = {
    **dict.fromkeys(("study", "title", "scale"), str),
    **dict.fromkeys(("jobs", "done", "environment steps"), int),
    "core hours": int | float,
    "failed": dict,
    "unfinished": list,
    "versions": dict,
}  # the fields of `about.json`


# The rows of a table as text, by setting and seed.
Known: TypeAlias = dict[tuple[str, ...], dict[int, list[list[str]]]]


class Curve(NamedTuple):
    """All seeds of one setting."""

    labels: dict[str, str]
    seeds: list[int]
    steps: Int[np.ndarray, "periods"]
    columns: dict[str, Float[np.ndarray, "seeds periods"]]

    def iterations(self, column: str, count: int = ITERATIONS) -> tuple[np.ndarray, np.ndarray]:
        """Steps (iterations,) and means (seeds, iterations) over about equal parts of the run."""
        parts = np.array_split(self.steps, min(count, len(self.steps)))
        return np.array([part[-1] for part in parts]), part_means(self.columns, column, count)

    def final(self, column: str = "episode_return") -> np.ndarray:
        """The final score of each seed, NaN if it has none."""
        return final_scores(self.columns, column)


def collect(
    study: Study,
    settings: Iterable[Setting],
    done: Iterable[Job],
    folder: Directory,
    known: Known | None = None,
) -> int:
    """Write the table of the jobs that are done and of `known` rows; return how many it has."""
    settings = list(settings)
    wanted, cells = by_part(settings), defaultdict(list)
    for job in done:
        own = _cells(job)
        for setting in settings_of(job.config, wanted):
            cells[label_texts(study, setting)] += [
                cell
                for cell in own
                if all(getattr(setting.config, n) == (x,) for n, x in cell.numbers.items())
            ]

    def rows() -> Iterator[list[Any]]:
        yield [*study.keys, "seed", "step", *COLUMNS]
        for setting in settings:
            named = label_texts(study, setting)
            seeds = dict((known or {}).get(named, {}))
            seeds |= {cell.seed: list(_rows(named, cell)) for cell in cells[named]}
            for seed in sorted(seeds):
                yield from seeds[seed]

    return write_rows(folder, METRICS, rows())


def _rows(named: Sequence[str], cell: CellMetrics) -> Iterator[list[Any]]:
    for i, step in enumerate(cell.steps):
        yield [*named, cell.seed, step, *(_number(cell.columns[c][i]) for c in COLUMNS)]


def _cells(job: Job) -> list[CellMetrics]:
    with Directory(job.path) as folder:
        return read_metrics(folder, COLUMNS)[0]


def by_part(settings: Iterable[Setting]) -> dict[Config, list[Setting]]:
    """The settings by their configurations, whatever their seeds."""
    found: dict[Config, list[Setting]] = {}
    for setting in settings:
        for part in _parts(setting.config):
            found.setdefault(part, []).append(setting)
    return found


def settings_of(job: Config, wanted: Mapping[Config, list[Setting]]) -> list[Setting]:
    """The settings, out of those `by_part`, of which a job has all seeds or a part of them."""
    return [
        setting
        for part in _parts(job)
        for setting in wanted.get(part, ())
        if 0 <= job.first_seed - setting.config.first_seed < setting.config.seeds
    ]


def only(
    studies: Iterable[Study], plans: Mapping[str, Sequence[Setting]], words: Sequence[str]
) -> dict[Config, list[Setting]]:
    """The settings with certain labels, `by_part`; all of them if `words` is empty.

    Args:
        studies: the studies.
        plans: the settings of each study, by its name.
        words: FIELD=VALUE, or FIELD=VALUE,VALUE for one of several values.
    """
    if odd := [word for word in words if "=" not in word]:
        raise ValueError(f"--only takes FIELD=VALUE, such as q=2, not {odd[0]}")
    wanted = {name: set(text.split(",")) for name, _, text in (w.partition("=") for w in words)}
    named = [
        (dict(zip(study.keys, label_texts(study, setting), strict=True)), setting)
        for study in studies
        for setting in plans[study.name]
    ]
    for name, values in wanted.items():
        there = list(dict.fromkeys(labels[name] for labels, _ in named if name in labels))
        if not there:
            fields = dict.fromkeys(key for study in studies for key in study.keys)
            raise ValueError(f"--only {name}: {suggest(name, fields)}")
        if unknown := sorted(values.difference(there)):
            raise ValueError(f"--only {name}={unknown[0]}: {suggest(unknown[0], there)}")
    found = [s for labels, s in named if all(labels.get(n) in v for n, v in wanted.items())]
    if not found:
        raise ValueError(f"no setting has {' and '.join(words)}")
    return by_part(found)


def _parts(config: Config) -> Iterator[Config]:
    """Each combination of its numbers as a configuration of its own, whatever the seeds."""
    for numbers in grid(config):
        own: dict[str, Any] = {name: (x,) for name, x in numbers.items()}
        yield dataclasses.replace(config, seeds=1, first_seed=0, **own)


def _number(value: float) -> str:
    """A number with six significant digits, enough for figures; run folders have all digits."""
    return "" if math.isnan(value) else f"{value:.6g}"


def read_provenance(folder: Directory) -> dict[str, Any]:
    """Read the provenance of a table in `about.json`, and check the fields used here."""
    text = folder.read(ABOUT, LONGEST)
    try:
        about = json.loads(text)
        good = all(isinstance(about[name], kind) for name, kind in PROVENANCE.items())
        if good and all(isinstance(version, str) for version in about["versions"].values()):
            return about
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise ValueError(f"{folder.path} has a damaged {ABOUT}")


def read_table(path: Path) -> list[Curve]:
    """Read the curves of a study's table, in its order."""
    columns = ("seed", "step", *COLUMNS)
    curves: dict[tuple[str, ...], dict[int, array[float]]] = {}
    with Directory(path.parent) as folder, open_rows(folder, path.name, columns) as table:
        keys = table.names[: table.names.index("seed")]
        if missing := {"env", "algo"} - set(keys):
            raise ValueError(f"{path} lacks {', '.join(sorted(missing))} before the seed")
        at = [table.names.index(name) for name in columns]
        for row in table:
            seed, *numbers = (number(row[i]) for i in at)
            if not (math.isfinite(seed) and math.isfinite(numbers[0])):
                table.bad += 1
                continue
            seeds = curves.setdefault(tuple(row[: len(keys)]), {})
            seeds.setdefault(int(seed), array("d")).extend(numbers)
    if table.bad:
        raise ValueError(f"{path} has rows that are no numbers")
    return [
        _curve(dict(zip(keys, labels, strict=True)), seeds, path)
        for labels, seeds in curves.items()
    ]


def _curve(labels: dict[str, str], seeds: dict[int, "array[float]"], path: Path) -> Curve:
    lengths = {len(rows) for rows in seeds.values()}
    if len(lengths) > 1:
        raise ValueError(f"{path} mixes runs of different lengths: {labels}")
    block = np.stack([np.array(rows) for rows in seeds.values()])
    block = block.reshape(len(seeds), -1, 1 + len(COLUMNS))
    steps = block[:, :, 0]
    if not (np.all(np.diff(steps) > 0) and np.all(steps == steps[0])):
        raise ValueError(f"{path} has rows twice, or out of order: {labels}")
    columns = {name: block[:, :, 1 + i] for i, name in enumerate(COLUMNS)}
    return Curve(labels, list(seeds), block[0, :, 0].astype(int), columns)


def select(curves: Iterable[Curve], **labels: Any) -> list[Curve]:
    """The curves with these labels."""
    wanted = {name: label_text(float(v) if isinstance(v, int) else v) for name, v in labels.items()}
    return [c for c in curves if all(c.labels.get(n) == v for n, v in wanted.items())]
