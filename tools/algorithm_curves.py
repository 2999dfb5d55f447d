"""The curves of the algorithms' pages: docs/figures/algorithms/NAME.png, from a study's table.

tsallax reproduce algorithms
python tools/algorithm_curves.py
"""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from tsallax.experiments.results import Curve, read_table
from tsallax.report.curves import PALETTE, PANELS
from tsallax.report.figure import band

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "results" / "quick" / "algorithms" / "metrics.csv"
FIGURES = ROOT / "docs" / "figures" / "algorithms"
COLUMNS = ("episode_return", "action_gap")


def draw(curves: list[Curve], name: str) -> Figure:
    """One algorithm in colour, with its spread; the others in grey."""
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    for axes, column in zip(figure.subplots(1, len(COLUMNS)), COLUMNS, strict=True):
        for curve in sorted(curves, key=lambda c: c.labels["algo"] == name):
            own = curve.labels["algo"] == name
            steps, values = curve.iterations(column)
            middle, low, high = band(values, "mean")
            axes.plot(steps, middle, color=PALETTE[0] if own else "0.8", lw=1.8 if own else 0.8)
            if own:
                axes.fill_between(steps, low, high, color=PALETTE[0], alpha=0.2, lw=0)
        axes.set(xlabel="environment steps", ylabel=PANELS[column], ylim=(0, None))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.grid(alpha=0.25, lw=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    curves = read_table(TABLE)
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in (curve.labels["algo"] for curve in curves):
        draw(curves, name).savefig(FIGURES / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
