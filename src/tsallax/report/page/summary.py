"""The statistics of a page: learning curves with intervals, final scores, comparisons.

Everything is computed here; the page only draws. Numbers have four significant digits.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tsallax import stats
from tsallax.experiments.results import ITERATIONS, Curve
from tsallax.report.page.gather import Cell, Run

SHOWN = {
    "episode_return": "episodic return",
    "eval_return": "return of evaluations",
    "action_gap": "action gap Q(1) - Q(2)",
    "support": "actions in the support of pi",
    "entropy": "entropy of pi (nats)",
    "kl": "KL divergence from the last pi",
    "loss": "loss",
}
RETURNS = ("episode_return", "eval_return")  # known only where episodes ended
APART = {"seeds", "first_seed", "save_seconds", "save_steps"}  # do not distinguish settings
RESAMPLES = 1000  # per curve: the bootstrap noise of a band's ends is about 2 % of its width
NUMBERS = 300_000  # in all curves of a page, about 2 MB: with more settings they have fewer points
PAIRS = 300  # most comparisons per environment


class Setting(NamedTuple):
    """All seeds of one setting."""

    curve: Curve  # NaN where a seed has no row
    ends: list[int]  # the last step of each seed
    whole: list[bool]  # whether each seed is complete

    @property
    def diverged(self) -> int:
        return int(np.sum(np.any(self.curve.columns["diverged"] >= 0, 1)))


def settings_of(runs: Sequence[Run]) -> tuple[list[Setting], list[tuple[str, str]]]:
    """Groups the cells of runs by setting; a seed that occurs twice counts once."""
    groups: dict[tuple, dict[int, Cell]] = defaultdict(dict)
    twice = []
    longest = [(run, cell) for run in runs for cell in run.cells]
    for run, cell in sorted(longest, key=lambda x: -len(x[1].steps)):
        seeds = groups[tuple((n, v) for n, v in cell.setting.items() if n not in APART)]
        if cell.seed in seeds:
            twice.append((run.name, f"seed {cell.seed} is in another run, and counts once"))
        seeds.setdefault(cell.seed, cell)
    named = [dict(key) for key in groups]
    names = _telling(named)
    found = [
        _setting({n: own.get(n, "") for n in names}, sorted(seeds.values()))
        for own, seeds in zip(named, groups.values(), strict=True)
    ]
    return found, list(dict.fromkeys(twice))


def _telling(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The fields that distinguish settings, without those determined by env and algorithm."""
    values = defaultdict(lambda: defaultdict(set))
    for own in settings:
        for name, value in own.items():
            values[name][own["env"], own["algo"]].add(value)
    several = [n for n, found in values.items() if any(len(v) > 1 for v in found.values())]
    q = {own.get("q", "") for own in settings}
    return list(dict.fromkeys(["env", "algo", *(["q"] if len(q) > 1 else []), *several]))


def _setting(labels: dict[str, str], cells: Sequence[Cell]) -> Setting:
    steps = np.unique(np.concatenate([cell.steps for cell in cells]))
    names = set.intersection(*(set(cell.columns) for cell in cells))
    columns = {}
    for name in names:
        columns[name] = np.full((len(cells), len(steps)), 0.0 if name == "episodes" else np.nan)
        for i, cell in enumerate(cells):
            columns[name][i, np.searchsorted(steps, cell.steps)] = cell.columns[name]
    curve = Curve(labels, [cell.seed for cell in cells], steps, columns)
    return Setting(curve, [int(c.steps[-1]) for c in cells], [c.whole for c in cells])


def of_table(curves: Sequence[Curve]) -> list[Setting]:
    """The settings of a table of results, whose runs are all complete."""
    names = [n for n in curves[0].labels if len({c.labels[n] for c in curves}) > 1]
    names = list(dict.fromkeys(["env", "algo", *names]))
    return [
        Setting(
            curve._replace(labels={n: curve.labels[n] for n in names}),
            [int(curve.steps[-1])] * len(curve.seeds),
            [True] * len(curve.seeds),
        )
        for curve in curves
    ]


