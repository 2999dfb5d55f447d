"""Prioritised draws against plain NumPy: probabilities, weights, sums, and what is never drawn."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from support.hlo import AS_USERS
from tsallax.operators import make_hparams
from tsallax.replay.host_priorities import HostPriorities
from tsallax.replay.priorities import (
    LEAST,
    LEVELS,
    draw,
    enter,
    fan_out,
    importance_at,
    importance_weights,
    no_priorities,
    priority_of,
    put,
    renew,
)

SLOTS = 50
RNG = np.random.default_rng(0)
ERRORS = RNG.normal(size=SLOTS).astype(np.float32) * 10.0 ** RNG.uniform(-2, 1, SLOTS)
STORED = np.arange(SLOTS) != 17  # one slot has no transition


DRAWS = jax.jit(jax.vmap(draw, (None, 0)))


@functools.cache
def tree(exponent: float):
    hp = make_hparams("dqn", priority_exponent=exponent)
    leaves = jnp.where(STORED, priority_of(jnp.asarray(ERRORS, jnp.float32), hp), 0)
    return put(no_priorities(SLOTS).sums, jnp.arange(SLOTS), leaves)


def probabilities(exponent: float) -> np.ndarray:
    """`p_i^w / sum p^w` as the paper has it (eq. 1), in float64."""
    p = np.where(STORED, (np.abs(np.float64(ERRORS)) + LEAST) ** exponent, 0)
    return p / p.sum()


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_draws_have_the_probabilities_of_the_paper(exponent):
    """A chi-square of 200 batches of 64, in which strata make the counts a little too even."""
    uniform = jax.random.uniform(jax.random.key(1), (200, LEVELS, 64))
    sums, P = tree(exponent), probabilities(exponent)
    at, leaves = DRAWS(sums, uniform)
    np.testing.assert_allclose(leaves / jnp.sum(sums[0]), P[at], rtol=1e-5)
    counts = np.bincount(np.ravel(at), minlength=SLOTS)
    assert counts[17] == 0
    often = P * counts.sum() > 5
    other = counts[~often & STORED].sum()
    found = np.append(counts[often], other)
    expected = np.append(P[often], P[~often].sum()) * counts.sum()
    keep = expected > 0
    assert stats.chisquare(found[keep], expected[keep]).pvalue > 1e-3
    # Were they drawn uniformly, or with another exponent, it would show.
    if exponent != 0.3:
        wrong = probabilities(0.3)
        wrong = np.append(wrong[often], wrong[~often].sum()) * counts.sum()
        assert stats.chisquare(found[keep], wrong[keep] * found.sum() / wrong.sum()).pvalue < 1e-6


def test_a_stratum_has_its_share():
    """The i-th draw of n comes from the i-th n-th of the sum, to within one child of the top."""
    leaves = jnp.ones(3**LEVELS)
    sums = put(no_priorities(len(leaves)).sums, jnp.arange(len(leaves)), leaves)
    at, _ = draw(sums, jax.random.uniform(jax.random.key(0), (LEVELS, 300)))
    np.testing.assert_array_equal(at // 27, np.repeat([0, 1, 2], 100))


@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2**-24, 1.0])
def test_a_leaf_of_zero_is_never_drawn(share):
    """Not at the ends of a row, not by rounding, however few others there are."""
    for there in ([0], [SLOTS - 1], [7, 8], [0, SLOTS - 1], list(range(3, 40))):
        leaves = np.zeros(SLOTS, np.float32)
        leaves[there] = 10.0 ** RNG.uniform(-6, 6, len(there))
        sums = put(no_priorities(SLOTS).sums, jnp.arange(SLOTS), jnp.asarray(leaves))
        at, drawn = draw(sums, jnp.full((LEVELS, 16), jnp.float32(share)))
        assert set(np.asarray(at)) <= set(there)
        np.testing.assert_array_equal(drawn, leaves[at])


def test_weights_are_those_of_the_paper():
    """`w_i = (N P(i))^-b / max_j w_j` in float64, over the batch."""
    at = np.array([3, 9, 9, 40])
    P, N = probabilities(0.6), STORED.sum()
    w = (N * P[at]) ** -0.4
    leaves = tree(0.6)[-1].ravel()[at]
    np.testing.assert_allclose(importance_weights(leaves, jnp.float32(0.4)), w / w.max(), rtol=1e-5)
    np.testing.assert_array_equal(importance_weights(leaves, jnp.float32(0)), np.ones(4))


def test_full_weights_undo_the_priorities():
    """With b = 1, `P(i) w_i` is the same for all: the mean is that of uniform draws."""
    leaves = tree(0.6)[-1].ravel()[:SLOTS][STORED]
    product = leaves * importance_weights(leaves, jnp.float32(1))
    np.testing.assert_allclose(product, product[0], rtol=1e-5)


def test_exponents_golden():
    """(3 + 1e-6)^(1/2); b from 0.4 to 1: at half of the steps 0.7, and 1 from the end on."""
    hp = make_hparams("dqn", priority_exponent=0.5, importance_exponent=0.4, total_steps=100.0)
    np.testing.assert_allclose(priority_of(jnp.array([-4.0, 0.0]), hp), [2, 1e-3], rtol=1e-5)
    steps = jnp.array([0, 50, 100, 200])
    found = jax.vmap(importance_at, (0, None))(steps, hp)
    np.testing.assert_allclose(found, [0.4, 0.7, 1, 1], rtol=1e-6)


def test_a_new_transition_has_the_largest_priority_so_far():
    """Also when the largest one has been drawn and is smaller since."""
    first = enter(no_priorities(4), jnp.array([0, 1]), jnp.asarray(2))
    np.testing.assert_array_equal(first.sums[-1].ravel()[:4], [1, 1, 0, 0])
    learned = renew(first, jnp.array([0, 1]), jnp.array([7.0, 0.5]))
    later = renew(learned, jnp.array([0]), jnp.array([0.25]))
    after = enter(later, jnp.array([2]), jnp.asarray(3))
    np.testing.assert_array_equal(after.sums[-1].ravel()[:4], [0.25, 0.5, 7, 0])
    assert float(jnp.sum(after.sums[0])) == 7.75


def random_writes(slots: int):
    """Two cells; indices may come twice in a write, with equal leaves."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        at = rng.integers(slots, size=(2, 9))
        yield at, ((at * 7919 + rng.integers(99)) % 101).astype(np.float32) / 8


