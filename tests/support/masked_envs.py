"""A staircase whose steps do not allow every action, in JAX and in Gymnasium.

Action 3 pays the most and is never allowed; a forbidden action gives NaN in JAX, which a run notes
as diverged, and raises in Gymnasium. Observations are the position alone, so that
`allowed(position)` checks every mask that is stored beside one.
"""

from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from tsallax.types import Environment, Outcome

TOP, LIMIT = 6, 15
MOVES = np.array([-1, 1, 2, 0])  # down, up, leap, cheat
ALLOWED = np.array(
    [  # by position; the top is left at once
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [1, 1, 1, 0],
        [1, 1, 0, 0],
        [0, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 0, 0, 0],
    ],
    bool,
)


class State(NamedTuple):
    x: jax.Array
    t: jax.Array


def stairs(limit: int = LIMIT) -> Environment:
    """Climb to the top, which pays 1."""
    table = jnp.asarray(ALLOWED)

    def reset(key):
        return State(jax.random.randint(key, (), 0, 3), jnp.int32(0))

    def step(state, action, key):
        x = jnp.clip(state.x + jnp.asarray(MOVES)[action], 0, TOP)
        t = state.t + 1
        reward = jnp.where(table[state.x, action], (x == TOP).astype(jnp.float32), jnp.nan)
        return State(x, t), Outcome(reward, x == TOP, t >= limit)

    def observe(state):
        return jax.nn.one_hot(state.x, TOP + 1)

    def render(state):
        return jnp.zeros((4, 4, 3), jnp.uint8)

    names = ("down", "up", "leap", "cheat")
    return Environment(
        "Stairs", names, reset, step, observe, render, limit, allowed=lambda state: table[state.x]
    )


class Stairs(gymnasium.Env):
    """The same; a position is Discrete."""

    observation_space = gymnasium.spaces.Discrete(TOP + 1)
    action_space = gymnasium.spaces.Discrete(4)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium's)

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = int(self.np_random.integers(3)), 0
        return self.x, self._info()

    def step(self, action):
        if not ALLOWED[self.x, action]:
            raise ValueError(f"{action} is not allowed at {self.x}")
        self.x, self.t = int(np.clip(self.x + MOVES[action], 0, TOP)), self.t + 1
        return self.x, float(self.x == TOP), self.x == TOP, self.t >= LIMIT, self._info()

    def _info(self):
        return {"action_mask": ALLOWED[self.x].astype(np.int8)}

    def render(self):
        return np.full((40, 40, 3), 30 * self.x, np.uint8)


def register() -> None:
    if "tests/Stairs-v0" not in gymnasium.registry:
        gymnasium.register("tests/Stairs-v0", Stairs)


register()
