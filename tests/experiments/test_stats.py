"""Statistics: by hand, against rliable (golden/stats.npz), invariants, coverage, bad input."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import stats as scipy_stats

from tsallax import stats
from tsallax.stats import (
    area_under_curve,
    carry_forward,
    interval,
    iqm,
    mean,
    median,
    normalise,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    resample_indices,
)

with np.load(Path(__file__).parents[1] / "golden" / "stats.npz", allow_pickle=False) as file:
    GOLDEN = dict(file)

NAN = float("nan")
AGGREGATES = (iqm, mean, median, partial(optimality_gap, target=0.5))


def all_aggregates(x):
    return np.stack([f(x) for f in AGGREGATES], axis=-1)


STATISTICS = {
    "aggregates": all_aggregates,
    "improvement": lambda x, y: probability_of_improvement(x, y)[..., None],
    "profile": partial(performance_profile, taus=GOLDEN["taus"]),
}


# By hand


def test_aggregates_by_hand():
    """Runs (1, 10, 3), (2, 0, 5): three tasks with means 1.5, 5, 4.

    Sorted 0 1 2 3 5 10; floor(6/4) = 1 is cut at each end: IQM (1 + 2 + 3 + 5)/4 = 2.75. Mean
    10.5/3 = 3.5, median 4. Short of 4: 3, 0, 1, 2, 4, 0, so the gap is 10/6.
    """
    scores = [[1, 10, 3], [2, 0, 5]]
    assert iqm(scores) == 2.75
    assert mean(scores) == 3.5
    assert median(scores) == 4
    assert optimality_gap(scores, target=4.0) == pytest.approx(10 / 6, abs=1e-15)


def test_fewer_than_four_scores_are_all_kept():
    assert iqm([[1.0, 2.0, 6.0]]) == 3


def test_normalise_by_hand():
    """(3 - 1)/(5 - 1) = 1/2 and (-2 - 0)/(-4 - 0) = 1/2; (9 - 1)/4 = 2, (0 - 0)/-4 = 0."""
    out = normalise([[3, -2], [9, 0]], random=[1, 0], reference=[5, -4])
    np.testing.assert_array_equal(out, [[0.5, 0.5], [2, 0]])
    np.testing.assert_array_equal(normalise([[3.0]], random=1.0, reference=5.0), [[0.5]])


def test_probability_of_improvement_by_hand():
    """Task 1: of 2 x 3 pairs of (1, 3) and (0, 1, 2), wins 1 + 3, one tie: 4.5/6.

    Task 2: (5, 5) and (5, 6, 7), no win, two ties: 1/6. Mean 5.5/12.
    """
    value = probability_of_improvement([[1, 5], [3, 5]], [[0, 5], [1, 6], [2, 7]])
    assert value == pytest.approx(5.5 / 12, abs=1e-15)


def test_profile_by_hand():
    """Scores 0, 1, 1, 2: all are above -1, three above 0, one above 1 (ties not), none above 2."""
    profile = performance_profile([[0, 1], [1, 2]], [-1, 0, 1, 2])
    np.testing.assert_array_equal(profile, [1, 0.75, 0.25, 0])


def test_interval_by_hand():
    """Runs 0 and 4 of one task; resamples (0, 0), (0, 1), (1, 0), (1, 1) have the means 0, 2, 2, 4.

    The middle half, interpolated linearly: the quarter point of 0 2 2 4 lies at rank 0.75, which
    is 1.5; the other by symmetry at 2.5.
    """
    index = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[:, :, None]
    assert interval(mean, [[0], [4]], level=0.5, indices=[index]) == (2, 1.5, 2.5)


def test_area_by_hand():
    """NaN, 2, NaN, 6 is filled to 2, 2, 2, 6, of mean 3.

    At steps 0, 1, 2, 6 the trapezoids are 2 + 2 + 4 (2 + 6)/2 = 20, over 6 steps.
    """
    curve = [NAN, 2, NAN, 6]
    np.testing.assert_array_equal(carry_forward(curve), [2, 2, 2, 6])
    assert area_under_curve(curve) == 3
    assert area_under_curve(curve, [0, 1, 2, 6]) == pytest.approx(20 / 6, abs=1e-15)


def test_areas_of_a_batch_are_scores():
    curves = np.array([[[1, NAN, 3], [NAN, NAN, 5]], [[NAN, 0, NAN], [4, NAN, 1]]])
    np.testing.assert_allclose(area_under_curve(curves), [[5 / 3, 5], [0, 3]], rtol=1e-15)
    np.testing.assert_allclose(area_under_curve(curves, [1, 2, 3]), [[1.5, 5], [0, 3.25]])


# Against rliable


@pytest.mark.parametrize("level", ["95", "80"])
@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("case", ["few", "odd", "one_task", "fine"])
def test_rliable(case, name, level):
    key = f"{case}/{name}/{level}"
    samples = [GOLDEN[f"{case}/{i}"] for i in ("xy" if name == "improvement" else "x")]
    indices = [GOLDEN[f"{key}/indices{i}"] for i in range(len(samples))]
    found = interval(STATISTICS[name], *samples, level=int(level) / 100, indices=indices)
    np.testing.assert_allclose(found.value, GOLDEN[f"{key}/value"], rtol=0, atol=1e-12)
    ends = np.stack([found.low, found.high])
    np.testing.assert_allclose(ends, GOLDEN[f"{key}/interval"], rtol=0, atol=1e-12)


def test_golden_scores_have_ties():
    """Else half of the Mann-Whitney rule would not be seen."""
    for case in ("odd", "one_task"):
        x, y = GOLDEN[f"{case}/x"], GOLDEN[f"{case}/y"]
        assert np.any(x[:, None] == y)


# Invariants

NUMBERS = st.integers(-50, 50).map(lambda i: i / 8)  # ties, and sums without rounding
SCORES = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=NUMBERS)
PAIRS = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3)).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n[0], n[2]), elements=NUMBERS),
        arrays(np.float64, (n[1], n[2]), elements=NUMBERS),
    )
)


@given(SCORES, st.floats(-10, 10), st.floats(0.1, 10))
def test_aggregates_move_with_the_scores(x, shift, scale):
    for statistic in (iqm, mean, median):
        value = statistic(x)
        assert x.min() - 1e-12 <= value <= x.max() + 1e-12
        assert statistic(scale * x + shift) == pytest.approx(scale * value + shift, abs=1e-11)


@given(SCORES, st.randoms(use_true_random=False))
def test_iqm_ignores_order_and_the_outer_quarters(x, random):
    flat = np.sort(x.ravel())
    shuffled = list(flat)
    random.shuffle(shuffled)
    assert iqm(np.reshape(shuffled, x.shape)) == iqm(x)
    cut = flat.size // 4
    flat[:cut] -= 1e6
    flat[flat.size - cut :] += 1e6
    assert iqm(flat.reshape(x.shape)) == iqm(x)


@given(SCORES)
def test_iqm_is_scipys_trimmed_mean(x):
    assert iqm(x) == pytest.approx(scipy_stats.trim_mean(x, 0.25, axis=None), abs=1e-12)


@given(PAIRS)
def test_improvement_is_complementary(pair):
    x, y = pair
    assert probability_of_improvement(x, y) + probability_of_improvement(y, x) == pytest.approx(1)
    assert probability_of_improvement(x, x) == 0.5
    assert probability_of_improvement(x, x - 1000) == 1
    # Only the order counts.
    assert probability_of_improvement(x**3, y**3) == probability_of_improvement(x, y)


@given(SCORES)
def test_profile_falls_from_one_to_zero(x):
    taus = np.linspace(-7, 7, 29)
    profile = performance_profile(x, taus)
    assert np.all(np.diff(profile) <= 0)
    assert profile[0] == 1
    assert profile[-1] == 0


@given(SCORES)
def test_the_area_over_the_profile_is_the_gap(x):
    """The area over the profile up to tau = target is the optimality gap."""
    taus = np.arange(-7, 2, 1 / 8)  # scores are multiples of 1/8: the profile is a staircase
    profile = performance_profile(x, taus)[taus < 1]
    assert optimality_gap(x) == pytest.approx((1 - profile).sum() / 8, abs=1e-12)


def test_resampling_stays_within_tasks():
    """The score tells its task, so a resample that crosses tasks is seen; and tasks differ."""
    x = np.arange(5)[:, None] + 100 * np.arange(3)
    seen = []

    def note(scores):
        seen.append(scores)
        return mean(scores)

    interval(note, x, resamples=200)
    resampled = np.concatenate(seen[1:]).astype(int)
    assert resampled.shape == (200, 5, 3)
    np.testing.assert_array_equal(resampled // 100, np.broadcast_to(np.arange(3), (200, 5, 3)))
    np.testing.assert_array_equal(resampled % 100, resample_indices(5, 3, 200))
    runs = resampled % 100
    assert abs(np.corrcoef(runs[..., 0].ravel(), runs[..., 1].ravel())[0, 1]) < 0.1
    assert np.abs(np.bincount(runs.ravel()) / 3000 - 0.2).max() < 0.03


def test_samples_are_resampled_on_their_own():
    x = np.random.default_rng(1).normal(size=(8, 2))

    def difference(x, y):
        return mean(x) - mean(y)

    alone = interval(difference, x, x, resamples=500)
    assert alone.low < -0.1 < 0.1 < alone.high
    index = resample_indices(8, 2, 500)
    assert interval(difference, x, x, indices=[index, index]) == (0, 0, 0)


def test_seeds_repeat_and_differ():
    x = np.random.default_rng(2).normal(size=(6, 3))
    first = interval(iqm, x, resamples=300)
    assert first == interval(iqm, x, resamples=300, seed=0)
    assert first != interval(iqm, x, resamples=300, seed=1)
    generator = np.random.default_rng(0)
    assert first == interval(iqm, x, resamples=300, seed=generator)
    assert first != interval(iqm, x, resamples=300, seed=generator)  # it moved on
    assert first.low < first.value < first.high
    wide = interval(iqm, x, resamples=300, level=0.99)
    assert wide.low < first.low < first.high < wide.high


@pytest.mark.parametrize("name", STATISTICS)
def test_a_batch_is_a_loop(name, monkeypatch):
    """Axes in front are looped over; and blocks of resamples change nothing."""
    generator = np.random.default_rng(3)
    samples = [generator.normal(size=(4, 6, 2)), generator.normal(size=(4, 5, 2))]
    samples = samples if name == "improvement" else samples[:1]
    statistic = STATISTICS[name]
    whole = interval(statistic, *samples, resamples=100)
    for i in range(4):
        one = interval(statistic, *(x[i] for x in samples), resamples=100)
        for a, b in zip(whole, one, strict=True):
            np.testing.assert_allclose(np.asarray(a)[i], b, rtol=0, atol=1e-14)
    monkeypatch.setattr(stats, "_BLOCK", 7 * 4 * 6 * 2)
    for a, b in zip(whole, interval(statistic, *samples, resamples=100), strict=True):
        np.testing.assert_array_equal(a, b)


# Coverage


@pytest.mark.parametrize(("runs", "tasks"), [(20, 1), (5, 1), (5, 8)])
def test_coverage(runs, tasks):
    """600 experiments of normal runs with the mean 0 in each task: how often the interval holds 0.

    The resamples' variance is (n - 1)/n of the unbiased one, which has tasks (n - 1) degrees of
    freedom; so the coverage is about P(|t| <= 1.96 sqrt((n - 1)/n)). It is 0.93, 0.85 and 0.91;
    three standard errors of the count are 0.03 to 0.045.
    """
    experiments = 600
    x = np.random.default_rng(4).normal(size=(experiments, runs, tasks))
    _, low, high = interval(mean, x, resamples=500)
    covered = np.mean((np.asarray(low) <= 0) & (np.asarray(high) >= 0))
    reach = scipy_stats.norm.ppf(0.975) * np.sqrt((runs - 1) / runs)
    expected = 1 - 2 * scipy_stats.t.sf(reach, tasks * (runs - 1))
    assert abs(covered - expected) < 3 * np.sqrt(expected * (1 - expected) / experiments)


# Bad input


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: iqm([1.0, 2.0]), r"axes \(..., runs, tasks\), not shape \(2,\)"),
        (lambda: mean(np.array(3.0)), r"axes \(..., runs, tasks\), not shape \(\)"),
        (lambda: median(np.zeros((0, 3))), r"scores are empty: shape \(0, 3\)"),
        (lambda: iqm(np.zeros((3, 0))), "scores are empty"),
        (lambda: iqm([[1.0, NAN], [np.inf, 2.0]]), "must be finite: 2 of 4 are NaN or infinite"),
        (lambda: iqm([["a", "b"]]), "must be an array of numbers"),
        (lambda: iqm([[1.0, 2.0], [3.0]]), "must be an array of numbers"),
        (lambda: normalise([[1.0]], 2.0, 2.0), "must differ in every task"),
        (lambda: normalise([[1.0]], [0.0, 1.0], 2.0), "random must be one finite number"),
        (lambda: normalise([[1.0]], 0.0, NAN), "reference must be one finite number"),
        (lambda: probability_of_improvement([[1.0]], [[1.0, 2.0]]), "x has 1 tasks and y has 2"),
        (lambda: probability_of_improvement([[1.0]], [[NAN]]), "y must be finite"),
        (lambda: performance_profile([[1.0]], []), "taus must be a list"),
        (lambda: performance_profile([[1.0]], [[1.0]]), "taus must be a list"),
        (lambda: performance_profile([[1.0]], [NAN]), "taus must be a list"),
        (lambda: interval(iqm), "needs scores"),
        (lambda: interval(iqm, [[1.0, 2.0]]), "one run, whose only resample is itself"),
        (
            lambda: interval(probability_of_improvement, [[1.0], [2.0]], [[1.0]]),
            "sample 2 have one run",
        ),
        (lambda: interval(iqm, [[1.0], [2.0]], level=1.0), "level must lie between 0 and 1"),
        (lambda: interval(iqm, [[1.0], [2.0]], level=NAN), "level must lie between 0 and 1"),
        (lambda: interval(iqm, [[1.0], [2.0]], resamples=0), "resamples must be positive"),
        (lambda: interval(np.mean, [[1.0], [2.0]]), "statistic must keep axes in front"),
        (lambda: interval(iqm, [[1.0], [2.0]], indices=[]), "0 arrays for 1 samples"),
        (
            lambda: interval(iqm, [[1.0], [2.0]], indices=[np.zeros((9, 1, 2), int)]),
            r"shape \(resamples, 2, 1\)",
        ),
        (
            lambda: interval(iqm, [[1.0], [2.0]], indices=[np.zeros((0, 2, 1), int)]),
            "at least one",
        ),
        (
            lambda: interval(iqm, [[1.0], [2.0]], indices=[np.full((9, 2, 1), 2)]),
            "run numbers from 0 to 1",
        ),
        (
            lambda: interval(iqm, [[1.0], [2.0]], indices=[np.full((9, 2, 1), -1)]),
            "run numbers from 0 to 1",
        ),
        (lambda: area_under_curve([]), r"axes \(..., iterations\)"),
        (lambda: area_under_curve(np.array(1.0)), r"axes \(..., iterations\)"),
        (lambda: area_under_curve([[1.0, 2.0], [NAN, NAN]]), "no finite value at all"),
        (lambda: area_under_curve([1.0, np.inf]), "must not be infinite"),
        (lambda: area_under_curve([1.0, 2.0], [1.0]), "one for each of the 2 iterations"),
        (lambda: area_under_curve([1.0], [1.0]), "at least two"),
        (lambda: area_under_curve([1.0, 2.0], [2.0, 2.0]), "finite and increase"),
        (lambda: area_under_curve([1.0, 2.0], [1.0, NAN]), "finite and increase"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_one_run_has_values_but_no_interval():
    assert iqm([[1.0, 2.0]]) == 1.5
    assert probability_of_improvement([[1.0]], [[0.0]]) == 1


def test_no_jax():
    """Statistics of stored results start at once: jax takes a second or more to import."""
    code = "import sys, tsallax; tsallax.stats.iqm([[1, 2]]); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
