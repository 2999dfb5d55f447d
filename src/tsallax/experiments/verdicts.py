"""What a few seeds allow to say: *holds*, *does not*, or *cannot say*.

Scores are put on the scale of their environment, 0 for random actions and 1 for solved, so that
environments can be taken together. The tests are exact at any number of seeds: a sign test against
a threshold, and a permutation test between two samples within each environment, for samples that
differ by a shift alone. Both can fail for lack of seeds, and then nothing is said: five seeds
against a threshold must all agree (p = 1/32).
"""

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

HOLDS, NOT, OPEN = "holds", "does not", "cannot say"
LEVEL = 0.05
LEARNT = 0.25  # of the way from random actions to solved, at least
NOTHING = 0.1  # at most; and what counts as no difference
EXACT = 20_000  # permutations, beyond which they are drawn

Scores = Sequence[np.ndarray]  # of each environment (stratum), one number a seed


class Check(NamedTuple):
    """One sentence of a claim, and what became of it."""

    verdict: str
    text: str


def learns(name: str, scores: Scores) -> Check:
    """More than LEARNT of the way, in most runs."""
    return _most(f"{name} learns, above {LEARNT:g}", np.concatenate(scores) > LEARNT)


def fails(name: str, scores: Scores) -> Check:
    """Less than NOTHING of the way, in most runs."""
    return _most(f"{name} learns nothing, below {NOTHING:g}", np.concatenate(scores) < NOTHING)


def below(name: str, scores: Scores, bound: float) -> Check:
    return _most(f"{name} stays below {bound:g}", np.concatenate(scores) < bound)


def _most(text: str, success: np.ndarray) -> Check:
    p, other = sign_test(success)
    verdict = HOLDS if p <= LEVEL else NOT if other <= LEVEL else OPEN
    return Check(verdict, f"{text}: {np.sum(success)} of {len(success)} runs")


def better(names: tuple[str, str], x: Scores, y: Scores, margin: float = NOTHING) -> Check:
    """The first above the second; not so if below, or surely above by no more than the margin."""
    more, less, difference = compare(x, y)
    small = less <= LEVEL or compare([a - margin for a in x], y)[1] <= LEVEL
    verdict = NOT if small else HOLDS if more <= LEVEL else OPEN
    return Check(verdict, f"{names[0]} > {names[1]}: by {_signed(difference)}, p = {more:.2g}")


def not_worse(names: tuple[str, str], x: Scores, y: Scores) -> Check:
    """The first at least the second, but for the margin."""
    difference = compare(x, y)[2]
    more, less, _ = compare([a + NOTHING for a in x], y)
    verdict = HOLDS if more <= LEVEL else NOT if less <= LEVEL else OPEN
    text = f"{names[0]} >= {names[1]} - {NOTHING:g}: by {_signed(difference)}, p = {more:.2g}"
    return Check(verdict, text)


def alike(names: tuple[str, str], x: Scores, y: Scores) -> Check:
    """Neither better than the other by more than the margin."""
    verdict = together([not_worse(names, x, y), not_worse(names, y, x)])
    difference = compare(x, y)[2]
    return Check(verdict, f"{names[0]} and {names[1]} alike within {NOTHING:g}: {difference:+.2f}")


def together(checks: Sequence[Check]) -> str:
    """A claim holds if all of it holds, and does not if a part of it does not."""
    found = {check.verdict for check in checks}
    return NOT if NOT in found else HOLDS if found == {HOLDS} else OPEN


def sign_test(success: np.ndarray) -> tuple[float, float]:
    """One-sided p-values for most being true, and for most being false."""
    n, k = len(success), int(np.sum(success))
    tail = [sum(math.comb(n, i) for i in range(m, n + 1)) / 2**n for m in (k, n - k)]
    return tail[0], tail[1]


def compare(x: Scores, y: Scores) -> tuple[float, float, float]:
    """One-sided p-values for x above and for x below y, and the mean difference of the strata.

    The test permutes runs between the two samples within each stratum.
    """
    strata = [_differences(a, b) for a, b in zip(x, y, strict=True)]
    observed = float(np.mean([d[0] for d in strata]))
    if math.prod(len(d) for d in strata) <= EXACT:
        every = np.array([np.mean(choice) for choice in product(*strata)])
    else:
        draw = np.random.default_rng(0)
        drawn = np.mean([draw.choice(d, EXACT) for d in strata], 0)
        every = np.concatenate([[observed], drawn])
    tiny = 1e-12 * max(1.0, float(np.max(np.abs(every))))
    return (
        float(np.mean(every >= observed - tiny)),
        float(np.mean(every <= observed + tiny)),
        observed,
    )


def _differences(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """mean(x) - mean(y) for every way to share the runs out, as they are first."""
    both, n = np.concatenate([x, y]), len(x)
    ways = math.comb(len(both), n)
    if ways <= EXACT:
        chosen = np.array(list(combinations(range(len(both)), n)))
    else:
        rng = np.random.default_rng(0)
        drawn = np.argsort(rng.random((EXACT, len(both))), axis=1)[:, :n]
        chosen = np.concatenate([np.arange(n)[None], drawn])
    sums = both[chosen].sum(1)
    return sums / n - (both.sum() - sums) / (len(both) - n)


def _signed(x: float) -> str:
    return f"{x:+.2f}" if abs(x) < 1e4 else f"{x:+.1e}"
