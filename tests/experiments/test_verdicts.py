"""Sentences, their p-values and the verdicts on them, by hand."""

import math

import numpy as np
import pytest

from tsallax.experiments import exact_tests as tests
from tsallax.experiments import verdicts
from tsallax.experiments.exact_tests import MeanDifference, PValues, Sample, sign_test
from tsallax.experiments.verdicts import (
    EXPLORATORY_SHARES,
    FAMILY,
    HOLDS,
    LEVEL,
    NOT,
    OPEN,
    PRIMARY_SHARES,
    conjunction,
    decide,
    holm,
    scale,
    share,
)


def strata(*values):
    return [np.array(values, float)]


def sample(*values, name="x"):
    return Sample(name, tuple(strata(*values)))


# --- p-values -------------------------------------------------------------------------------------


def test_sign_test_by_hand():
    """5 of 5: 1/32. 4 of 5: (5 + 1)/32. At least 1 of 5 fails: 31/32."""
    assert sign_test(5, 5) == (1 / 32, 1.0)
    assert sign_test(4, 5) == (6 / 32, 31 / 32)
    assert sign_test(0, 10) == (1.0, 1 / 1024)


def test_permutation_test_by_hand():
    """{3, 4} and {1, 2}: of the 6 ways to choose two, this one alone has the largest mean.

    Two such environments have 36 ways. {1, 4} and {2, 3}: the means are 2.5 and 2.5, as with
    {2, 3} and {1, 4}; two ways are above, two below.
    """
    assert tests.permutation_test(strata(3, 4), strata(1, 2)) == (1 / 6, 1.0)
    assert tests.permutation_test(strata(3, 4) * 2, strata(1, 2) * 2) == (1 / 36, 1.0)
    assert tests.permutation_test(strata(1, 4), strata(2, 3)) == (4 / 6, 4 / 6)


def test_samples_of_different_sizes():
    """{5} and {1, 2, 3}: one of 4 ways."""
    assert tests.permutation_test(strata(5), strata(1, 2, 3)) == (1 / 4, 1.0)


def test_permutation_test_keeps_its_level():
    """Under the null hypothesis p <= 0.05 in at most 5 % of samples (and not in none)."""
    draws = np.random.default_rng(0).exponential(size=(1000, 2, 5))
    p = [tests.permutation_test([x], [y]).holds for x, y in draws]
    assert 0.02 < np.mean(np.array(p) <= 0.05) <= 0.065


@pytest.mark.parametrize("environments", [1, 2])
def test_drawn_permutations_agree_with_all_of_them(environments, monkeypatch):
    rng = np.random.default_rng(1)
    n = 8 if environments == 1 else 4
    x = [rng.normal(0.8, 1, n) for _ in range(environments)]
    y = [rng.normal(0.0, 1, n) for _ in range(environments)]
    listed = tests.permutation_test(x, y)
    monkeypatch.setattr(tests, "DRAWS", 4_000)  # of 12,870 or 4,900 ways
    assert tests.permutation_test(x, y) == pytest.approx(listed, abs=0.02)


def test_drawn_p_values_are_never_zero():
    """The way the runs came counts as one of the draws."""
    high, low = [np.arange(10.0) + 100], [np.arange(10.0)]
    assert tests.permutation_test(high, low).holds == 1 / (tests.DRAWS + 1)


def test_many_draws_suffice_for_the_smallest_level():
    """Of C9, whose seven sentences share the level of a late look."""
    assert 7 / (tests.DRAWS + 1) <= LEVEL * min(PRIMARY_SHARES) / FAMILY


A, B = sample(*[0.5] * 5, name="a"), sample(*[0.45] * 5, name="b")


@pytest.mark.parametrize(
    ("sentence", "holds", "fails"),
    [
        (tests.learns(sample(0.9, 0.8, 0.9, 0.7, 1)), 1 / 32, 1),
        (tests.learns(sample(0.9, 0.8, 0.9, 0.7, 0)), 6 / 32, 31 / 32),
        (tests.learns_nothing(sample(0.2, 0.3, 0.5, 0.2, 0.9)), 1, 1 / 32),
        (tests.below(sample(0.2, 0.3, 0.5, 0.2, 0.9), 0.95), 1 / 32, 1),
        (tests.above(sample(0.96, 1, 1, 1, 0.99), 0.95), 1 / 32, 1),
        # 0.05 above: that is above 0, and by less than the margin 0.1.
        (tests.better(A, B), 1 / 252, 1 / 252),
        (tests.better(A, B, margin=0.0), 1 / 252, 1),
        (tests.better(B, A), 1, 1 / 252),
        # 0.05 below: within the margin; 0.2 below is not.
        (tests.not_worse(B, A), 1 / 252, 1),
        (tests.not_worse(sample(*[0.3] * 5), A), 1, 1 / 252),
    ],
)
def test_sentences(sentence, holds, fails):
    assert sentence.p_values() == pytest.approx((holds, fails)), sentence.measured


