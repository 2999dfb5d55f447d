"""Learning curves of one run."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tsallax.storage.files import Directory
from tsallax.storage.tables import CellMetrics, read_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# For each combination of varied numbers: steps, and values (seeds, steps) with NaN holes.
Curves = dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]

# Okabe and Ito's palette: distinguishable without full colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


PANELS = {
    "episode_return": "episodic return",
    "action_gap": "action gap  Q(1) - Q(2)",
    "support": "actions in the support of pi",
    "loss": "loss",
}


def read_curves(run: Path) -> Callable[[str], Curves]:
    """The columns of a run folder's metrics."""
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
    """A centred moving mean that skips holes."""
    kernel = np.ones(min(width, values.shape[1]))

    def one(row):
        there = np.isfinite(row)
        total = np.convolve(np.where(there, row, 0), kernel, "same")
        count = np.convolve(there, kernel, "same")
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    return np.apply_along_axis(one, 1, values)


def plot_curves(read: Callable[[str], Curves], title: str) -> "Figure":
    """Return, action gap, support and loss: mean over seeds, with one standard deviation."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for axis, (column, label) in zip(axes.flat, PANELS.items(), strict=True):
        for color, (name, (steps, values)) in zip(PALETTE * 9, read(column).items(), strict=False):
            rows = np.ma.masked_invalid(smooth(values, max(1, len(steps) // 40)))
            mean, spread = rows.mean(0), rows.std(0)
            axis.plot(steps, mean, color=color, lw=1.8, label=", ".join(name) or None)
            axis.fill_between(steps, mean - spread, mean + spread, color=color, alpha=0.2, lw=0)
        axis.set_title(label, fontsize=10, loc="left")
        axis.grid(alpha=0.25, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    if axes[0, 0].get_legend_handles_labels()[1]:
        axes[0, 0].legend(frameon=False, fontsize=9)
    for axis in axes[1]:
        axis.set_xlabel("environment steps")
    figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    return figure


def draw_curves(run: Path, title: str) -> bytes:
    """`curves.png` of a run's folder."""
    return as_png(plot_curves(read_curves(run), title))


def as_png(figure: "Figure") -> bytes:
    """A picture as the bytes of its file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    return out.getvalue()
