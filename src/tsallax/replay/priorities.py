"""Priorities of stored transitions: `P(i) = p_i / sum_j p_j`, `p = (|error| + e)^w`.

This is the proportional variant of Schaul et al. (2016). The priorities are the leaves of a sum
tree with four levels. A draw reads one row of each level, a write recomputes the sum of one row of
each level: both cost a few fourth roots of the capacity, where cumulative sums would cost all of
it. Sums are never updated by differences, so no rounding errors accumulate.

The functions of a draw work on arrays of NumPy and of JAX.
"""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tsallax.types import HParams

LEVELS = 4  # with 50,000 slots and 128 draws it takes a third of the time of three levels
LEAST = 1e-6  # e, so that every transition can be drawn again

Sums = tuple[Any, ...]  # from the top: (F,), (F, F), ..., the last of them the priorities


class Priorities(NamedTuple):
    """The priorities of one ring on the device."""

    sums: Sums
    largest: Float[Array, ""]  # the largest so far, given to new transitions


def fan_out(slots: int) -> int:
    """F, the number of children of each node: the least with at least `slots` leaves."""
    return next(F for F in itertools.count(1) if F**LEVELS >= slots)


def no_priorities(slots: int) -> Priorities:
    """The initial priorities, all 0: nothing can be drawn yet."""
    levels = range(1, LEVELS + 1)
    return Priorities(tuple(jnp.zeros((fan_out(slots),) * n) for n in levels), jnp.ones(()))


def put(sums: Sums, at: Int[Array, "n"], leaves: Float[Array, "n"]) -> Sums:
    """Set the leaves in these slots, and update the sums above them."""
    *above, lowest = sums
    index = jnp.unravel_index(at, lowest.shape)
    made = (lowest.at[index].set(leaves),)
    for level in reversed(above):
        index = index[:-1]
        made = (level.at[index].set(jnp.sum(made[0][index], -1)), *made)
    return made


def enter(priorities: Priorities, fresh: Int[Array, "n"], free: Int[Array, ""]) -> Priorities:
    """Give new transitions in the slots `fresh` a priority; the slot `free` has none."""
    sums, largest = priorities
    leaves = jnp.append(jnp.full(fresh.shape, largest), 0)
    return Priorities(put(sums, jnp.append(fresh, free), leaves), largest)


def renew(priorities: Priorities, at: Int[Array, "n"], leaves: Float[Array, "n"]) -> Priorities:
    """Set the priorities of a batch after its update, from its errors."""
    return Priorities(
        put(priorities.sums, at, leaves), jnp.maximum(priorities.largest, jnp.max(leaves))
    )


def draw(sums: Sums, uniform: Float[Any, "levels n"]) -> tuple[Int[Any, "n"], Float[Any, "n"]]:
    """Draw slots in proportion to their leaves, stratified at the top level (section 3.3).

    Every level has its own uniform number: a single one would have too few bits for a million
    slots. Also returns the leaves.
    """
    count = uniform.shape[-1]
    shares = (np.arange(count, dtype=np.float32) + uniform[0]) / count, *uniform[1:]
    at, index = 0, ()
    for level, share in zip(sums, shares, strict=True):
        index = (*index, _pick(level[index], share))
        at = at * level.shape[-1] + index[-1]
    return at, sums[-1][index]


def _pick(row: Float[Any, "*n F"], share: Float[Any, "n"]) -> Int[Any, "n"]:
    """The first index whose cumulative share exceeds `share`; never one with a value of 0.

    If there is none because of rounding, it is the last index with a value other than 0.
    """
    F = row.shape[-1]
    row, j = row.reshape(-1, F), np.arange(F)[None]
    total = row.cumsum(-1)
    beyond = total > share[:, None] * total[:, -1:]
    return ((row > 0) * (j + 1 + beyond * (2 * F - 2 * j))).argmax(-1)


def importance_weights(leaves: Float[Array, "n"], exponent: Float[Array, ""]) -> Float[Array, "n"]:
    """`(N P(i))^-b` divided by its maximum over the batch; N and the sum of all leaves cancel."""
    return (jnp.min(leaves) / leaves) ** exponent


def importance_at(step: Int[Array, ""], hp: HParams) -> Float[Array, ""]:
    """The exponent b: linear from `importance_exponent` to 1 at the end."""
    share = jnp.clip(step / hp.total_steps, 0, 1)
    return hp.importance_exponent + share * (1 - hp.importance_exponent)


def priority_of(errors: Float[Array, "n"], hp: HParams) -> Float[Array, "n"]:
    """`(|error| + e)^w`."""
    return (jnp.abs(errors) + LEAST) ** hp.priority_exponent
