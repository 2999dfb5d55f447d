"""A replay ring on the device, for one seed: `vmap` it for many.

An observation is stored once, bools as bits: the next one of transition i is in slot i + 1. Where
an episode was truncated, slot i + 1 holds the start of the next episode instead, so the true final
observation goes to a small side buffer. (A terminated episode needs none: there is no bootstrap.)
Writes touch one slot and draws `batch` slots, independently of the capacity.

The target network is constant between two copies, but the same observations are drawn repeatedly,
as s and as s'. `cache_target_values` evaluates the network once on each observation that a target
period will draw, in large batches; those that are stored meanwhile are added as they come.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from tsallax.types import Seen, Segment, Transition

# Observations per pass: enough for fast matrix products, few enough for the CPU's cache.
ROWS = 128


class State(NamedTuple):
    observations: Seen
    actions: Shaped[Array, "slots ..."]  # indices as int8, or vectors of float32
    rewards: Float[Array, "slots"]
    terminated: Bool[Array, "slots"]
    final: Int[Array, "slots"]  # index of its final observation in the side buffer, or -1
    finals: Seen
    truncations: Int[Array, ""]  # number so far
    added: Int[Array, ""]  # number of transitions so far


class Chain(NamedTuple):
    """The places of n consecutive transitions."""

    slots: Int[Array, "batch n"]
    cut: Bool[Array, "batch n"]  # the episode ended in this step, or it is the newest one
    last: Int[Array, "batch"]  # the place of the observation after the first cut or the n-th step


class Ring(NamedTuple):
    """Functions of a state. A *place* is a slot or, from `slots` on, one of the side buffer."""

    init: Callable[..., State]  # (first_observation)
    add: Callable[..., State]  # (state, transition ...)
    draw: Callable[..., Int[Array, "batch"]]  # (key, batch, added): slots to take
    take: Callable[..., Transition]  # (state, slots, like)
    sample: Callable[..., Transition]  # (state, key, batch, like): `draw`, then `take`
    reach: Callable[..., Int[Array, "m"]]  # (slots, n): each with the n - 1 slots after it
    chain: Callable[..., Chain]  # (state, slots, n): n consecutive steps from each
    segment: Callable[..., Segment]  # (state, chain, like)
    look: Callable[..., Seen]  # (state, places, like): observations
    following: Callable[..., Int[Array, "n"]]  # (state, slots): the places of the next ones
    newest: Callable[..., Int[Array, "n"]]  # (state, steps): places that the next steps will fill


def make_ring(capacity: int, time_limit: int | None, dimensions: int | None = None) -> Ring:
    """A ring of the last `capacity` transitions, of which at most one in `time_limit` is truncated.

    Actions are indices, or vectors with `dimensions` entries.
    """
    indices = dimensions is None
    slots = capacity + 1  # the newest transition needs its next observation too
    finals = 0 if time_limit is None else capacity // time_limit + 2

    def init(observation: Seen) -> State:
        packed = _pack(observation)
        return State(
            jax.tree.map(lambda x: jnp.zeros((slots, *x.shape), x.dtype).at[0].set(x), packed),
            jnp.zeros(slots, jnp.int8) if indices else jnp.zeros((slots, dimensions), jnp.float32),
            jnp.zeros(slots, jnp.float32),
            jnp.zeros(slots, bool),
            jnp.full(slots if finals else 0, -1, jnp.int32),
            jax.tree.map(lambda x: jnp.zeros((finals, *x.shape), x.dtype), packed),
            jnp.zeros((), jnp.int32),
            jnp.zeros((), jnp.int32),
        )

    def add(
        state: State,
        action: Shaped[Array, "..."],
        reward: Float[Array, ""],
        terminated: Bool[Array, ""],
        truncated: Bool[Array, ""],
        final_observation: Seen,
        next_observation: Seen,
    ) -> State:
        """Add one step; the agent acts next on `next_observation`, after a reset if necessary."""
        i, before = state.added % slots, state.truncations
        state = state._replace(
            observations=_put(state.observations, (i + 1) % slots, _pack(next_observation)),
            actions=_put(state.actions, i, action.astype(state.actions.dtype)),
            rewards=_put(state.rewards, i, reward),
            terminated=_put(state.terminated, i, terminated),
            truncations=state.truncations + truncated,
            added=state.added + 1,
        )
        if finals:
            j = before % finals  # overwritten at every step until a truncation keeps it
            state = state._replace(
                finals=_put(state.finals, j, _pack(final_observation)),
                final=_put(state.final, i, jnp.where(truncated, j, -1)),
            )
        return state

    def draw(key: PRNGKeyArray, batch: int, added: Int[Array, ""]) -> Int[Array, "batch"]:
        """Draw slots uniformly, with replacement."""
        age = jax.random.randint(key, (batch,), 0, jnp.minimum(added, capacity))
        return (added - 1 - age) % slots

    def following(state: State, i: Int[Array, "n"]) -> Int[Array, "n"]:
        after = (i + 1) % slots
        if not finals:
            return after
        return jnp.where(state.final[i] >= 0, slots + state.final[i], after)

    def look(state: State, places: Int[Array, "n"], like: Seen) -> Seen:
        def find(stored: Array, ends: Array) -> Array:
            found = stored[jnp.minimum(places, slots - 1)]
            if finals:
                aside = (places >= slots).reshape(-1, *(1,) * (found.ndim - 1))
                found = jnp.where(aside, ends[jnp.maximum(places - slots, 0)], found)
            return found

        return _unpack(jax.tree.map(find, state.observations, state.finals), like)

    def take(state: State, i: Int[Array, "batch"], like: Seen) -> Transition:
        return Transition(
            _unpack(jax.tree.map(lambda x: x[i], state.observations), like),
            state.actions[i].astype(jnp.int32) if indices else state.actions[i],
            state.rewards[i],
            state.terminated[i],
            look(state, following(state, i), like),
        )

    def sample(state: State, key: PRNGKeyArray, batch: int, like: Seen) -> Transition:
        """Sample `batch` transitions; `like` is an observation's spec."""
        return take(state, draw(key, batch, state.added), like)

    def reach(i: Int[Array, "batch"], n: int) -> Int[Array, "m"]:
        return i if n == 1 else ((i[:, None] + jnp.arange(n)[None]) % slots).ravel()

    def chain(state: State, i: Int[Array, "batch"], n: int) -> Chain:
        """The newest transition is a cut, as the slots after it hold older ones."""
        at = reach(i, n).reshape(-1, n)
        cut = state.terminated[at] | (at == (state.added - 1) % slots)
        if finals:
            cut |= state.final[at] >= 0
        ending = jnp.argmax(cut.at[:, -1].set(True), 1)
        return Chain(at, cut, following(state, at[jnp.arange(len(i)), ending]))

    def segment(state: State, chain: Chain, like: Seen) -> Segment:
        at = chain.slots.ravel()
        seen = _unpack(jax.tree.map(lambda x: x[at], state.observations), like)
        return Segment(
            jax.tree.map(lambda x: x.reshape(*chain.slots.shape, *x.shape[1:]), seen),
            state.actions[chain.slots].astype(jnp.int32),
            state.rewards[chain.slots],
            state.terminated[chain.slots],
            chain.cut,
            look(state, chain.last, like),
        )

    def newest(state: State, steps: int) -> Int[Array, "n"]:
        """Includes the place before them: XLA would fuse a write of a single row (see `steps`)."""
        stored = (state.added + jnp.arange(steps + 1)) % slots
        if not finals:
            return stored
        return jnp.append(stored, slots + (state.truncations + jnp.arange(steps)) % finals)

    functions = init, add, draw, take, sample, reach, chain, segment
    return Ring(*functions, look, following, newest)