@pytest.mark.parametrize("slots", [1, 16, 17, 300])
def test_the_host_has_the_devices_trees(slots):
    """Sums of both against plain sums, and the same draws from the same numbers."""
    host = HostPriorities(2, slots)
    one = jax.tree.map(lambda x: jnp.stack([x, x]), no_priorities(slots))
    write = jax.jit(jax.vmap(renew))
    for at, leaves in random_writes(slots):
        host.renew(at, leaves)
        one = write(one, jnp.asarray(at), jnp.asarray(leaves))
    F = fan_out(slots)
    assert F**LEVELS >= slots
    for mine, other in zip(host.sums, one.sums, strict=True):
        np.testing.assert_array_equal(mine, other)  # eighths: exact
        plain = host.sums[-1].reshape(2, *mine.shape[1:], -1).sum(-1)
        np.testing.assert_array_equal(mine, plain)
    np.testing.assert_array_equal(host.largest, one.largest)
    for cell in range(2):
        random = np.random.default_rng(cell)
        uniform = np.random.default_rng(cell).random((LEVELS, 32), np.float32)
        at, leaves = draw(tuple(x[cell] for x in one.sums), jnp.asarray(uniform))
        own = host.draw(cell, random, 32)
        np.testing.assert_array_equal(own[0], at)
        np.testing.assert_array_equal(own[1], leaves)
    back = HostPriorities(2, slots)
    back.fill(host.leaves.copy(), host.largest)
    jax.tree.map(np.testing.assert_array_equal, back.sums, host.sums)


@pytest.mark.parametrize("seeds", [None, 2])
def test_a_write_and_a_draw_do_not_grow_with_the_capacity(seeds):
    """By the compiled loop: the leaves are written in place, and nothing else has their size."""
    slots = 10_001
    F = fan_out(slots)

    def run(priorities, key):
        def body(i, priorities):
            uniform = jax.random.uniform(jax.random.fold_in(key, i), (LEVELS, 8))
            priorities = enter(priorities, i + jnp.arange(2), i + 2)
            at, leaves = draw(priorities.sums, uniform)
            return renew(priorities, at, leaves / 2)

        return jax.lax.fori_loop(0, 100, body, priorities)

    arguments = jax.eval_shape(lambda: no_priorities(slots)), jax.eval_shape(jax.random.key, 0)
    if seeds:
        run = jax.vmap(run)
        arguments = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((seeds, *x.shape), x.dtype), arguments
        )
    compiled = jax.jit(run, donate_argnums=0).lower(*arguments).compile(AS_USERS)
    shape = ",".join(map(str, (*((seeds,) if seeds else ()), *(F,) * LEVELS)))
    done = set(re.findall(rf"= f32\[{shape}\]\S* ([\w-]+)\(", compiled.as_text()))
    assert done <= {"scatter", "fusion", "parameter", "get-tuple-element", "bitcast", "while"}
    assert done & {"scatter", "fusion"}
