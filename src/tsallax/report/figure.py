"""The figure of a study: rows of panels, as wide as a page and readable on a phone.

A line is the interquartile mean over seeds, a band its 95 % bootstrap interval. With two seeds they
are the mean and one standard deviation.
"""

import dataclasses
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tsallax import stats
from tsallax.experiments.results import Curve
from tsallax.experiments.study import Study
from tsallax.report.curves import CROWD, PANELS, Styles, dress, styles_of
from tsallax.spelling import counted
from tsallax.storage.files import Directory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Key = tuple[str, ...]  # labels: of a row, a column or a curve
WIDTH, HEIGHT = 6.4, 1.9  # of the figure and of a panel, in inches: 10 pt are 8 pixels on a phone
ACROSS, MANY = 2, 8  # panels side by side; one more if a row has more than MANY columns
LINE, LETTER = 0.2, 0.075  # height of a line of text and width of a letter, in inches
GROWN = 1e4  # above it an axis is logarithmic, as diverging values would hide all others


def draw_study(study: Study, curves: Sequence[Curve], folder: Directory) -> Iterator[Path]:
    """Write NAME.png and NAME.svg."""
    from matplotlib import rc_context

    if not study.curves:
        placed = {*study.rows, *study.columns}
        varied = [n for n in study.keys if n not in placed and len(_values(curves, [n])) > 1]
        study = dataclasses.replace(study, curves=tuple(varied))
    with rc_context({"svg.hashsalt": study.name, "font.size": 10}):  # the same file each time
        figure = make_figure(study, curves)
        for suffix, about in ((".png", {"Software": None}), (".svg", {"Date": None})):
            picture = io.BytesIO()
            figure.savefig(picture, format=suffix[1:], dpi=160, metadata=about)
            folder.write(f"{study.name}{suffix}", picture.getvalue())
            yield folder.path / f"{study.name}{suffix}"


