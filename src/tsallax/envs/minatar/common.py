"""The parts shared by the MinAtar games: actions, sticky actions, time limits, the renderer.

The rules of every game are in docs/minatar-rules.md; they are by Young and Tian (2019,
arXiv:1903.03176). Two deviations from the original: a reset clears the last action, so that an
episode does not depend on earlier ones, and a time limit truncates where the original terminates.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from tsallax.types import Environment, Outcome

SIZE = 10  # the grid is SIZE x SIZE; x is the column, y is the row
ROWS, COLUMNS = np.arange(SIZE)[:, None], np.arange(SIZE)[None]
ACTIONS = ("noop", "left", "up", "right", "down", "fire")
NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(len(ACTIONS))

Game = Any  # the state of a game: a NamedTuple of arrays
Action = Int[Array, ""]
Draws = Float[Array, "n"]  # uniform on [0, 1): all random numbers that a step may need
Grid = Bool[Array, "10 10"]  # [y, x]
Image = Bool[Array, "10 10 channels"]
Ramping = bool | Bool[Array, ""]
Advanced = tuple[Game, Float[Array, ""], Bool[Array, ""]]  # next state, reward, terminal


class Layer(NamedTuple):
    """How one channel is drawn: a colour, and the part of the cell that it fills."""

    channel: int
    colour: tuple[int, int, int]
    shape: str = "cell"


class Rules(NamedTuple):
    """One game. All randomness is in the argument `draws`, so that `advance` can be replayed.

    The result of `advance` after a terminal state is undefined, as the loop resets.
    """

    id: str
    num_draws: int
    start: Callable[[Draws], Game]
    advance: Callable[[Game, Action, Draws, Ramping], Advanced]
    observe: Callable[[Game], Image]
    minimal_actions: tuple[int, ...]
    layers: tuple[Layer, ...]  # later layers cover earlier ones
    time_limit: int | None = None


class State(NamedTuple):
    """A game with the state of the episode around it."""

    game: Game
    last_action: Action  # as executed, an index into ACTIONS
    steps: Int[Array, ""]


def environment(
    rules: Rules,
    sticky: float | Float[Array, ""] = 0.1,
    ramping: bool = True,
    minimal_actions: bool = False,
    time_limit: int | None = None,
) -> Environment:
    """`rules` with sticky actions and the shorter of the game's and the given time limit."""
    actions = rules.minimal_actions if minimal_actions else range(len(ACTIONS))
    limit = min((n for n in (rules.time_limit, time_limit) if n is not None), default=None)

    def reset(key: PRNGKeyArray) -> State:
        draws = jax.random.uniform(key, (rules.num_draws,))
        return State(rules.start(draws), jnp.int32(NOOP), jnp.int32(0))

    def step(state: State, action: Action, key: PRNGKeyArray) -> tuple[State, Outcome]:
        # One call for all numbers, as a call of the generator costs more than most games' rules.
        draws = jax.random.uniform(key, (1 + rules.num_draws,))
        given = jnp.asarray(actions, jnp.int32)[action] if minimal_actions else action
        executed = jnp.where(draws[0] < sticky, state.last_action, given).astype(jnp.int32)
        game, reward, terminated = rules.advance(state.game, executed, draws[1:], ramping)
        steps = state.steps + 1
        truncated = jnp.asarray(False) if limit is None else steps >= limit
        return State(game, executed, steps), Outcome(reward, terminated, truncated)

    return Environment(
        id=rules.id,
        action_names=tuple(ACTIONS[a] for a in actions),
        reset=reset,
        step=step,
        observe=lambda state: rules.observe(state.game),
        render=lambda state: paint(rules.observe(state.game), rules.layers),
        time_limit=limit,
    )


def moves(action: Action, less: int, more: int) -> Int[Array, ""]:
    """-1, 0 or 1: the change of a coordinate by two opposite actions."""
    return (action == more).astype(jnp.int32) - (action == less).astype(jnp.int32)


NOWHERE = -SIZE  # the x of removed objects; neighbouring cells are off the grid as well


def glide(x: Int[Array, "*n"], dx: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """Move by one cell, to NOWHERE if that is off the grid."""
    moved = x + dx
    return jnp.where((moved >= 0) & (moved < SIZE), moved, NOWHERE)


def cell(y: Int[Array, ""], x: Int[Array, ""]) -> Grid:
    """A grid with one cell set, or none if (y, x) is off the grid."""
    return (y == ROWS) & (x == COLUMNS)


PIXELS = 16  # per cell and side
BACKGROUND, TILE = (17, 17, 23), (22, 22, 29)  # tiles make empty cells visible


def paint(
    image: Bool[Array, "10 10 channels"], layers: tuple[Layer, ...]
) -> UInt8[Array, "160 160 3"]:
    empty = np.where(SHAPES["cell"][..., None], TILE, BACKGROUND).astype(np.uint8)
    canvas = jnp.broadcast_to(empty[None, :, None], (SIZE, PIXELS, SIZE, PIXELS, 3))
    for channel, colour, shape in layers:
        where = image[:, None, :, None, channel] & SHAPES[shape][None, :, None]
        ink = np.array(colour, np.uint8).reshape(1, 1, 1, 1, 3)
        canvas = jnp.where(where[..., None], ink, canvas)
    return canvas.reshape(SIZE * PIXELS, SIZE * PIXELS, 3)


def _box(sides: tuple[float, float, float, float], radius: float) -> np.ndarray:
    """The pixels of a cell in a box (left, right, top, bottom) with rounded corners."""
    left, right, top, bottom = sides
    at = np.arange(PIXELS) + 0.5
    dx = np.maximum(0, np.maximum(left + radius - at, at - right + radius))
    dy = np.maximum(0, np.maximum(top + radius - at, at - bottom + radius))[:, None]
    inside = (left < at) & (at < right) & ((top < at) & (at < bottom))[:, None]
    return inside & (dx**2 + dy**2 <= radius**2)


SHAPES = {
    "cell": _box((0.5, 15.5, 0.5, 15.5), 3.5),
    "dot": _box((3.0, 13.0, 3.0, 13.0), 5.0),
    "trail": _box((3.0, 13.0, 3.0, 13.0), 3.0),
    "upper": _box((0.5, 15.5, 1.0, 7.5), 1.0),
    "lower": _box((0.5, 15.5, 8.5, 15.0), 1.0),
}
