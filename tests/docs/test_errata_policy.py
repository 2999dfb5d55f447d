"""Sections 1 to 3 and 9 of docs/errata.md: the approximate policy, and q <= 0."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.errata import Q_ROWS, close, paper, printed, right, weight
from tsallax.policies import (
    greedy,
    normalise,
    sparsemax,
    tsallis_entropy,
    tsallis_policy,
)

# 1. The constant of the normalisation ------------------------------------------------------------


def test_1_the_right_constant_gives_sparsemax_back_at_two():
    for q in (1.999, 2.001):
        close(paper(Q_ROWS, q), sparsemax(Q_ROWS), 0.02)


def test_1_the_printed_constant_has_a_pole_at_two():
    with pytest.raises(ZeroDivisionError):
        printed(2)
    assert not paper(Q_ROWS, 1.999, method="printed").any()
    assert paper(Q_ROWS, 2.001, method="printed").sum(-1).min() > 1000


def test_1_the_printed_constant_leaves_an_empty_support_at_three_halves():
    assert not paper(Q_ROWS, 1.5, method="printed").any()
    assert paper(Q_ROWS, 1.5).any(-1).all()


@pytest.mark.parametrize("q", [1.5, 2.5, 3.0, 4.0])
def test_1_only_the_right_constant_makes_the_expansion_sum_to_one(q):
    z, kq = np.array([0.3, 0.2, -0.1]), q / 2

    def expansion(constant):
        psi = (z.sum() - kq) / len(z) + constant
        return np.sum(1 + ((z - psi) * (q - 1) / kq - 1) / (q - 1))

    close(expansion(right(q)), 1)
    close(expansion(printed(q)), 1 + len(z) * (right(q) - printed(q)) / kq)
    assert abs(expansion(printed(q)) - 1) > 1


# 2. The dropped factor ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "c"), [(1.5, 2.25), (2.5, 0.885549), (3.0, 0.866025), (4.0, 0.873580), (-1.0, 2.0)]
)
def test_2_weight_of_a_one_action_support(q, c):
    close(weight(q), c)
    close(paper([5.0, 0.0, 0.0, 0.0], q), [c, 0, 0, 0])


@pytest.mark.parametrize("q", [1.5, 2.5, 3.0, 4.0])
def test_2_the_expansion_itself_is_a_sparsemax(q):
    linear = paper(Q_ROWS, q, method="linear")
    close(linear, sparsemax(2 * Q_ROWS / q))
    close(linear.sum(-1), 1)


def test_2_the_factor_kept_normalises_a_single_action():
    for q in (1.5, 2.5, 3.0, 4.0):
        close(weight(q) * (2 * (q - 1) / q) ** (1 / (q - 1)), 1)


def test_2_from_q_three_on_the_support_is_one_action():
    near_ties = Q_ROWS * 1e-3  # the exact policy keeps all four
    for q in (3.0, 4.0):
        close(paper(near_ties, q).sum(-1), weight(q))
        assert ((paper(near_ties, q) > 0).sum(-1) == 1).all()
        assert (paper(near_ties, q, method="exact") > 0).all()


def test_2_sum_of_the_weights_at_three_halves():
    assert (paper(Q_ROWS, 1.5).sum(-1) > 2.25 - 1e-5).all()
    for gap, total in ((0.0, 2.53125), (2.0, 4.53125), (2.2499, 5.0620), (2.26, 2.25)):
        close(paper([0.0, -gap, -99.0, -99.0], 1.5).sum(), total, 1e-4)


@pytest.mark.parametrize(("q", "gap"), [(3.0, 0.75), (4.0, 2 / 3)])
def test_2_without_the_indicator_two_actions_count(q, gap):
    """Eq. 7 to the letter: psi~ is that of one action, and another above it counts as well.

    With one action in S, `psi~ = z_(1) - kq/(q-1)`: a gap below `kq/(q-1)` (0.75 at q = 3, 2/3 at
    q = 4) leaves a second bracket positive. At a tie both have the weight c, and their sum is 2 c.
    """
    far = [-9.0, -9.0]
    close(paper([0.0, -gap - 1e-3, *far], q, method="literal"), [weight(q), 0, 0, 0])
    second = (gap / 2) ** (1 / (q - 1))
    close(paper([0.0, -gap / 2, *far], q, method="literal"), [weight(q), second, 0, 0])
    close(paper([0.0, 0.0, *far], q, method="literal").sum(), 2 * weight(q))
    close(paper([0.0, -gap / 2, *far], q), [weight(q), 0, 0, 0])


def test_2_the_indicator_changes_nothing_up_to_two():
    """There C <= 0: an action above psi~ is in S."""
    for q in (1.2, 1.5, 1.8):
        close(paper(Q_ROWS, q, method="literal"), paper(Q_ROWS, q))


# 3. The index of the support test ----------------------------------------------------------------


def brute_force_support(z, q, constant):
    """The i best actions for the largest i with z_(i) above the psi~ of those i."""
    ranked = np.sort(z)[::-1]
    psi = [(ranked[: i + 1].sum() - q / 2) / (i + 1) + constant for i in range(len(z))]
    inside = [i + 1 for i in range(len(z)) if ranked[i] > psi[i]]
    return np.argsort(np.argsort(-z)) < max(inside, default=0)


@pytest.mark.parametrize("q", [1.5, 2.5])
def test_3_support_is_where_the_bracket_is_positive(q):
    want = [brute_force_support(z, q, right(q)) for z in np.asarray(Q_ROWS, np.float64)]
    got = np.asarray(paper(Q_ROWS, q) > 0)
    np.testing.assert_array_equal(got, want)
    assert len({row.sum() for row in got}) > 1


def test_3_the_other_reading_of_the_index_gives_another_support():
    z, q = np.array([0.0, -3.3, -3.3, -4.0]), 1.5

    def largest(constants):
        i = np.arange(1, len(z) + 1)
        return i[q / 2 + i * z > np.cumsum(z) + constants(i)].max()

    assert largest(lambda i: i * right(q)) == 1
    assert largest(lambda i: np.cumsum(i) * right(q)) == 4  # the constant inside the sum over j
    close(paper(z, q), [2.25, 0, 0, 0])


def test_3_the_test_may_fail_and_hold_again():
    # i = 2 and 3 fail, i = 4 holds: S is all four, and the sum of the weights 10.27.
    close(paper([0.0, -3.0, -3.0, -3.0], 1.5), [3.1875**2, *[0.1875**2] * 3])


# 9. q <= 0 ---------------------------------------------------------------------------------------


def test_9_the_entropy_is_convex_below_zero_and_concave_above():
    bend = jax.grad(jax.grad(lambda p, q: tsallis_entropy(jnp.stack([p, 1 - p]), q)))
    bends = jax.jit(jax.vmap(bend, (None, 0)))(0.3, jnp.array([-2, -1, 0.5, 1, 2, 3]))
    np.testing.assert_array_equal(np.sign(bends), [1, 1, -1, -1, -1, -1])


def test_9_below_zero_the_entropy_has_no_bound_and_the_exact_policy_is_refused():
    near = jnp.array([1e-2, 1e-4, 1e-6])
    H = tsallis_entropy(jnp.stack([near, 1 - near], -1), -1.0)
    close(H, [25.0025, 2500, 250000], 1e-4)  # (1/p + 1/(1-p) - 1)/4
    with pytest.raises(ValueError, match="no maximising policy"):
        tsallis_policy(Q_ROWS, -1.0)


def test_9_outside_the_support_the_weight_is_zero_and_never_infinite():
    weights = np.asarray(paper(Q_ROWS, -1.0))
    outside = np.stack([~brute_force_support(z, -1.0, right(-1.0)) for z in np.float64(Q_ROWS)])
    assert outside.any()
    assert np.isfinite(weights).all()
    assert (weights[outside] == 0).all()


def test_9_at_the_edge_of_the_support_a_bracket_that_rounds_to_zero_gives_no_infinity():
    close(paper([0.0, -1.0, -9.0, -9.0], -1.0), [2, 0, 0, 0])  # z = psi~ exactly
    second = np.linspace(-0.9, 0, len(Q_ROWS), dtype=np.float32)
    third = (second - np.float32(1.75)) / 2  # where the test of i = 3 turns
    for _ in range(3):
        third = np.nextafter(third, np.float32(1))
        weights = paper(np.stack([0 * third, second, third, third - 9], -1), -1.0)
        assert np.isfinite(weights).all()


def test_9_below_zero_the_worse_action_weighs_more():
    close(paper([0.0, -0.5, -9.0, -9.0], -1.0), [0.75**-0.5, 2, 0, 0])


def test_9_for_acting_nothing_left_means_greedy():
    weights = paper(Q_ROWS, 1.5, method="printed")
    close(normalise(weights, Q_ROWS), greedy(Q_ROWS))
