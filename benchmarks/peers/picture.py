"""The results as bars: steps per second of each work, on one core and on two."""

from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from contenders import CONTENDERS
from page import CORES
from works import WORKS

OURS, THEIRS, LIMIT = "#0b6e99", "#9aa5b1", "#d9c9a3"
FAINT = {"one": 1.0, "two": 0.55}


def colour(name: str) -> str:
    if name.startswith("matrix"):
        return LIMIT
    return OURS if name.startswith("tsallax") else THEIRS


def panel(axes: Any, settings: dict[str, Any], title: str) -> None:
    shown = [s for s in CORES if settings.get(s)]
    names = [c.name for c in CONTENDERS if any(c.name in settings[s] for s in shown)]
    height, widest = 0.8 / len(shown), 0.0
    for number, setting in enumerate(shown):
        for place, name in enumerate(names):
            if name not in settings[setting]:
                continue
            rates = settings[setting][name]["rates"]
            middle, y = median(rates), place + height * (number + 0.5) - 0.4
            axes.barh(y, middle, 0.94 * height, color=colour(name), alpha=FAINT[setting])
            axes.plot([min(rates), max(rates)], [y, y], color="black", linewidth=1)
            label = f"{middle:,.0f}" + (", two cores" if setting == "two" else "")
            at = (max(rates), y)
            axes.annotate(label, at, (4, 0), textcoords="offset points", va="center", fontsize=7)
            widest = max(widest, *rates)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlim(0, 1.28 * widest)
    axes.set_title(title, fontsize=10, loc="left")
    axes.tick_params(axis="x", labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def picture(results: dict[str, Any], path: Path) -> None:
    shown = [w for w in WORKS if any(results["works"].get(w, {}).get(s) for s in CORES)]
    columns = min(len(shown), 2)
    rows = -(-len(shown) // columns)
    most = max(sum(w in c.works for c in CONTENDERS) for w in shown)
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(5.5 * columns, 0.4 + (0.6 + 0.4 * most) * rows),
        squeeze=False,
        layout="constrained",
    )
    for axes, work in zip(grid.flat, shown, strict=False):
        panel(axes, results["works"][work], WORKS[work].title)
        axes.set_ylim(most - 0.5, -0.5)  # bars of the same height in every panel
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    figure.supxlabel(
        "environment steps per second: the median, and a line from the least to the largest",
        fontsize=8,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
