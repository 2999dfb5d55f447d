"""Figures for the docs from the tables under results/: one per algorithm, and that of errata 12.

tsallax reproduce algorithms normalisation
python tools/result_figures.py
"""

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from tsallax.experiments.results import Curve, read_table, select
from tsallax.report.curves import PALETTE, PANELS, dress
from tsallax.report.figure import WIDTH, band

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "quick"
FIGURES = ROOT / "docs" / "figures"
COLUMNS = ("episode_return", "action_gap")
COMPARED = {"tsallis-dqn": "Tsallis-DQN", "tal": "TAL"}
POLICIES = {
    "paper": "the paper's approximation",
    "paper-normalised": "the same, divided by its sum",
    "exact": "the exact policy",
}


def draw(axes: Axes, curve: Curve, column: str, color: str, label: str = "") -> None:
    """Plot the mean over seeds, and one standard deviation around it."""
    steps, values = curve.iterations(column)
    middle, low, high = band(values, "mean")
    axes.plot(steps, middle, color=color, lw=1.8, label=label)
    axes.fill_between(steps, low, high, color=color, alpha=0.15, lw=0)


def finish(axes: Axes, column: str) -> None:
    axes.set(xlabel="environment steps", ylabel=PANELS[column], ylim=(0, None))
    dress(axes)


def algorithm(curves: Sequence[Curve], own: Curve) -> Figure:
    """Plot one algorithm in colour, the others in grey."""
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    for axes, column in zip(figure.subplots(1, 2), COLUMNS, strict=True):
        for other in curves:
            steps, values = other.iterations(column)
            axes.plot(steps, band(values, "mean")[0], color="0.8", lw=0.8)
        draw(axes, own, column, PALETTE[0])
        finish(axes, column)
    return figure


def figure4_policies(curves: Sequence[Curve], q: float = 1.5) -> Figure:
    """Figure 4 of the paper, with its policy and with policies that sum to one."""
    figure = Figure(figsize=(WIDTH, 3 * 1.8), layout="constrained")
    panels = figure.subplots(len(POLICIES), 1, sharex=True, sharey=True)
    for axes, (policy, words) in zip(panels, POLICIES.items(), strict=True):
        for (algo, name), color in zip(COMPARED.items(), PALETTE, strict=False):
            for curve in select(curves, q=q, policy=policy, algo=algo):
                draw(axes, curve, "episode_return", color, name)
        axes.set_title(words, fontsize=10)
    for axes in panels:  # after all is drawn, as they share an axis
        finish(axes, "episode_return")
        axes.label_outer()
    panels[0].legend(frameon=False, loc="upper left")
    return figure


def save(figure: Figure, name: str) -> None:
    path = FIGURES / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=160)
    Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)  # a third of the size


def main() -> None:
    curves = read_table(RESULTS / "algorithms" / "metrics.csv")
    for own in curves:
        save(algorithm(curves, own), f"algorithms/{own.labels['algo']}")
    normalisation = read_table(RESULTS / "normalisation" / "metrics.csv")
    save(figure4_policies(normalisation), "figure4-policies")


if __name__ == "__main__":
    main()
