"""The target network's values at stored observations, each computed once per target period.

The target network stands still between two copies, but the same observations are drawn again and
again, as s and as s'. Of all that a period will draw, each is put through the network once, in
large batches; those that are stored meanwhile follow as they come.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from tsallax.replay.ring import Ring, State

ROWS = (
    128  # observations per pass: enough for the full speed of a product, few enough for the cache
)

Apply = Callable[[Shaped[Array, "rows ..."]], Float[Array, "rows A *N"]]
Values = Float[Array, "places A *N"]  # zero where nothing will be drawn


def cache_target_values(
    ring: Ring,
    state: State,
    drawn: Int[Array, "n"],
    apply: Apply,
    like: Shaped[Array, "..."],
    largest: Callable[[Int[Array, ""]], Int[Array, ""]],
) -> Values:
    """The values at both ends of the transitions to be drawn, as far as they are stored by now.

    Args:
        ring: whose state it is.
        state: at the period's start.
        drawn: slots, for the whole period.
        apply: the target network on a batch.
        like: an observation.
        largest: of a number over all cells, which leave the loop together.
    """
    wanted, count = distinct(jnp.append(drawn, ring.following(state, drawn)))
    places = state.observations.shape[0] + state.finals.shape[0]
    row = jax.eval_shape(apply, jax.ShapeDtypeStruct((1, *like.shape), like.dtype))

    def pass_through(i, values):
        at = jax.lax.dynamic_slice_in_dim(wanted, i * ROWS, ROWS)
        return values.at[at].set(apply(ring.look(state, at, like)))

    passes = (largest(count) + ROWS - 1) // ROWS
    return jax.lax.fori_loop(0, passes, pass_through, jnp.zeros((places, *row.shape[1:])))


def distinct(numbers: Int[Array, "n"]) -> tuple[Int[Array, "m"], Int[Array, ""]]:
    """Each of the numbers once, then the largest again up to whole passes; how many there are."""
    ordered = jnp.sort(numbers)
    first = jnp.append(True, ordered[1:] != ordered[:-1])
    place = jnp.cumsum(first) - 1
    padded = -(-len(numbers) // ROWS) * ROWS
    return jnp.full(padded, ordered[-1]).at[place].set(ordered), place[-1] + 1
