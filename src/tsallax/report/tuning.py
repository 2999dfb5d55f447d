"""The figure of a search for settings: its progress, and the importance of each setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from jaxtyping import Float
from optuna.trial import FrozenTrial

from tsallax.experiments.tune import Confirmed, finished
from tsallax.experiments.tune_space import Search
from tsallax.report.curves import PALETTE, as_png
from tsallax.training.options import Choices, Range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = "search.png"
ACROSS = 4  # panels per row
BLUE, ORANGE, GREEN, *_ = PALETTE


def draw_search(study: optuna.Study, search: Search, again: Sequence[Confirmed]) -> bytes:
    """Plots the best value so far, the importance of each setting, and the value over each."""
    from matplotlib.figure import Figure

    trials = sorted(
        (t for t in finished(study) if t.value is not None), key=lambda trial: trial.number
    )
    names = list(search.space)
    rows = -(-len(names) // ACROSS)
    figure = Figure(figsize=(11, 3.2 + 2.3 * rows), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[2.8, 2.3 * rows])
    history, bars = parts[0].subplots(1, 2)
    _history(history, trials, again)
    _bars(bars, importance(study, names))
    panels = parts[1].subplots(rows, ACROSS, sharey=True, squeeze=False)
    for axis, name in zip(panels.flat, names, strict=False):
        _panel(axis, name, search.space[name], trials, again)
    for axis in panels.flat[len(names) :]:
        axis.set_visible(False)
    for axis in (history, *panels[:, 0]):
        axis.set_ylabel("mean return" if search.base.stop_at is None else "minus the steps needed")
        axis.set_ylim(*_limits(_worth(trials)))
    for axis in (history, bars, *panels.flat):
        axis.grid(alpha=0.25, lw=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"{search.base.algo} on {search.base.env}: {len(trials)} trials x {search.base.seeds} "
        f"seeds, {search.base.steps:,} steps each",
        fontsize=12, x=0.01, ha="left",
    )  # fmt: skip
    return as_png(figure)


def importance(study: optuna.Study, names: Sequence[str]) -> dict[str, float]:
    """How strongly each setting separates the best quarter of the trials from all (PED-ANOVA).

    Returns shares that add up to 1, or all 0 if there are too few trials or all values are equal.
    """
    nothing = dict.fromkeys(names, 0.0)
    values = {trial.value for trial in finished(study) if trial.value is not None}
    if len(values) < 2 * ACROSS:
        return nothing
    judge = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
    found = optuna.importance.get_param_importances(study, evaluator=judge)
    return nothing | {name: x if np.isfinite(x) else 0.0 for name, x in found.items()}


def _worth(trials: Sequence[FrozenTrial]) -> Float[np.ndarray, "trials"]:
    return np.array([trial.value for trial in trials], float)


def _limits(values: Float[np.ndarray, "trials"]) -> tuple[float, float]:
    """The limits of the axis without the worst tenth, whose values may be arbitrarily low."""
    low, high = np.quantile(values, 0.1), max(values)
    room = 0.06 * max(high - low, 1e-9)
    return float(low - room), float(high + room)


def _history(axis: "Axes", trials: Sequence[FrozenTrial], again: Sequence[Confirmed]) -> None:
    numbers, values = [t.number for t in trials], _worth(trials)
    axis.plot(numbers, values, "o", color=BLUE, ms=4, alpha=0.6, label="a trial")
    axis.step(numbers, np.maximum.accumulate(values), where="post", color=BLUE, label="best so far")
    for one in again:
        axis.errorbar(
            one.trial.number, one.values.mean(), one.error, fmt="s", ms=5, capsize=3,
            color=GREEN if one is again[0] else ORANGE,
            label="chosen" if one is again[0] else "with other seeds" if one is again[-1] else None,
        )  # fmt: skip
    axis.set_xlabel("trial")
    axis.set_title("how the search went", fontsize=10, loc="left")
    axis.legend(frameon=False, fontsize=8, loc="lower right")


def _bars(axis: "Axes", shares: dict[str, float]) -> None:
    shown = sorted(shares.items(), key=lambda item: item[1])
    axis.barh([name.rstrip("_") for name, _ in shown], [share for _, share in shown], color=BLUE)
    axis.set_title("importance: what divides the best quarter from all", fontsize=10, loc="left")


def _panel(
    axis: "Axes",
    name: str,
    where: Range | Choices,
    trials: Sequence[FrozenTrial],
    again: Sequence[Confirmed],
) -> None:
    def place(trial: FrozenTrial) -> Any:
        x = trial.params[name]
        return where.values.index(x) if isinstance(where, Choices) else x

    axis.plot([place(t) for t in trials], _worth(trials), "o", color=BLUE, ms=4, alpha=0.6)
    if again:
        axis.axvline(place(again[0].trial), color=GREEN, lw=1.2)
    if isinstance(where, Choices):
        axis.set_xticks(range(len(where.values)), [str(x) for x in where.values])
    elif where.log:
        axis.set_xscale("log")
    axis.set_title(name.rstrip("_"), fontsize=10, loc="left")
