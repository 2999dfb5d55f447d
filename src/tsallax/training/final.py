"""The final score of a run: one definition for the command line, Python and the report."""

from collections.abc import Mapping
from pathlib import Path

import gymnasium
import numpy as np
from jaxtyping import Float, Shaped

from tsallax.spelling import counted
from tsallax.storage.files import Directory
from tsallax.storage.tables import read_metrics

PARTS = 50  # number of about equal parts of a run, as in the paper's figures
SHARE = 0.2  # the last share of the parts, over which the final score is the mean

Columns = Mapping[str, Shaped[np.ndarray, "runs periods"]]


def part_means(columns: Columns, name: str, count: int = PARTS) -> Float[np.ndarray, "runs parts"]:
    """Means over `count` about equal parts of each run.

    The mean return of a part is over the episodes that ended in it, NaN if there are none.
    """
    values = np.asarray(columns[name], float)
    returns = name == "episode_return"
    weights = columns["episodes"] if returns else np.isfinite(values).astype(float)
    parts = np.array_split(np.arange(values.shape[1]), min(count, values.shape[1]))
    known = np.where(weights > 0, values, 0.0) * weights
    total = np.stack([known[:, p].sum(1) for p in parts], 1)
    weight = np.stack([weights[:, p].sum(1) for p in parts], 1)
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def final_scores(
    columns: Columns, name: str = "episode_return", share: float = SHARE
) -> Float[np.ndarray, "runs"]:
    """The mean of the last `share` of a run's parts, ignoring NaN; NaN if all of them are."""
    means = part_means(columns, name)
    last = means[:, -max(1, round(share * means.shape[1])) :]
    known = np.isfinite(last)
    total, none = np.where(known, last, 0).sum(1), np.full(len(last), np.nan)
    return np.divide(total, known.sum(1), out=none, where=known.any(1))


def folder_scores(folder: Directory) -> Float[np.ndarray, "cells"]:
    """The final return of each cell of a run folder, by the metrics written so far."""
    cells, _ = read_metrics(folder, ("episodes", "episode_return"))
    alone = [{name: column[None] for name, column in cell.columns.items()} for cell in cells]
    return np.array([final_scores(columns)[0] for columns in alone])


def best_cell(path: Path) -> int:
    """The cell of a run folder with the best final return."""
    with Directory(path) as folder:
        scores = folder_scores(folder)
    return int(np.argmax(np.nan_to_num(scores, nan=-np.inf))) if len(scores) else 0


def solved_return(env: str) -> float | None:
    """The mean return at which an environment counts as solved, if Gymnasium defines one."""
    spec = gymnasium.registry.get(env)
    threshold = None if spec is None else spec.reward_threshold
    return None if threshold is None else float(threshold)


def evaluation_in_words(env: str, returns: Float[np.ndarray, "cells episodes"]) -> str:
    """Describes the mean over all episodes and how many cells have solved the environment."""
    text = f"return {np.nanmean(returns):.1f} over {counted(returns.size, 'episode')}"
    return text + _solved(env, returns.mean(1))


def best_in_words(env: str, returns: Float[np.ndarray, "cells"]) -> str:
    """Describes the mean of the cells' best evaluations and how many have solved it."""
    known = returns[np.isfinite(returns)]
    return f"return {known.mean() if len(known) else np.nan:.1f}{_solved(env, returns)}"


def _solved(env: str, means: Float[np.ndarray, "cells"]) -> str:
    enough = solved_return(env)
    if enough is None:
        return ""
    solved = int((means >= enough).sum())
    words = "solved" if solved else "not solved"
    words = f"{solved} of {len(means)} solved" if len(means) > 1 else words
    return f", {words} ({enough:g} or more)"


def in_words(scores: Float[np.ndarray, "*cells"]) -> str:
    """Describes the mean over cells."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return "no episode ended in the last fifth of training"
    return f"return {known.mean():.1f} (mean over the last fifth of training)"


def mean_text(values: np.ndarray) -> str:
    """The mean of `values` as text."""
    mean = mean_of(values)
    return f"{mean:.1f}" if np.isfinite(mean) else "none"


def mean_of(values: np.ndarray) -> float:
    """The mean of the finite values; -inf if there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else -np.inf