def test_sentences_say_what_was_measured():
    assert tests.learns(sample(1, 1, 0)).measured == "x learns, above 0.25: 2 of 3 runs"
    assert tests.better(A, B).measured == "a > b: by +0.05"


# --- Corrections ----------------------------------------------------------------------------------


def test_a_conjunction_by_hand():
    """All hold: the largest p. Some part fails: the smallest p, times the number of parts."""
    parts = [PValues(0.01, 0.9), PValues(0.04, 0.02), PValues(0.02, 0.5)]
    assert conjunction(parts) == pytest.approx((0.04, 0.06))
    assert conjunction([PValues(1.0, 0.5)] * 4).fails == 1.0


def test_holm_by_hand():
    """0.01 x 4, then 0.02 x 3 and 0.03 x 2 (not below the one before), then 0.04 x 1."""
    assert holm([0.04, 0.01, 0.03, 0.02], most_true=4) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.6], most_true=2) == [1.0, 1.0]


def test_holm_with_hypotheses_that_exclude_one_another():
    """Of two pairs two are true at most: 0.01 x 2, 0.02 x 2, then 0.3 x 2 and 0.9 x 1."""
    assert holm([0.01, 0.9, 0.3, 0.02], 2) == pytest.approx([0.02, 0.9, 0.6, 0.04])
    pairs = verdicts.correct_for_claims([PValues(0.01, 0.9), PValues(0.3, 0.02)])
    assert pairs == [pytest.approx((0.02, 0.9)), pytest.approx((0.6, 0.04))]


def test_the_shares_of_the_looks_sum_to_one():
    assert sum(PRIMARY_SHARES) == pytest.approx(1)
    assert sum(EXPLORATORY_SHARES) == pytest.approx(1)


def test_the_spending_by_hand():
    """Five seeds are the first look, six to ten the second, thirty and more the last."""
    assert [share(n, primary=True) for n in (3, 5, 6, 8, 10, 11, 30, 50)] == [
        0.1, 0.1, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1
    ]  # fmt: skip
    assert share(5, primary=False) == 0.65
    assert verdicts.correction(10, primary=True) == 24
    with pytest.raises(ValueError, match="positive"):
        share(0, primary=True)


def test_what_the_shares_were_chosen_for():
    """Ten seeds that agree refute one of two parts; five that agree pass a threshold."""
    refuted = conjunction([sign_test(10, 10), sign_test(0, 10)])
    assert decide(scale(refuted, verdicts.correction(10, primary=True))) == NOT
    passed = scale(sign_test(5, 5), verdicts.correction(5, primary=False))
    assert decide(passed) == HOLDS
    assert decide(scale(sign_test(5, 5), verdicts.correction(5, primary=True))) == OPEN


def test_the_union_bound_over_looks_keeps_the_level():
    """A fair coin is judged after each group of seeds; it seems loaded in 5 % of series at most."""
    rng = np.random.default_rng(0)
    series = rng.integers(2, size=(4000, 30)).cumsum(1)
    looks = range(verdicts.GROUP, verdicts.MOST_SEEDS + 1, verdicts.GROUP)
    wrong = np.zeros(len(series), bool)
    for n in looks:
        needed = next(
            k for k in range(n + 2)
            if k > n or sign_test(k, n).holds / share(n, primary=False) <= LEVEL
        )  # fmt: skip
        wrong |= series[:, n - 1] >= needed
    assert 0.03 < wrong.mean() < LEVEL


@pytest.mark.parametrize(
    ("p", "verdict"),
    [
        ((0.01, 1.0), HOLDS), ((1.0, 0.01), NOT), ((0.06, 0.5), OPEN), ((0.05, 1.0), HOLDS),
        ((0.01, 0.01), NOT),  # there, but too small to count
    ],
)  # fmt: skip
def test_verdicts(p, verdict):
    assert decide(PValues(*p)) == verdict


