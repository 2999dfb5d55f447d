"""The picture of a study: panels by its rows and columns, twice.

On the left as the paper draws them: mean and one standard deviation over seeds. On the right the
interquartile mean with its 95 % bootstrap interval, if there are enough seeds for it to differ.
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
from tsallax.report.curves import PALETTE, PANELS
from tsallax.storage.files import Directory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Styles = dict[tuple[str, ...], tuple[str, str]]  # of a curve: its colour and its line
STYLES = ("-", "--", ":", "-.")
WIDTH, HEIGHT = 2.9, 2.1  # inches of a panel
ACROSS = 4  # panels side by side, in each half
LETTER = 0.07  # inches of a letter in the legend
CROWD = 8  # curves in a panel; with more, bands would hide them
GROWN = 1e4  # beyond it an axis is logarithmic, as values that diverge hide all others


def draw_study(study: Study, curves: Sequence[Curve], folder: Directory) -> Iterator[Path]:
    """Write NAME.png and NAME.svg."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not study.curves:
        placed = {*study.rows, *study.columns}
        varied = [n for n in study.keys if n not in placed and len(_values(curves, [n])) > 1]
        study = dataclasses.replace(study, curves=tuple(varied))
    grid = _grid(study, curves)
    styles = _styles(_values(curves, study.curves))
    tall = HEIGHT * len(grid)
    seeds = [len(curve.seeds) for curve in curves]
    panels = Counter(_key(curve, (*study.rows, *study.columns)) for curve in curves)
    sides = _sides(max(seeds), min(panels.values()) < CROWD)
    wide = max(len(sides) * (WIDTH * len(grid[0]) + 0.3), 7.0)
    named = [", ".join(_words(study.curves, key)) for key in styles]
    beside = max(1, int(wide / (0.6 + LETTER * max(map(len, named)))))
    low = 0.2 + 0.2 * -(-len(styles) // beside)
    with rc_context({"svg.hashsalt": study.name, "font.size": 8}):  # the same file each time
        figure = Figure(figsize=(wide, tall + 0.8 + low), layout="constrained")
        parts: Any = figure.subfigures(2, 1, height_ratios=[tall + 0.8, low])
        places = parts[0].subfigures(1, len(sides), wspace=0.03, squeeze=False)[0]
        for side, (words, kind) in zip(places, sides.items(), strict=True):
            side.suptitle(words, fontsize=9)
            _panels(side, study, curves, grid, kind, styles)
        if len(styles) > 1:
            _legend(parts[1], styles, named, beside)
        of = "-".join(map(str, dict.fromkeys((min(seeds), max(seeds)))))
        figure.suptitle(f"{study.title}   (seeds: {of})", fontsize=10)
        for suffix, about in ((".png", {"Software": None}), (".svg", {"Date": None})):
            picture = io.BytesIO()
            figure.savefig(picture, format=suffix[1:], dpi=110, metadata=about)
            folder.write(f"{study.name}{suffix}", picture.getvalue())
            yield folder.path / f"{study.name}{suffix}"


def _sides(seeds: int, banded: bool) -> dict[str, str]:
    """The title of each half, and its kind. With one or two seeds the IQM is the mean."""
    if seeds == 1:
        return {"one seed": "mean"}
    mean = {"mean and one standard deviation" if banded else "mean": "mean"}
    return mean | ({"IQM and 95 % interval" if banded else "IQM": "iqm"} if seeds > 2 else {})


def _grid(study: Study, curves: Sequence[Curve]) -> list[list[tuple[str, ...]]]:
    """Lines of panels, each by its labels; a long row of the study is broken into several."""
    rows, columns = (_values(curves, names) for names in (study.rows, study.columns))
    across = -(-len(columns) // -(-len(columns) // ACROSS))
    starts = range(0, len(columns), across)
    return [[row + column for column in columns[i : i + across]] for row in rows for i in starts]


def _panels(
    side: Any,
    study: Study,
    curves: Sequence[Curve],
    grid: list[list[tuple[str, ...]]],
    kind: str,
    styles: Styles,
) -> None:
    """One panel per row and column, except where nothing was run."""
    names = (*study.rows, *study.columns)
    alike = "env" not in study.columns  # environments have their own lengths and ranges,
    returns = study.metric == "episode_return"  # and other numbers may grow without bound
    shape = {"sharex": "row" if alike else False, "sharey": "row" if alike and returns else False}
    panels = side.subplots(len(grid), len(grid[0]), squeeze=False, **shape)
    for line, places in zip(panels, grid, strict=True):
        labelled = False  # the line, by the first panel that is there
        for axes, place in zip_longest(line, places):
            own = [curve for curve in curves if _key(curve, names) == place]
            if not own:
                axes.set_axis_off()
                continue
            if not labelled:
                axes.tick_params(labelleft=True)
                labelled = True
            _panel(axes, study, own, kind, styles)
            axes.set_title(", ".join(_words(names, place)), fontsize=8)
    side.supxlabel("environment steps", fontsize=8)
    side.supylabel(PANELS.get(study.metric, study.metric), fontsize=8)


def _legend(place: Any, styles: Styles, words: list[str], beside: int) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=color, ls=dash, lw=1.6) for color, dash in styles.values()]
    place.legend(lines, words, loc="center", ncols=min(beside, len(lines)), frameon=False)


def _panel(axes: "Axes", study: Study, curves: list[Curve], kind: str, styles: Styles) -> None:
    from matplotlib.ticker import EngFormatter

    largest, lowest = 0.0, 0.0
    for curve in curves:
        steps, values = curve.iterations(study.metric)
        color, line = styles[_key(curve, study.curves)]
        middle, low, high = band(values, kind)
        axes.plot(steps, middle, color=color, ls=line, lw=1.4)
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
    axes.grid(alpha=0.25, lw=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def band(values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The line and its band, of (seeds, iterations); NaN is filled as an observer would."""
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


def _key(curve: Curve, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(curve.labels.get(name, "") for name in names)


def _values(curves: Sequence[Curve], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The combinations of these labels, numbers in order."""
    found = list(dict.fromkeys(_key(curve, names) for curve in curves))
    try:
        return sorted(found, key=lambda key: [float(x) for x in key])
    except ValueError:
        return found


def _styles(keys: list[tuple[str, ...]]) -> Styles:
    """A colour for the first label, a line style for the others and for colours used again."""
    first = list(dict.fromkeys(key[:1] for key in keys))
    styles = {}
    for key in keys:
        again, color = divmod(first.index(key[:1]), len(PALETTE))
        alike = [k for k in keys if k[:1] == key[:1]]
        styles[key] = PALETTE[color], STYLES[(again + alike.index(key)) % len(STYLES)]
    return styles


def _words(names: Sequence[str], values: Sequence[str]) -> list[str]:
    plain = ("env", "algo", "policy")
    pairs = zip(names, values, strict=True)
    return [v if n in plain else f"{n.replace('_', ' ')} = {v}" for n, v in pairs if v]
