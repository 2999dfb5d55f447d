"""The exact permutation test of the means of two samples of a few runs, and its interval.

Under the hypothesis that both libraries have the same distribution of scores, every labelling of
the pooled runs is equally likely. Five runs per side have 252 labellings, so all are enumerated and
the level is exact; a bootstrap interval of five runs is too narrow (`tsallax.stats.interval`).
"""

import math
from itertools import combinations

import numpy as np

MOST = 200_000  # labellings: ten runs per side


def labellings(ours: int, theirs: int) -> np.ndarray:
    """Every choice of `ours` runs among all, one per row."""
    if math.comb(ours + theirs, ours) > MOST:
        raise ValueError(f"{ours} and {theirs} runs have too many labellings: ten per side at most")
    rows = [np.isin(np.arange(ours + theirs), x) for x in combinations(range(ours + theirs), ours)]
    return np.array(rows)


def p_value(x: np.ndarray, y: np.ndarray) -> float:
    """The share of labellings whose means differ at least as much, in either direction."""
    pool, first = np.concatenate([x, y]), labellings(len(x), len(y))
    differences = first @ pool / len(x) - ~first @ pool / len(y)
    observed = abs(np.mean(x) - np.mean(y))
    return float(np.mean(np.abs(differences) >= observed - 1e-9 * (1 + np.abs(pool).max())))


def shift_interval(x: np.ndarray, y: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """All d for which the test does not reject that x is distributed as y + d.

    A labelling exchanges k runs of x with k runs of y. After x is shifted by -d, it increases the
    difference exactly if d is above the mean of those runs of x minus the mean of those of y. The
    ends of the interval are therefore order statistics of these differences.
    """
    first = labellings(len(x), len(y))
    leaving, coming = ~first[:, : len(x)], first[:, len(x) :]
    size = leaving.sum(1)
    moved = size > 0  # one labelling exchanges nothing
    limits = np.sort((leaving @ x - coming @ y)[moved] / size[moved])
    cut = math.floor(len(first) * (1 - level) / 2 + 1e-9)
    if cut < 1:
        raise ValueError(f"{len(x)} and {len(y)} runs are too few for an interval at {level:.0%}")
    return float(limits[cut - 1]), float(limits[-cut])
