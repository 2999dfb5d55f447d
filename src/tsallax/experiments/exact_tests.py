"""Sentences about a few runs, each with exact tests of it and of its contrary.

A sentence has two p-values: one is small if the runs support it, the other if they refute it.
`tsallax.experiments.verdicts` decides, for all sentences of all claims together.

Two tests are used, and both keep their level at any number of seeds. A sign test is used for
whether most runs lie on one side of a bound. A permutation test, which permutes the runs within
each environment, is used for whether one sample of runs has a higher mean than another; it is exact
for samples that differ only by a shift.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

LEARNED = 0.25  # least score that counts as learned: 0 is random actions, 1 is solved
NOTHING = 0.1  # largest score that counts as nothing learned, and difference that counts as none
SOLVED = 0.95  # least score that counts as solved: training returns include exploratory actions
DRAWS = 20_000  # if there are more permutations than this, they are drawn at random

Strata = Sequence[np.ndarray]  # one array per environment, with one number per seed


class PValues(NamedTuple):
    """The two p-values of a sentence."""

    holds: float  # of the null hypothesis that the sentence is false: small if runs support it
    fails: float  # of the null hypothesis that the sentence is true: small if runs refute it


class Sample(NamedTuple):
    """The scores of one algorithm's runs; several environments are strata of one sample."""

    name: str
    strata: tuple[np.ndarray, ...]
    steps: int = 0  # length of the runs
    hours: float = 0.0  # core hours for one more seed, on all environments together

    @property
    def seeds(self) -> int:
        return min(map(len, self.strata))

    @property
    def mean(self) -> float:
        return float(np.mean([stratum.mean() for stratum in self.strata]))


class MostRuns(NamedTuple):
    """A sentence: most runs are on the named side of a bound."""

    text: str
    success: np.ndarray  # one truth value per run
    environments: int = 1

    @property
    def measured(self) -> str:
        """The sentence with what was measured for it."""
        return f"{self.text}: {np.sum(self.success)} of {len(self.success)} runs"

    def p_values(self) -> PValues:
        return sign_test(int(np.sum(self.success)), len(self.success))

    def nearby(self) -> Iterator[PValues]:
        """The p-values if one run were on the other side of the bound."""
        n, k = len(self.success), int(np.sum(self.success))
        yield from (sign_test(i, n) for i in (k - 1, k + 1) if 0 <= i <= n)

    def power(self, seeds: int, level: float) -> PValues:
        """The probability that each p-value is at most `level` with `seeds` seeds per sample.

        The probability of success is taken to be the observed frequency.
        """
        n = seeds * self.environments
        chance = float(np.mean(self.success))
        needed = bisect_left(range(n + 1), True, key=lambda k: _tail(k, n, 0.5) <= level)
        return PValues(_tail(needed, n, chance), _tail(needed, n, 1 - chance))


class MeanDifference(NamedTuple):
    """A sentence: the mean of x exceeds that of y by more than `above`.

    It does not hold if the difference is less than `below`. If that is larger than `above`, either
    answer is right for a difference between the two.
    """

    text: str
    x: Strata
    y: Strata
    above: float = 0.0
    below: float = 0.0

    @property
    def _pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(zip(self.x, self.y, strict=True))

    @property
    def difference(self) -> float:
        return float(np.mean([a.mean() - b.mean() for a, b in self._pairs]))

    @property
    def measured(self) -> str:
        return f"{self.text}: by {self.difference:+.2f}"

    def p_values(self) -> PValues:
        higher, lower = permutation_test([a - self.above for a in self.x], self.y)
        if self.below != self.above:
            lower = permutation_test([a - self.below for a in self.x], self.y)[1]
        return PValues(higher, lower)

    def nearby(self) -> Iterator[PValues]:
        """The p-values if one run were left out."""
        for x in _without_one(self.x):
            yield self._replace(x=x).p_values()
        for y in _without_one(self.y):
            yield self._replace(y=y).p_values()

    def power(self, seeds: int, level: float) -> PValues:
        """The probability that each p-value is at most `level` with `seeds` seeds per sample.

        Effect and spread are taken to be the observed ones. The power is that of the t-test, which
        the permutation test has, too, except for its discreteness.
        """
        environments = len(self.x)
        smallest = max(1 / math.comb(2 * seeds, seeds) ** environments, 1 / (DRAWS + 1))
        if smallest > level:
            return PValues(0.0, 0.0)
        variances = [np.var(a, ddof=1) + np.var(b, ddof=1) for a, b in self._pairs]
        error = math.sqrt(sum(variances) / seeds) / environments
        freedom = environments * (2 * seeds - 2)
        return PValues(
            _power_of_t(self.difference - self.above, error, freedom, level),
            _power_of_t(self.below - self.difference, error, freedom, level),
        )


Sentence = MostRuns | MeanDifference


# The sentences of the claims


def learns(sample: Sample) -> MostRuns:
    return above(sample, LEARNED, "learns, above")


