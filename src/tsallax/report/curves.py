"""Learning curves of one run."""

import csv
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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


def read_curves(metrics: Path, column: str) -> Curves:
    """One column of a `metrics.csv`."""
    try:
        table = _read_table(metrics, column)
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{metrics} is no whole table of metrics") from None
    curves = {}
    for label, seeds in table.items():
        series = np.array(list(seeds.values()))
        curves[label] = series[0, :, 0], series[:, :, 1]
    return curves


def _read_table(
    metrics: Path, column: str
) -> dict[tuple[str, ...], dict[str, list[tuple[int, float]]]]:
    """Of each combination of varied numbers, of each seed: steps and values."""
    table: Any = defaultdict(lambda: defaultdict(list))
    with metrics.open(newline="") as file:
        reader = csv.DictReader(file)
        names = list(reader.fieldnames or [])
        varied = names[1 : names.index("step")]
        for row in reader:
            label = tuple(f"{name} = {float(row[name]):g}" for name in varied)
            table[label][row["seed"]].append((int(row["step"]), float(row[column] or "nan")))
    return table


def smooth(values: np.ndarray, width: int) -> np.ndarray:
    """A centred moving mean that skips holes."""
    kernel = np.ones(min(width, values.shape[1]))

    def one(row):
        there = np.isfinite(row)
        total = np.convolve(np.where(there, row, 0), kernel, "same")
        count = np.convolve(there, kernel, "same")
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    return np.apply_along_axis(one, 1, values)


def plot_curves(read: Callable[[str], Curves], title: str, path: Path | str | None) -> "Figure":
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
    if path is not None:
        figure.savefig(path, dpi=130)
    return figure


def draw_curves(metrics: Path, picture: Path, title: str) -> None:
    """`curves.png` of a run folder."""
    plot_curves(partial(read_curves, metrics), title, picture)
