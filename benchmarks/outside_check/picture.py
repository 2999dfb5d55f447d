"""The learning curves of both libraries, one panel per algorithm."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import EngFormatter

COLOURS = {"tsallax": "#0072B2", "Stable-Baselines3": "#D55E00"}
WINDOW = 5  # periods per point


def picture(curves: dict[str, dict[str, np.ndarray]], period: int, warmup: int, path: Path) -> None:
    """Mean over seeds and one standard deviation; `curves` are (seeds, periods)."""
    figure, axes = plt.subplots(
        len(curves), 1, figsize=(8.5, 4 * len(curves)), sharex=True, layout="constrained"
    )
    for axis, (title, sides) in zip(axes, curves.items(), strict=True):
        for name, values in sides.items():
            points = values.shape[1] // WINDOW
            means = values[:, : points * WINDOW].reshape(len(values), points, WINDOW).mean(-1)
            steps = period * WINDOW * (np.arange(points) + 1)
            middle, spread = means.mean(0), means.std(0, ddof=1)
            label = f"{name}, {len(values)} seeds"
            axis.plot(steps, middle, color=COLOURS[name], lw=2, label=label)
            band = middle - spread, middle + spread
            axis.fill_between(steps, *band, color=COLOURS[name], alpha=0.2, lw=0)
        axis.axvspan(0, warmup, color="0.92", lw=0, zorder=0)
        axis.text(
            warmup / 2, 480, "uniform actions,\nno learning", ha="center", va="top", fontsize=12
        )
        axis.set_title(title, loc="left", fontsize=14)
        axis.set_xlim(0, period * WINDOW * points)
        axis.set_ylim(0, 500)
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.tick_params(labelsize=12)
        axis.grid(alpha=0.25, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_ylabel("return per episode", fontsize=12)
    axes[-1].set_xlabel("environment steps", fontsize=12)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=12)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