def above(sample: Sample, bound: float, words: str = "stays above") -> MostRuns:
    success = np.concatenate(sample.strata) > bound
    return MostRuns(f"{sample.name} {words} {bound:g}", success, len(sample.strata))


def learns_nothing(sample: Sample) -> MostRuns:
    return below(sample, NOTHING, "learns nothing, below")


def below(sample: Sample, bound: float, words: str = "stays below") -> MostRuns:
    success = np.concatenate(sample.strata) < bound
    return MostRuns(f"{sample.name} {words} {bound:g}", success, len(sample.strata))


def better(x: Sample, y: Sample, margin: float = NOTHING) -> MeanDifference:
    """The sentence that x is above y; false if it is below, or above by less than the margin."""
    return MeanDifference(f"{x.name} > {y.name}", x.strata, y.strata, 0.0, margin)


def not_worse(x: Sample, y: Sample) -> MeanDifference:
    """The sentence that x is above y, or below it by less than the margin."""
    text = f"{x.name} >= {y.name} - {NOTHING:g}"
    return MeanDifference(text, x.strata, y.strata, -NOTHING, -NOTHING)


# The tests


def sign_test(successes: int, runs: int) -> PValues:
    """Tests whether a run is more likely to succeed than to fail, and whether it is less likely.

    Runs of several environments may have different probabilities p_i. Their mean is then compared
    with 1/2, and the binomial tail bounds the true one (Hoeffding 1956), beyond the mean plus one.
    """

    def tail(k: int) -> float:
        return sum(math.comb(runs, i) for i in range(max(k, 0), runs + 1)) / 2**runs

    return PValues(tail(successes), tail(runs - successes))


def _tail(k: int, n: int, chance: float) -> float:
    """The probability of k or more successes of n, in logarithms, as n may be in the thousands."""
    if k <= 0 or k > n or chance in (0, 1):
        return float(k <= 0 or (k <= n and chance == 1))
    success, failure, every = math.log(chance), math.log1p(-chance), math.lgamma(n + 1)
    total = math.fsum(
        math.exp(
            every - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * success + (n - i) * failure
        )
        for i in range(k, n + 1)
    )
    return min(1.0, total)


def permutation_test(x: Strata, y: Strata) -> PValues:
    """Tests whether the mean of x is above that of y, and whether below, averaged over strata.

    All assignments of the runs of each stratum to the two samples are compared with the observed
    one. If there are too many, some are drawn; the observed one counts among them, which keeps the
    level exact.
    """
    pairs = list(zip(x, y, strict=True))
    listed = math.prod(math.comb(len(a) + len(b), len(a)) for a, b in pairs) <= DRAWS
    parts = [
        _differences(a, b, None if listed else stratum) for stratum, (a, b) in enumerate(pairs)
    ]
    every = reduce(np.add.outer, parts).ravel() if listed else np.sum(parts, 0)
    rounding = 1e-12 * max(1.0, float(np.max(np.abs(every))))
    return PValues(
        float(np.mean(every >= every[0] - rounding)),
        float(np.mean(every <= every[0] + rounding)),
    )


def _differences(x: np.ndarray, y: np.ndarray, stratum: int | None) -> np.ndarray:
    """mean(x) - mean(y) for the assignments of the runs; the observed one is the first."""
    both = np.concatenate([x, y])
    in_x = _assignments(len(x), len(y), stratum) @ both
    return in_x / len(x) - (both.sum() - in_x) / len(y)


@lru_cache(maxsize=64)
def _assignments(n: int, m: int, stratum: int | None) -> np.ndarray:
    """One row per assignment: 1 for the n runs in the first sample, 0 for the m others.

    All assignments are listed or, if a stratum is given, drawn: each stratum has its own draws.
    """
    if stratum is None:
        ways = np.zeros((math.comb(n + m, n), n + m))
        np.put_along_axis(ways, np.array(list(combinations(range(n + m), n))), 1.0, 1)
        return ways
    order = np.random.default_rng(stratum).random((DRAWS, n + m)).argsort(1)
    return np.concatenate([np.arange(n + m)[None] < n, order < n]).astype(float)


def _without_one(strata: Strata) -> Iterator[Strata]:
    for i, stratum in enumerate(strata):
        for run in range(len(stratum)):
            yield [*strata[:i], np.delete(stratum, run), *strata[i + 1 :]]


def _power_of_t(effect: float, error: float, freedom: int, level: float) -> float:
    """P(t > critical value), by the normal approximation of the noncentral t.

    Abramowitz and Stegun 26.7.8 (solved for the critical value) and 26.7.10.
    """
    if error == 0:
        return float(effect > 0)
    z, scale = NormalDist().inv_cdf(1 - level), 1 - 1 / (4 * freedom)
    square = scale**2 - z**2 / (2 * freedom)
    if square <= 0:
        return 0.0
    critical = z / math.sqrt(square)
    spread = math.sqrt(1 + critical**2 / (2 * freedom))
    return NormalDist().cdf((effect / error - critical * scale) / spread)
