"""Priorities of stored transitions: `P(i) = p_i / sum_j p_j`, `p = (|error| + e)^w`.

The proportional variant of Schaul et al. (2016). The priorities are the leaves of a tree of sums
with four levels. A draw reads one row of each level, a write sums one row of each level anew: both
take a few fourth roots of the capacity, where cumulative sums would take all of it. Sums are never
adjusted by differences, so nothing drifts.

The functions of a draw are for arrays of NumPy and of JAX alike.
"""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tsallax.types import HParams

LEVELS = 4  # with 50,000 slots and 128 draws a third of the time that three levels take
LEAST = 1e-6  # e, so that every transition can come up again

Sums = tuple[Any, ...]  # from the top: (F,), (F, F), ..., the last of them the priorities


class Priorities(NamedTuple):
    """Of the slots of one ring on the device."""

    sums: Sums
    largest: Float[Array, ""]  # so far: what a new transition has


def fan_out(slots: int) -> int:
    """F, the children of each node: the least that makes so many leaves."""
    return next(F for F in itertools.count(1) if F**LEVELS >= slots)


def no_priorities(slots: int) -> Priorities:
    """Nothing can be drawn yet."""
    levels = range(1, LEVELS + 1)
    return Priorities(tuple(jnp.zeros((fan_out(slots),) * n) for n in levels), jnp.ones(()))


def put(sums: Sums, at: Int[Array, "n"], leaves: Float[Array, "n"]) -> Sums:
    """Other leaves in these slots, and the sums above them."""
    *above, lowest = sums
    index = jnp.unravel_index(at, lowest.shape)
    made = (lowest.at[index].set(leaves),)
    for level in reversed(above):
        index = index[:-1]
        made = (level.at[index].set(jnp.sum(made[0][index], -1)), *made)
    return made


def enter(priorities: Priorities, fresh: Int[Array, "n"], free: Int[Array, ""]) -> Priorities:
    """New transitions in slots `fresh`; the slot `free` has none."""
    sums, largest = priorities
    leaves = jnp.append(jnp.full(fresh.shape, largest), 0)
    return Priorities(put(sums, jnp.append(fresh, free), leaves), largest)


def renew(priorities: Priorities, at: Int[Array, "n"], leaves: Float[Array, "n"]) -> Priorities:
    """After an update, with the priorities of its errors."""
    return Priorities(
        put(priorities.sums, at, leaves), jnp.maximum(priorities.largest, jnp.max(leaves))
    )


def draw(sums: Sums, uniform: Float[Any, "levels n"]) -> tuple[Int[Any, "n"], Float[Any, "n"]]:
    """Slots and their leaves, in proportion to the leaves, stratified at the top (section 3.3).

    Every level has a uniform number of its own: one number for all of them would have too few bits
    for a million slots.
    """
    count = uniform.shape[-1]
    shares = (np.arange(count, dtype=np.float32) + uniform[0]) / count, *uniform[1:]
    at, index = 0, ()
    for level, share in zip(sums, shares, strict=True):
        index = (*index, _pick(level[index], share))
        at = at * level.shape[-1] + index[-1]
    return at, sums[-1][index]


def _pick(row: Float[Any, "*n F"], share: Float[Any, "n"]) -> Int[Any, "n"]:
    """The first whose cumulative share exceeds `share`; never one whose own is 0.

    Rounding may leave none: then it is the last of those that are not 0.
    """
    F = row.shape[-1]
    row, j = row.reshape(-1, F), np.arange(F)[None]
    total = row.cumsum(-1)
    beyond = total > share[:, None] * total[:, -1:]
    return ((row > 0) * (j + 1 + beyond * (2 * F - 2 * j))).argmax(-1)


def importance_weights(leaves: Float[Array, "n"], exponent: Float[Array, ""]) -> Float[Array, "n"]:
    """`(N P(i))^-b` over the largest of the batch, in which N and the sum of all leaves cancel."""
    return (jnp.min(leaves) / leaves) ** exponent


def importance_at(step: Int[Array, ""], hp: HParams) -> Float[Array, ""]:
    """b: linear from `importance_exponent` to 1 at the end."""
    share = jnp.clip(step / hp.total_steps, 0, 1)
    return hp.importance_exponent + share * (1 - hp.importance_exponent)


def priority_of(errors: Float[Array, "n"], hp: HParams) -> Float[Array, "n"]:
    """`(|error| + e)^w`."""
    return (jnp.abs(errors) + LEAST) ** hp.priority_exponent