def cache_target_values(
    ring: Ring,
    state: State,
    drawn: Int[Array, "n"],
    apply: Callable[[Seen], Float[Array, "rows A *N"]],
    like: Seen,
    largest: Callable[[Int[Array, ""]], Int[Array, ""]],
) -> Float[Array, "places A *N"]:
    """The target network's values at s and s' of the transitions that a period will draw.

    They are 0 for observations that are not stored yet or will not be drawn.

    Args:
        ring: the functions of the ring.
        state: its state at the start of the period.
        drawn: the slots drawn in the whole period.
        apply: the target network on a batch.
        like: an observation's spec.
        largest: the maximum of a number over all cells, which leave the loop together.
    """
    wanted, count = distinct(jnp.append(drawn, ring.following(state, drawn)))
    places = sum(len(jax.tree.leaves(x)[0]) for x in (state.observations, state.finals))
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype), like)
    row = jax.eval_shape(apply, one)

    def pass_through(i, values):
        at = jax.lax.dynamic_slice_in_dim(wanted, i * ROWS, ROWS)
        return values.at[at].set(apply(ring.look(state, at, like)))

    passes = (largest(count) + ROWS - 1) // ROWS
    return jax.lax.fori_loop(0, passes, pass_through, jnp.zeros((places, *row.shape[1:])))


def distinct(numbers: Int[Array, "n"]) -> tuple[Int[Array, "m"], Int[Array, ""]]:
    """Each number once, padded with the largest to whole passes; and the count without padding."""
    ordered = jnp.sort(numbers)
    first = jnp.append(True, ordered[1:] != ordered[:-1])
    place = jnp.cumsum(first) - 1
    padded = -(-len(numbers) // ROWS) * ROWS
    return jnp.full(padded, ordered[-1]).at[place].set(ordered), place[-1] + 1


def _put(tree: Any, i: Int[Array, ""], value: Any) -> Any:
    return jax.tree.map(
        lambda x, new: jax.lax.dynamic_update_index_in_dim(x, new, i, 0), tree, value
    )


def _pack(observation: Any) -> Any:
    """Packs bools into bits. A `Masked` observation is packed field by field."""

    def pack(x: Array) -> Array:
        return jnp.packbits(x.reshape(-1)) if x.dtype == jnp.bool_ else x

    return jax.tree.map(pack, observation)


def _unpack(packed: Any, like: Any) -> Any:
    def unpack(x: Array, like: Array) -> Array:
        if like.dtype != jnp.bool_:
            return x
        bits = jnp.unpackbits(x, -1, count=like.size)
        return bits.reshape(x.shape[0], *like.shape).astype(bool)

    return jax.tree.map(unpack, packed, like)