# --- What a verdict depends on, and what it would take --------------------------------------------


def test_a_threshold_that_depends_on_one_run():
    """9 of 9 and 8 of 9: p = 1/512 and 10/512, on either side of 0.05/10. 20 of 20 is safe."""
    nine, twenty = (tests.learns(sample(*[1.0] * n)) for n in (9, 20))
    assert verdicts.depends_on_one_run([nine], factor=10.0)
    assert not verdicts.depends_on_one_run([twenty], factor=10.0)
    assert not verdicts.depends_on_one_run([nine], factor=2.0)


def test_a_comparison_that_depends_on_one_run():
    """Without overlap 5 against 5 has p = 1/252 and 5 against 4 has 1/126."""
    far = tests.better(sample(5, 6, 7, 8, 9), sample(0, 1, 2, 3, 4))
    assert far.p_values().holds == 1 / 252
    assert {p.holds for p in far.nearby()} == {1 / 126}
    assert verdicts.depends_on_one_run([far], factor=10.0)
    assert not verdicts.depends_on_one_run([far], factor=5.0)


def test_a_conjunction_depends_on_its_weakest_part():
    safe, weak = tests.learns(sample(*[1.0] * 20)), tests.learns(sample(*[1.0] * 9))
    assert verdicts.depends_on_one_run([safe, weak], factor=10.0)


@pytest.mark.parametrize(
    ("seeds", "effect", "power"),
    [(5, 1, 0.41), (5, 2, 0.89), (10, 1, 0.68), (10, 2, 0.99), (15, 1, 0.85), (30, 1, 0.99)],
)
def test_the_power_of_a_comparison_is_that_of_the_permutation_test(seeds, effect, power):
    """Of a simulated one-sided permutation test at the level 0.05, in standard deviations."""
    x = np.array([-1.0, 1.0]) / math.sqrt(2)  # variance 1
    found = MeanDifference("", [x + effect], [x]).power(seeds, 0.05)
    assert found.holds == pytest.approx(power, abs=0.015)
    assert found.fails < 0.01


def test_the_power_of_a_threshold_by_hand():
    """At the level 1/32 all of five runs must succeed: 0.8^5."""
    four_of_five = tests.learns(sample(1, 1, 1, 1, 0))
    assert four_of_five.power(5, 1 / 32) == pytest.approx((0.8**5, 0.2**5))
    assert four_of_five.power(4, 1 / 32) == (0, 0)  # 1/16 at best


def test_discreteness_limits_the_power():
    """Five seeds cannot have p below 1/252, whatever the effect."""
    x = np.array([-1.0, 1.0])
    assert MeanDifference("", [x + 99], [x]).power(5, 1 / 300).holds == 0
    assert MeanDifference("", [x + 99], [x]).power(5, 1 / 200).holds > 0.99


def test_seeds_to_decide():
    """All of ten must succeed, 1/1024 <= 0.05 x 0.5/12. To refute one of three takes fifteen."""
    unanimous = tests.learns(sample(*[1.0] * 5))
    assert verdicts.seeds_to_decide([unanimous], primary=True, now=5) == 10
    assert verdicts.seeds_to_decide([unanimous], primary=True, now=10) == 15
    refuted = tests.learns(sample(*[0.0] * 5))
    assert verdicts.seeds_to_decide([refuted] * 3, primary=True, now=5) == 15
    even = tests.learns(sample(1, 0, 1, 0))
    assert verdicts.seeds_to_decide([even], primary=True, now=5) is None
    assert verdicts.seeds_to_decide([unanimous], primary=True, now=30) == 50
    assert verdicts.seeds_to_decide([unanimous], primary=True, now=verdicts.FAR) is None


def test_the_smallest_effects_at_thirty_seeds_that_the_docstring_states():
    x = np.array([-1.0, 1.0]) / math.sqrt(2)

    def effect(level):
        powers = (MeanDifference("", [x + d / 100], [x]).power(30, level).holds for d in range(200))
        return next(d / 100 for d, power in enumerate(powers) if power >= 0.8)

    stated = effect(LEVEL * PRIMARY_SHARES[-1] / FAMILY), effect(LEVEL / 6 / FAMILY)
    for number in stated:
        assert f"{number:.2f}" in verdicts.__doc__, stated
