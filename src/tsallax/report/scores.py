"""Studies as sections of a page: picture, final scores, and the claims that rest on them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tsallax import stats
from tsallax.experiments.results import Curve
from tsallax.experiments.study import load, names
from tsallax.report.judged import Judged, details

SHARE = 0.2  # of a run, at its end


def study_sections(
    tables: Mapping[str, Sequence[Curve]],
    abouts: Sequence[Mapping[str, Any]],
    judged: Sequence[Judged],
    folder: str,
) -> str:
    """Every study of a folder of results, in Markdown; `folder` is its path from the page."""
    known = {about["study"]: about for about in abouts}
    own = {name: load(name) for name in names()}
    order = [
        *(name for name in own if name in tables),
        *(name for name in tables if name not in own),
    ]

    def section(name: str) -> str:
        study, about = own.get(name), known[name]
        parts = [
            f"### {name}: {about['title']}",
            study.about if study else "",
            f"![{about['title']}]({folder}/{name}/{name}.png)",
            _made(about),
            "\n".join(_rows(tables[name], study.metric if study else "episode_return")),
            details(judged, name),
        ]
        return "\n\n".join(filter(None, parts))

    return "\n\n".join(map(section, order))


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
        final = curve.final(metric, SHARE)
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
