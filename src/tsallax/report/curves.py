"""Learning curves of one run."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tsallax.storage.files import Directory
from tsallax.storage.tables import CellMetrics, read_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# For each combination of varied numbers: steps, and values (seeds, steps), NaN if missing.
Curves = dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]

# Okabe and Ito's palette: distinguishable without full colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", "--", ":", "-.")
NAMED = 30  # most curves in a legend
CROWD = 8  # most curves in a panel with bands, which would hide them
Styles = dict[tuple[str, ...], tuple[str, str]]  # the colour and the line style of each curve

PANELS = {
    "episode_return": "episodic return",
    "action_gap": "action gap  Q(1) - Q(2)",
    "support": "actions in the support of pi",
    "loss": "loss",
}


def read_curves(run: Path) -> Callable[[str], Curves]:
    """Read the columns of a run folder's metrics."""
    with Directory(run) as folder:
        cells, bad = read_metrics(folder, tuple(PANELS))
    if bad or len({len(cell.steps) for cell in cells}) > 1:
        raise ValueError(f"{run} has no whole table of metrics")
    groups: dict[tuple[str, ...], list[CellMetrics]] = {}
    for cell in cells:
        label = tuple(f"{name} = {value:g}" for name, value in cell.numbers.items())
        groups.setdefault(label, []).append(cell)

    def column(name: str) -> Curves:
        return {
            label: (own[0].steps, np.stack([cell.columns[name] for cell in own]))
            for label, own in groups.items()
        }

    return column


def smooth(values: np.ndarray, width: int) -> np.ndarray:
    """A centred moving mean that ignores NaN."""
    kernel = np.ones(min(width, values.shape[1]))

    def one(row):
        there = np.isfinite(row)
        total = np.convolve(np.where(there, row, 0), kernel, "same")
        count = np.convolve(there, kernel, "same")
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    return np.apply_along_axis(one, 1, values)


def styles_of(keys: Sequence[tuple[str, ...]]) -> Styles:
    """A colour for the first label, a line style for the others and for repeated colours."""
    first = list(dict.fromkeys(key[:1] for key in keys))
    styles = {}
    for key in keys:
        again, color = divmod(first.index(key[:1]), len(PALETTE))
        alike = [k for k in keys if k[:1] == key[:1]]
        styles[key] = PALETTE[color], LINES[(again + alike.index(key)) % len(LINES)]
    return styles


def plot_curves(read: Callable[[str], Curves], title: str) -> "Figure":
    """Return, action gap, support and loss: mean over seeds, with one standard deviation."""
    from matplotlib.figure import Figure

    names = [", ".join(name) for name in read("episode_return")]
    styles = styles_of(list(read("episode_return")))
    beside = max(1, min(len(names), int(9 / (0.6 + 0.08 * max(map(len, names), default=1)))))
    named = any(names) and len(names) <= NAMED
    above = 0.4 + (0.22 * -(-len(names) // beside) if named else 0)
    figure = Figure(figsize=(10, 6.2 + above), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[above, 6.2])
    head, body = parts
    axes = body.subplots(2, 2, sharex=True)
    for axis, (column, label) in zip(axes.flat, PANELS.items(), strict=True):
        for name, (steps, values) in read(column).items():
            color, line = styles[name]
            rows = np.ma.masked_invalid(smooth(values, max(1, len(steps) // 40)))
            mean, spread = rows.mean(0), rows.std(0)
            alone = "o" if np.ma.count(mean) == 1 else ""  # a line would not show one point
            axis.plot(steps, mean, color=color, ls=line, lw=1.8, marker=alone)
            if len(styles) < CROWD:
                low, high = mean - spread, mean + spread
                axis.fill_between(steps, low, high, color=color, alpha=0.2, lw=0)
        axis.set_title(label, fontsize=11, loc="left")
        dress(axis)
    for axis in axes[1]:
        axis.set_xlabel("environment steps")
    head.suptitle(title, fontsize=13, x=0.01, ha="left", weight="bold")
    if named:
        lines = axes[0, 0].lines
        head.legend(lines, names, loc="lower left", ncols=beside, frameon=False, fontsize=10)
    return figure


def dress(axes: "Axes") -> None:
    """The style shared by all axes over environment steps."""
    from matplotlib.ticker import EngFormatter

    axes.set_xlim(left=0)
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def draw_curves(run: Path, title: str) -> bytes:
    """Draw `curves.png` of a run's folder."""
    return as_png(plot_curves(read_curves(run), title))


def as_png(figure: "Figure") -> bytes:
    """A figure as the bytes of a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    return out.getvalue()