def summarise(settings: Sequence[Setting], total: int) -> dict[str, Any]:
    """The data that the page draws for a group of settings, of `total` on the page."""
    facets = [(name, _values(settings, name)) for name in facets_of(settings)]
    points = max(5, min(ITERATIONS, NUMBERS // (total * len(SHOWN) * 6)))
    curves = [
        {
            "at": [values.index(s.curve.labels[name]) for name, values in facets],
            "seeds": len(s.ends),
            "whole": sum(s.whole),
            "diverged": s.diverged,
            "steps": [int(x) for x in s.curve.iterations("episode_return", points)[0]],
            "bands": {m: found for m in SHOWN if (found := bands(s, m, points))},
            "finals": {m: found for m in SHOWN if (found := statistics(final(s, m)))},
            "best": best_evaluation(s),
        }
        for s in settings
    ]
    return {
        "facets": [{"name": name, "values": values} for name, values in facets],
        "curves": curves,
        "pairs": list(pairs(settings)),
    }


def facets_of(settings: Sequence[Setting]) -> list[str]:
    """The environment, the algorithm and the fewest further labels that distinguish all settings.

    Of options that vary together, such as steps and evaluations, only one is listed.
    """
    labels = [s.curve.labels for s in settings]
    names = ["env", "algo"]

    def kinds(extra: str) -> int:
        return len({tuple(own[n] for n in (*names, extra)) for own in labels})

    while (now := kinds("env")) < len(labels):
        best = max(labels[0], key=kinds)
        if kinds(best) == now:
            break
        names.append(best)
    return names


def _values(settings: Sequence[Setting], name: str) -> list[str]:
    found = list(dict.fromkeys(s.curve.labels[name] for s in settings))
    try:
        return sorted(found, key=lambda x: float(x or "-inf"))
    except ValueError:
        return sorted(found)


def filled(setting: Setting, metric: str, points: int) -> np.ndarray:
    """(seeds, points), with the last known return carried forward, up to a seed's last step."""
    steps, means = setting.curve.iterations(metric, points)
    if metric not in RETURNS:
        return means
    for row, end in zip(means, setting.ends, strict=True):
        until = int(np.searchsorted(steps, end)) + 1
        if np.isfinite(row[:until]).any():
            row[:until] = stats.carry_forward(row[:until])
    return means


def bands(setting: Setting, metric: str, points: int) -> dict[str, Any] | None:
    """The statistics at each point over the seeds that have a value there, and their number."""
    if metric not in setting.curve.columns:
        return None
    values = filled(setting, metric, points)
    there = np.isfinite(values)
    if not there.any():
        return None
    found = {name: np.full(values.shape[1], np.nan) for name in STATISTICS}
    for pattern in np.unique(there.T, axis=0):
        at = (there.T == pattern).all(1)
        if pattern.any():
            for name, x in _statistics(values[pattern][:, at].T, RESAMPLES).items():
                found[name][at] = x
    return {name: _plain(x) for name, x in found.items()} | {"n": there.sum(0).tolist()}


STATISTICS = ("iqm", "low", "high", "mean", "sd")


def _statistics(values: np.ndarray, resamples: int) -> dict[str, np.ndarray]:
    """Statistics of (points, seeds), all finite. One seed has no interval."""
    if values.shape[1] < 2:
        return {"iqm": values[:, 0], "mean": values[:, 0]}
    iqm, low, high = stats.interval(stats.iqm, values[..., None], resamples=resamples)
    every = (iqm, low, high, values.mean(1), values.std(1))
    return {name: np.asarray(x) for name, x in zip(STATISTICS, every, strict=True)}


def final(setting: Setting, metric: str = "episode_return") -> np.ndarray:
    """The final scores, means over the last fifth, of the complete seeds that have one."""
    if metric not in setting.curve.columns:
        return np.array([])
    scores = setting.curve.final(metric)[np.array(setting.whole)]
    return scores[np.isfinite(scores)]


def best_evaluation(setting: Setting) -> float | None:
    """The mean over seeds of the best evaluation, which has the weights that `--best` plays."""
    returns = setting.curve.columns.get("eval_return", np.empty((0, 0)))
    best = [row[np.isfinite(row)].max() for row in returns if np.isfinite(row).any()]
    return _plain(np.array([np.mean(best)]))[0] if best else None


def statistics(scores: np.ndarray) -> dict[str, Any] | None:
    if not len(scores):
        return None
    found = _statistics(scores[None], 2 * RESAMPLES)
    return {name: _plain(x)[0] for name, x in found.items()} | {"n": len(scores)}


def pairs(settings: Sequence[Setting]) -> Iterator[dict[str, Any]]:
    """Probabilities of improvement between algorithms on the same environment.

    Two settings are compared if they agree in every field for which their algorithms share a
    value, and if both have at least two scores.
    """
    scores = [final(s) for s in settings]
    labels = [s.curve.labels for s in settings]
    values = defaultdict(set)
    for own in labels:
        for name, value in own.items():
            values[own["env"], own["algo"], name].add(value)

    def alike(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
        sides = [(a["env"], a["algo"]), (b["env"], b["algo"])]
        return all(
            a[n] == b[n] or not values[*sides[0], n] & values[*sides[1], n]
            for n in a
            if n != "algo"
        )

    count: dict[str, int] = defaultdict(int)
    for i, j in combinations(range(len(settings)), 2):
        a, b = labels[i], labels[j]
        enough = min(len(scores[i]), len(scores[j])) > 1
        if a["env"] != b["env"] or a["algo"] == b["algo"] or not (enough and alike(a, b)):
            continue
        count[a["env"]] += 1
        if count[a["env"]] <= PAIRS:
            x, y = scores[i][:, None], scores[j][:, None]
            found = stats.interval(stats.probability_of_improvement, x, y, resamples=2 * RESAMPLES)
            yield {"a": i, "b": j, "p": [_plain(np.array([v]))[0] for v in found]}


def _plain(numbers: np.ndarray) -> list[float | None]:
    return [float(f"{x:.4g}") if np.isfinite(x) else None for x in numbers]
