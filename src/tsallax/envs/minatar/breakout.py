"""Breakout: a ball, a paddle of one cell, and three rows of bricks.

Reward 1 per brick. The game has no ramping; the option exists because all games share it.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from tsallax.envs.minatar.common import (
    COLUMNS,
    LEFT,
    NOOP,
    RIGHT,
    SIZE,
    Action,
    Advanced,
    Draws,
    Image,
    Layer,
    Ramping,
    Rules,
    cell,
    moves,
)

LAYERS = (
    Layer(3, (213, 94, 0)),
    Layer(2, (100, 100, 108), "trail"),
    Layer(0, (86, 180, 233)),
    Layer(1, (255, 255, 255), "dot"),
)
BRICK_ROWS = np.arange(1, 4)[:, None]
FLOOR = SIZE - 1  # the paddle's row


class Game(NamedTuple):
    paddle: Int[Array, ""]
    x: Int[Array, ""]  # the ball
    y: Int[Array, ""]
    dx: Int[Array, ""]  # 1 or -1
    dy: Int[Array, ""]
    last_x: Int[Array, ""]
    last_y: Int[Array, ""]
    strike: Bool[Array, ""]  # whether the ball's latest target was a brick
    bricks: Bool[Array, "3 10"]


def start(draws: Draws) -> Game:
    """The initial state; its only random choice is the side at which the ball starts."""
    right = draws[0] >= 0.5
    x, y = jnp.where(right, jnp.int32(9), 0), jnp.int32(3)
    dx = jnp.where(right, jnp.int32(-1), 1)
    bricks = jnp.ones((3, SIZE), bool)
    return Game(jnp.int32(4), x, y, dx, jnp.int32(1), x, y, jnp.asarray(False), bricks)


def advance(game: Game, action: Action, draws: Draws, ramping: Ramping) -> Advanced:
    del draws, ramping
    paddle = jnp.clip(game.paddle + moves(action, LEFT, RIGHT), 0, 9)

    wall = (game.x + game.dx < 0) | (game.x + game.dx > 9)
    dx = jnp.where(wall, -game.dx, game.dx)
    x = jnp.where(wall, game.x, game.x + game.dx)
    y = game.y + game.dy

    target = (y == BRICK_ROWS) & (x == COLUMNS)
    brick = jnp.any(game.bricks & target)
    hit = brick & ~game.strike
    floor = y == FLOOR
    saved = floor & (paddle == game.x)
    turned = floor & ~saved & (paddle == x)
    lost = floor & ~saved & ~turned
    # No brick can be hit at the floor, so the previous bricks tell whether any is left.
    refill = floor & ~jnp.any(game.bricks)

    # At the ceiling the rules set y to 0, where the ball already was.
    bounced = (y < 0) | hit | saved | turned
    return (
        Game(
            paddle=paddle,
            x=x,
            y=jnp.where(bounced, game.y, y),
            dx=jnp.where(turned, -dx, dx),
            dy=jnp.where(bounced, -game.dy, game.dy),
            last_x=game.x,
            last_y=game.y,
            strike=brick,
            bricks=game.bricks & ~(target & hit) | refill,
        ),
        hit.astype(jnp.float32),
        lost,
    )


def observe(game: Game) -> Image:
    bricks = jnp.zeros((SIZE, SIZE), bool).at[1:4].set(game.bricks)
    paddle = cell(jnp.int32(FLOOR), game.paddle)
    ball, trail = cell(game.y, game.x), cell(game.last_y, game.last_x)
    return jnp.stack([paddle, ball, trail, bricks], axis=-1)


MINIMAL = (NOOP, LEFT, RIGHT)
RULES = Rules("MinAtar/Breakout", 1, start, advance, observe, MINIMAL, LAYERS)
