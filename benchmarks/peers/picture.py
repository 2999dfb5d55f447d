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
WIDTH = 6.4  # width of a page in inches; stacked panels are readable on a phone
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
            axes.annotate(label, at, (4, 0), textcoords="offset points", va="center", fontsize=9)
            widest = max(widest, *rates)
    axes.set_yticks(range(len(names)), names, fontsize=10)
    axes.set_xlim(0, 1.32 * widest)
    axes.set_title(title, fontsize=11, weight="bold", loc="left")
    axes.tick_params(axis="x", labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def picture(results: dict[str, Any], path: Path) -> None:
    shown = [w for w in WORKS if any(results["works"].get(w, {}).get(s) for s in CORES)]
    bars = [sum(w in c.works for c in CONTENDERS) for w in shown]
    figure, grid = plt.subplots(
        len(shown),
        1,
        figsize=(WIDTH, 0.5 + sum(0.6 + 0.42 * n for n in bars)),
        height_ratios=[0.6 + 0.42 * n for n in bars],
        squeeze=False,
        layout="constrained",
    )
    for axes, work, n in zip(grid.flat, shown, bars, strict=True):
        panel(axes, results["works"][work], WORKS[work].title)
        axes.set_ylim(n - 0.5, -0.5)  # bars of the same height in every panel
    figure.supxlabel(
        "environment steps per second: the median, and a line\nfrom the least to the largest",
        fontsize=10,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)
    plt.close(figure)
