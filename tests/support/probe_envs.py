"""Environments that show what a run did: their observations tell it, or their values are known."""

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.types import Environment, Outcome

PICTURE = jnp.zeros((1, 1, 3), jnp.uint8)


def clock() -> Environment:
    """Never ends. The observation is the number of steps so far and the last action."""

    def step(state, action, key):
        after = jnp.stack([state[0] + 1, jnp.float32(action)])
        return after, Outcome(jnp.float32(1), jnp.asarray(False), jnp.asarray(False))

    return Environment(
        "clock", ("a", "b", "c"), lambda key: jnp.zeros(2), step, lambda s: s, lambda s: PICTURE
    )


def throw(key) -> jax.Array:
    """A whole number that no other key is likely to throw, exact in float32."""
    return jax.random.randint(key, (), 0, 2**24).astype(jnp.float32)


def dice() -> Environment:
    """Truncated after two steps. The observation is the throw of the reset, of the last step, and
    the last action."""

    def step(state, action, key):
        throws, t = state[0], state[1] + 1
        after = jnp.stack([throws[0], throw(key), jnp.float32(action)])
        return (after, t), Outcome(jnp.float32(0), jnp.asarray(False), t >= 2)

    def reset(key):
        return jnp.stack([throw(key), jnp.float32(0), jnp.float32(0)]), jnp.int32(0)

    return Environment("dice", ("a", "b"), reset, step, lambda s: s[0], lambda s: PICTURE, 2)


# One reset draws one of several probes, so that a single program shows them all. Every row is
# state: (next state, reward of the two actions, terminated, Q of the two actions at gamma = 0.9).
GAMMA = 0.9
ROOMS = {
    "one step": (0, (1.0, 1.0), True, (1, 1)),
    "reward depends on the observation": (1, (-0.5, -0.5), True, (-0.5, -0.5)),
    "reward depends on the action": (2, (0.0, 1.0), True, (0, 1)),
    "two steps are discounted": (4, (0.0, 0.0), False, (0.9, 0.9)),
    "the second of the two": (4, (1.0, 1.0), True, (1, 1)),
    # Only the time limit ends these two. Were the limit a termination, they would be worth between
    # 1 and 2.71; were the start of the next episode taken for s', they would be mixed.
    "a time limit bootstraps": (5, (1.0, 1.0), False, (10, 10)),
    "from the observation before the reset": (6, (0.0, 0.0), False, (0, 0)),
}
STARTS = (0, 1, 2, 3, 5, 6)
TIME_LIMIT = 3


def rooms() -> Environment:
    """The probes above, observed as one-hot vectors."""
    following, rewards, terminated, _ = (
        jnp.asarray(np.array(column)) for column in zip(*ROOMS.values(), strict=True)
    )

    def reset(key):
        return jax.random.choice(key, jnp.array(STARTS)), jnp.int32(0)

    def step(state, action, key):
        room, t = state[0], state[1] + 1
        outcome = Outcome(
            rewards[room, action].astype(jnp.float32), terminated[room], t >= TIME_LIMIT
        )
        return (following[room], t), outcome

    return Environment(
        "rooms",
        ("a", "b"),
        reset,
        step,
        lambda state: jax.nn.one_hot(state[0], len(ROOMS)),
        lambda state: PICTURE,
        TIME_LIMIT,
    )
