"""Learning curves of one run."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

# Okabe and Ito's palette: distinguishable without full colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def read_curves(metrics: Path, column: str) -> dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]:
    """For each combination of varied numbers: steps, and values `(seeds, steps)` with NaN holes."""
    with metrics.open(newline="") as file:
        reader = csv.DictReader(file)
        names = list(reader.fieldnames or [])
        varied = names[1 : names.index("step")]
        table: dict[tuple[str, ...], dict[str, list]] = defaultdict(lambda: defaultdict(list))
        for row in reader:
            label = tuple(f"{name} = {float(row[name]):g}" for name in varied)
            table[label][row["seed"]].append((int(row["step"]), float(row[column] or "nan")))
    curves = {}
    for label, seeds in table.items():
        series = np.array(list(seeds.values()))
        curves[label] = series[0, :, 0], series[:, :, 1]
    return curves


def smooth(values: np.ndarray, width: int) -> np.ndarray:
    """A centred moving mean that skips holes."""
    kernel = np.ones(min(width, values.shape[1]))

    def one(row):
        there = np.isfinite(row)
        total = np.convolve(np.where(there, row, 0), kernel, "same")
        count = np.convolve(there, kernel, "same")
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    return np.apply_along_axis(one, 1, values)


def draw_curves(metrics: Path, picture: Path, title: str) -> None:
    """Return, action gap, support and loss: mean over seeds, with one standard deviation."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import EngFormatter

    panels = {
        "episode_return": "episodic return",
        "action_gap": "action gap  Q(1) - Q(2)",
        "support": "actions in the support of pi",
        "loss": "loss",
    }
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained", sharex=True)
    for axis, (column, label) in zip(axes.flat, panels.items(), strict=True):
        for color, (name, (steps, values)) in zip(
            PALETTE * 9, read_curves(metrics, column).items(), strict=False
        ):
            rows = smooth(values, max(1, len(steps) // 40))
            mean, spread = np.nanmean(rows, 0), np.nanstd(rows, 0)
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
    figure.savefig(picture, dpi=130)
    plt.close(figure)
