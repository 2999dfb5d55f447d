"""A replay ring on the device, for one seed: `vmap` it for many.

An observation is stored once, bools as bits: the next one of transition i stands in slot i + 1.
Where an episode was truncated, slot i + 1 holds the start of the next episode instead, so the true
final observation goes to a small side buffer. (A terminated one bootstraps nothing.) Writes touch
one slot and draws `batch` slots, whatever the capacity.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from tsallax.types import Transition


class State(NamedTuple):
    observations: Shaped[Array, "slots ..."]
    actions: Int[Array, "slots"]
    rewards: Float[Array, "slots"]
    terminated: Bool[Array, "slots"]
    final: Int[Array, "slots"]  # where its final observation stands, or -1
    finals: Shaped[Array, "finals ..."]
    truncations: Int[Array, ""]  # so far
    added: Int[Array, ""]  # transitions so far


class Ring(NamedTuple):
    """Functions of a state. A *place* is a slot, or from `slots` on one of the side buffer."""

    init: Callable[..., State]  # (first_observation)
    add: Callable[..., State]  # (state, transition ...)
    draw: Callable[..., Int[Array, "batch"]]  # (key, batch, added): slots to take
    take: Callable[..., Transition]  # (state, slots, like)
    sample: Callable[..., Transition]  # (state, key, batch, like): drawn and taken
    look: Callable[..., Shaped[Array, "n ..."]]  # (state, places, like): observations
    following: Callable[..., Int[Array, "n"]]  # (state, slots): the places of the next ones
    newest: Callable[..., Int[Array, "n"]]  # (state, steps): places that so many adds will fill


def make_ring(capacity: int, time_limit: int | None) -> Ring:
    """The last `capacity` transitions. At most one in `time_limit` is a truncation."""
    slots = capacity + 1  # the newest transition needs its next observation too
    finals = 0 if time_limit is None else capacity // time_limit + 2

    def init(observation: Shaped[Array, "..."]) -> State:
        packed = _pack(observation)
        return State(
            jnp.zeros((slots, *packed.shape), packed.dtype).at[0].set(packed),
            jnp.zeros(slots, jnp.int8),
            jnp.zeros(slots, jnp.float32),
            jnp.zeros(slots, bool),
            jnp.full(slots if finals else 0, -1, jnp.int32),
            jnp.zeros((finals, *packed.shape), packed.dtype),
            jnp.zeros((), jnp.int32),
            jnp.zeros((), jnp.int32),
        )

    def add(
        state: State,
        action: Int[Array, ""],
        reward: Float[Array, ""],
        terminated: Bool[Array, ""],
        truncated: Bool[Array, ""],
        final_observation: Shaped[Array, "..."],
        next_observation: Shaped[Array, "..."],
    ) -> State:
        """One step: `next_observation` is where the agent acts next, after a reset if need be."""
        i, before = state.added % slots, state.truncations
        state = state._replace(
            observations=_put(state.observations, (i + 1) % slots, _pack(next_observation)),
            actions=_put(state.actions, i, action.astype(jnp.int8)),
            rewards=_put(state.rewards, i, reward),
            terminated=_put(state.terminated, i, terminated),
            truncations=state.truncations + truncated,
            added=state.added + 1,
        )
        if finals:
            j = before % finals  # overwritten until a truncation claims it
            state = state._replace(
                finals=_put(state.finals, j, _pack(final_observation)),
                final=_put(state.final, i, jnp.where(truncated, j, -1)),
            )
        return state

    def draw(key: PRNGKeyArray, batch: int, added: Int[Array, ""]) -> Int[Array, "batch"]:
        """Uniformly, with replacement."""
        age = jax.random.randint(key, (batch,), 0, jnp.minimum(added, capacity))
        return (added - 1 - age) % slots

    def following(state: State, i: Int[Array, "n"]) -> Int[Array, "n"]:
        after = (i + 1) % slots
        if not finals:
            return after
        return jnp.where(state.final[i] >= 0, slots + state.final[i], after)

    def look(
        state: State, places: Int[Array, "n"], like: Shaped[Array, "..."]
    ) -> Shaped[Array, "n ..."]:
        found = state.observations[jnp.minimum(places, slots - 1)]
        if finals:
            aside = (places >= slots).reshape(-1, *(1,) * (found.ndim - 1))
            found = jnp.where(aside, state.finals[jnp.maximum(places - slots, 0)], found)
        return _unpack(found, like)

    def take(state: State, i: Int[Array, "batch"], like: Shaped[Array, "..."]) -> Transition:
        return Transition(
            _unpack(state.observations[i], like),
            state.actions[i].astype(jnp.int32),
            state.rewards[i],
            state.terminated[i],
            look(state, following(state, i), like),
        )

    def sample(
        state: State, key: PRNGKeyArray, batch: int, like: Shaped[Array, "..."]
    ) -> Transition:
        """`batch` transitions; `like` is an observation's shape."""
        return take(state, draw(key, batch, state.added), like)

    def newest(state: State, steps: int) -> Int[Array, "n"]:
        """And the one before: a write of a single row would be fused, see `steps` of the loop."""
        stored = (state.added + jnp.arange(steps + 1)) % slots
        if not finals:
            return stored
        return jnp.append(stored, slots + (state.truncations + jnp.arange(steps)) % finals)

    return Ring(init, add, draw, take, sample, look, following, newest)


def _put(array: Array, i: Int[Array, ""], value: Array) -> Array:
    return jax.lax.dynamic_update_index_in_dim(array, value, i, 0)


def _pack(observation: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    if observation.dtype != jnp.bool_:
        return observation
    return jnp.packbits(observation.reshape(-1))


def _unpack(packed: Shaped[Array, "..."], like: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
    if like.dtype != jnp.bool_:
        return packed
    bits = jnp.unpackbits(packed, -1, count=like.size)
    return bits.reshape(packed.shape[0], *like.shape).astype(bool)
