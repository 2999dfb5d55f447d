"""From p-values to verdicts: *holds*, *does not hold* or *cannot say*, at one stated error.

The error is the probability that any of the claims C1 to C12 gets a false verdict under its
primary reading, over all of its looks at a growing number of seeds. It is at most LEVEL. Three
corrections keep it, and each rests on a bound that needs no independence:

**Parts of a claim.** A claim holds if all its sentences do, so its p-value is the largest of
theirs and needs no correction (an intersection-union test, Berger 1982). It does not hold if one
of its sentences does not; that p-value is the smallest of theirs times their number (Bonferroni,
the first step of Holm's procedure).

**Claims.** Holm's procedure (1979) over both p-values of every claim. A claim cannot be both true
and false, so at most one of the two null hypotheses per claim is true, and no step has to divide
the level by more than the number of claims (Shaffer 1986).

**Looks.** Seeds are added in groups of five, up to thirty, and a reading may be judged after each
group. The k-th look spends a share of the level, PRIMARY_SHARES[k - 1]. The shares sum to one, so
the union bound over the looks keeps the level whenever one stops. Seeds can always be added, so
the correction is always applied, also to a number of seeds that was fixed in advance.

The shares suit discrete tests, whose smallest p-value with n seeds is 2^-n against a threshold and
1/C(2n, n) between two samples. A primary reading should be decided with ten seeds, so half of its
level is spent there: ten seeds that agree must be able to refute one of two sentences,
2/1024 <= 0.05 share/12. The p-values of the later looks fall so fast that a share of one tenth
costs them little: at thirty seeds the effect that is found with a power of 80 % is 1.14 standard
deviations, and 1.10 with equal shares.

Readings that are not primary are *exploratory*: each has the whole level, corrected for its parts
and its looks but not for the other readings. Nearly all of them stay at five seeds, so most of
their level is spent on the first look: five seeds that agree pass a threshold, 1/32 <= 0.05 share.

A sequential permutation test of the joint law of all looks (AdaStop, Mathieu et al. 2024) would
spend less than the union bound, but does not support margins, thresholds and conjunctions.
"""

from collections.abc import Sequence

import numpy as np

from tsallax.experiments.exact_tests import PValues, Sentence

HOLDS, NOT, OPEN = "holds", "does not hold", "cannot say"
LEVEL = 0.05
FEWEST_SEEDS = 5  # with fewer in any sample there is no verdict
GROUP = 5  # seeds that are added at a time
PRIMARY_SHARES = (0.1, 0.5, 0.1, 0.1, 0.1, 0.1)  # of the level, for 5, 10, ..., 30 seeds
EXPLORATORY_SHARES = (0.65, 0.07, 0.07, 0.07, 0.07, 0.07)
MOST_SEEDS = GROUP * len(PRIMARY_SHARES)
FAR = 1000  # largest number of seeds considered for a verdict
FAMILY = 12  # claims that share the level, C1 to C12
POWER = 0.8


def conjunction(parts: Sequence[PValues]) -> PValues:
    """The p-values of "all of these"."""
    return PValues(
        max(part.holds for part in parts), min(1.0, len(parts) * min(part.fails for part in parts))
    )


def share(seeds: int, primary: bool) -> float:
    """The share of the level for a look at `seeds` seeds.

    A number between two looks belongs to the later one, which then cannot be repeated.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be positive, not {seeds}")
    shares = PRIMARY_SHARES if primary else EXPLORATORY_SHARES
    return shares[min(-(-seeds // GROUP), len(shares)) - 1]


def correction(seeds: int, primary: bool) -> float:
    """The factor of a reading's p-values, for its looks and the other claims."""
    return (FAMILY if primary else 1) / share(seeds, primary)


def holm(p_values: Sequence[float], most_true: int) -> list[float]:
    """Adjusted p-values: a hypothesis is rejected at a level if its own is at most the level.

    This is Holm's step-down procedure. After r rejections it divides the level by the number of
    hypotheses that can still all be true: those that are left, at most `most_true`.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.minimum(len(p_values) - np.arange(len(p_values)), most_true)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    return np.minimum(adjusted, 1.0).tolist()


def correct_for_claims(p_values: Sequence[PValues]) -> list[PValues]:
    """The p-values of several claims, adjusted for one another by Holm's procedure."""
    adjusted = holm([p for pair in p_values for p in pair], most_true=len(p_values))
    return [PValues(*adjusted[i : i + 2]) for i in range(0, len(adjusted), 2)]


def scale(p: PValues, factor: float) -> PValues:
    return PValues(min(1.0, p.holds * factor), min(1.0, p.fails * factor))


def decide(p: PValues) -> str:
    """The verdict of corrected p-values.

    If both are small, the difference exists but is below the margin: the claim does not hold.
    """
    return NOT if p.fails <= LEVEL else HOLDS if p.holds <= LEVEL else OPEN


def depends_on_one_run(sentences: Sequence[Sentence], factor: float) -> bool:
    """Returns whether the verdict depends on one run of one sentence; `factor` is the correction.

    In a threshold test the run is moved to the other side of the threshold, in a comparison it is
    left out.
    """
    parts = [sentence.p_values() for sentence in sentences]
    verdict = decide(scale(conjunction(parts), factor))
    return any(
        decide(scale(conjunction([*parts[:i], other, *parts[i + 1 :]]), factor)) != verdict
        for i, sentence in enumerate(sentences)
        for other in sentence.nearby()
    )


def seeds_to_decide(sentences: Sequence[Sentence], primary: bool, now: int) -> int | None:
    """The number of seeds per sample, above `now`, with which a verdict has a power of POWER.

    The effects and spreads are the observed ones, so this is a rough guide. Beyond MOST_SEEDS no
    look is planned: the number is then computed as if the last look were there. None if more than
    FAR seeds are needed.
    """
    planned, beyond = range(GROUP, MOST_SEEDS + 1, GROUP), range(50, FAR + 1, 50)
    for seeds in (n for n in (*planned, *beyond) if n > now):
        level = LEVEL / correction(seeds, primary)
        holds = np.prod([s.power(seeds, level).holds for s in sentences])
        fails = max(s.power(seeds, level / len(sentences)).fails for s in sentences)
        if max(holds, fails) >= POWER:
            return seeds
    return None
