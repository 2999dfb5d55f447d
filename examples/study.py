"""The shared parts of the studies: the mean of independent draws, figures and where they go."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

WIDTH = 6.4  # width of a page in inches
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"

# Okabe and Ito's palette, distinguishable in every common form of colour blindness.
ORANGE, SKY, GREEN, YELLOW, BLUE = "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2"
VERMILION, PURPLE, GREY, BLACK = "#D55E00", "#CC79A7", "#777777", "#000000"

matplotlib.rcParams.update(
    {
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 10.5,
        "font.size": 10,
        "grid.alpha": 0.25,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "savefig.dpi": 160,
    }
)


def two_panels(title: str, tall: float = 7.4):
    """A figure of two panels under a title that states the result, readable on a phone."""
    figure = Figure((WIDTH, tall), layout="constrained")
    figure.suptitle(title, fontsize=11, fontweight="bold")
    return figure, figure.subplots(2, 1)


def save(figure: Figure, name: str) -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURES / name)
    print(f"wrote {FIGURES / name}")


def mean_and_error(draws) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the first axis, and its standard error."""
    draws = np.asarray(draws)
    return draws.mean(0), draws.std(0, ddof=1) / np.sqrt(len(draws))


def print_row(label: str, draws, flagged=False) -> None:
    """Print mean ± standard error of each column, with a star if a draw is flagged."""
    stars = np.where(np.any(np.broadcast_to(flagged, np.shape(draws)), 0), "*", " ")
    cells = zip(*mean_and_error(draws), stars, strict=True)
    print(
        f"{label:43}" + "".join(f"{mean:9.4f} ±{error:7.4f}{star}" for mean, error, star in cells)
    )


def print_header(label: str, columns) -> None:
    print(f"{label:43}" + "".join(f"{column:>9}{'':10}" for column in columns))