def make_figure(study: Study, curves: Sequence[Curve]) -> "Figure":
    """The title, the legend, and a block of panels for each row of the study."""
    from matplotlib.figure import Figure

    kind = _kind(curves)
    styles = styles_of(_values(curves, study.curves))
    names = [", ".join(_words(study.curves, key)) for key in styles]
    beside = max(1, int(WIDTH / (0.5 + LETTER * max(map(len, names)))))
    top = LINE * (2.6 + (1.2 * -(-len(names) // beside) if len(names) > 1 else 0))
    rows = [
        [c for c in curves if _key(c, study.rows) == row] for row in _values(curves, study.rows)
    ]
    blocks = [_lines(study, own) for own in rows]
    tall = [HEIGHT * len(lines) + LINE * bool(study.rows) for lines in blocks]
    tall[-1] += LINE  # for the label below
    figure = Figure(figsize=(WIDTH, top + sum(tall)), layout="constrained")
    parts: Any = figure.subfigures(1 + len(tall), 1, height_ratios=[top, *tall])
    head, *places = parts
    _head(head, study, curves, top)
    if len(names) > 1:
        _legend(head, styles, names, beside)
    for place, own, lines in zip(places, rows, blocks, strict=True):
        if words := ", ".join(_words(study.rows, _key(own[0], study.rows))):
            place.suptitle(words, fontsize=10, weight="bold", x=0.01, ha="left")
        _panels(place, study, own, lines, styles, kind)
    places[-1].supxlabel("environment steps", fontsize=10)
    return figure


def _head(place: Any, study: Study, curves: Sequence[Curve], tall: float) -> None:
    seeds = sorted({len(curve.seeds) for curve in curves})
    of = counted(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    lines, bands = STATISTICS[_kind(curves)]
    few = min(Counter(_key(curve, (*study.rows, *study.columns)) for curve in curves).values())
    shown = f"{lines} and {bands} of {of}" if few < CROWD else f"{lines} of {of}"
    metric = PANELS.get(study.metric, study.metric)
    words = f"{metric}: {of if seeds[-1] == 1 else shown}"
    size = min(12, 72 * WIDTH / (0.62 * len(study.title)))  # a letter is .6 as wide as it is tall
    place.text(0.01, 1 - 0.2 * LINE / tall, study.title, size=size, weight="bold", va="top")
    place.text(0.01, 1 - 1.4 * LINE / tall, words, size=9, va="top")


STATISTICS = {
    "mean": ("mean", "standard deviation"),
    "iqm": ("interquartile mean", "95 % interval"),
}


def _kind(curves: Sequence[Curve]) -> str:
    """The statistic: the IQM, or the mean with one or two seeds, which is the same."""
    return "iqm" if max(len(curve.seeds) for curve in curves) > 2 else "mean"


def _lines(study: Study, own: Sequence[Curve]) -> list[list[Key]]:
    """The columns of a row that have been run, split into lines."""
    columns = _values(own, study.columns)
    across = ACROSS + (len(columns) > MANY)
    return [columns[i : i + across] for i in range(0, len(columns), across)]


def _panels(
    place: Any,
    study: Study,
    own: Sequence[Curve],
    lines: list[list[Key]],
    styles: Styles,
    kind: str,
) -> None:
    """One panel per column."""
    alike = "env" not in study.columns  # environments have different lengths and ranges,
    returns = study.metric == "episode_return"  # and other metrics may grow without bound
    across = max(len(line) for line in lines)
    shape = {"sharex": alike, "sharey": alike and returns, "squeeze": False}
    for line, columns in zip(place.subplots(len(lines), across, **shape), lines, strict=True):
        for axes, column in zip_longest(line, columns):
            if column is None:
                axes.set_axis_off()
                continue
            there = [curve for curve in own if _key(curve, study.columns) == column]
            _panel(axes, study, there, kind, styles)
            axes.set_title(", ".join(_words(study.columns, column)), fontsize=10)
            axes.tick_params(labelbottom=True)  # there may be no panel below
    place.supylabel(PANELS.get(study.metric, study.metric), fontsize=10)


def _legend(place: Any, styles: Styles, names: list[str], beside: int) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=color, ls=dash, lw=2) for color, dash in styles.values()]
    place.legend(lines, names, loc="lower left", ncols=min(beside, len(lines)), frameon=False)


def _panel(axes: "Axes", study: Study, curves: list[Curve], kind: str, styles: Styles) -> None:
    largest, lowest = 0.0, 0.0
    for curve in curves:
        steps, values = curve.iterations(study.metric)
        color, line = styles[_key(curve, study.curves)]
        middle, low, high = band(values, kind)
        alone = "o" if np.isfinite(middle).sum() == 1 else ""  # a line would not show one point
        axes.plot(steps, middle, color=color, ls=line, lw=1.6, marker=alone)
        if len(curves) < CROWD:
            axes.fill_between(steps, low, high, color=color, alpha=0.15, lw=0)
        largest = max(largest, np.nanmax(np.abs(middle), initial=0.0))
        lowest = min(lowest, np.nanmin(values, initial=0.0))
    if not any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
        words = "no episode ended" if study.metric == "episode_return" else "no values"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color="grey")
        axes.tick_params(labelbottom=False, labelleft=False)
    if largest > GROWN:
        axes.set_yscale("symlog", linthresh=1.0)
        if lowest == 0:  # a band may extend below the possible values
            axes.set_ylim(bottom=0)
    dress(axes)


def band(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The line and its band, of (seeds, iterations); NaN takes the last known value."""
    known = np.isfinite(values).any(1)
    if not known.any():
        none = np.full(values.shape[1], np.nan)
        return none, none, none
    filled = stats.carry_forward(values[known])
    if kind == "mean" or len(filled) < 2:
        middle, spread = filled.mean(0), filled.std(0)
        return middle, middle - spread, middle + spread
    found = stats.interval(stats.iqm, filled.T[..., None], resamples=2000)
    return np.asarray(found.value), np.asarray(found.low), np.asarray(found.high)


def _key(curve: Curve, names: Sequence[str]) -> Key:
    return tuple(curve.labels.get(name, "") for name in names)


def _values(curves: Sequence[Curve], names: Sequence[str]) -> list[Key]:
    """The combinations of these labels, sorted if they are numbers."""
    found = list(dict.fromkeys(_key(curve, names) for curve in curves))
    try:
        return sorted(found, key=lambda key: [float(x) for x in key])
    except ValueError:
        return found


def _words(names: Sequence[str], values: Sequence[str]) -> list[str]:
    plain = {"env": "{}", "algo": "{}", "policy": "{} policy"}
    pairs = zip(names, values, strict=True)
    return [plain.get(n, n.replace("_", " ") + " = {}").format(v) for n, v in pairs if v]
