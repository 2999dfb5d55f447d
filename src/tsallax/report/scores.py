"""Studies as sections of a page: figure, final scores, and the claims about them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsallax import stats
from tsallax.experiments.judging import Judged
from tsallax.experiments.results import Curve
from tsallax.experiments.study import load, names
from tsallax.report.claims_table import Results, details


def study_sections(results: Sequence[Results], judged: Sequence[Judged], beside: Path) -> str:
    """Every study with results, in Markdown, for a page in the folder `beside`."""
    known = {name: load(name) for name in names()}
    own = dict.fromkeys(found.study for found in results)
    order = [*(name for name in known if name in own), *(name for name in own if name not in known)]

    def section(name: str) -> str:
        study = known.get(name)
        metric = study.metric if study else "episode_return"
        tables = sorted((r for r in results if r.study == name), key=_length)
        parts = [f"### {name}: {tables[-1].about['title']}", study.about if study else ""]
        for table in tables:
            path = os.path.relpath(table.folder, beside).replace(os.sep, "/")
            file = f"{path}/{name}.png"
            picture = f"[![{table.about['title']}]({file})]({file})"  # links to its full size
            parts += [picture, _made(table.about), "\n".join(_rows(table.curves, metric))]
        return "\n\n".join(filter(None, [*parts, details(judged, name)]))

    return "\n\n".join(map(section, order))


def _length(table: Results) -> int:
    return max(int(curve.steps[-1]) for curve in table.curves)


def _made(about: Mapping[str, Any]) -> str:
    missing = len(about["unfinished"]) + len(about["failed"])
    text = (
        f"`tsallax reproduce {about['study']} --scale {about['scale']}`: {about['done']} of "
        f"{about['jobs']} runs, {about['environment steps']:,} environment steps, "
        f"{about['core hours']:g} core hours."
    )
    if missing:
        text += f" {missing} runs are unfinished or failed."
    return text


def _rows(curves: Sequence[Curve], metric: str) -> Iterator[str]:
    keys = [key for key in curves[0].labels if len({c.labels[key] for c in curves}) > 1]
    what = metric.replace("_", " ")
    yield "| " + " | ".join([*keys, "steps", "seeds", f"{what}, mean ± sd", "IQM (95 %)"]) + " |"
    yield "|" + "---|" * (len(keys) + 4)
    for curve in curves:
        labels = [curve.labels[key] for key in keys]
        final = curve.final(metric)
        known = final[np.isfinite(final)]
        cells = [*labels, f"{curve.steps[-1]:,}", len(curve.seeds), *_statistics(known)]
        yield "| " + " | ".join(map(str, cells)) + " |"


def _statistics(final: np.ndarray) -> tuple[str, str]:
    if not len(final):
        return "no episode ended", ""
    spread = f" ± {final.std():.3g}" if len(final) > 1 else ""
    mean = f"{final.mean():.4g}{spread}"
    if len(final) < 2:
        return mean, ""
    iqm, low, high = stats.interval(stats.iqm, final[:, None], resamples=2000)
    return mean, f"{iqm:.4g} ({low:.4g} to {high:.4g})"
