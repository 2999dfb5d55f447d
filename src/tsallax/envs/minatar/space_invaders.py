"""Space Invaders: shoot the aliens, which move down, shoot back, and return in new waves.

Reward 1 per alien. Ramping makes each of the first six new waves move faster.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from tsallax.envs.minatar.common import (
    COLUMNS,
    FIRE,
    LEFT,
    NOOP,
    RIGHT,
    ROWS,
    SIZE,
    Action,
    Advanced,
    Draws,
    Grid,
    Image,
    Layer,
    Ramping,
    Rules,
    cell,
    moves,
)

LAYERS = (  # channel 1, all aliens, is covered by channels 2 and 3
    Layer(2, (240, 228, 66)),
    Layer(3, (150, 60, 150)),
    Layer(0, (86, 180, 233)),
    Layer(4, (255, 255, 255), "dot"),
    Layer(5, (213, 60, 20), "dot"),
)
WAVE = np.zeros((SIZE, SIZE), bool)
WAVE[:4, 2:8] = True
NEW_ROW = np.zeros((1, SIZE), bool)
FLOOR = SIZE - 1  # the cannon's row
RELOAD, ALIEN_RELOAD = 5, 10
SLOWEST, FASTEST = 12, 6  # steps between the moves of many aliens


class Game(NamedTuple):
    x: Int[Array, ""]  # the cannon
    shot_timer: Int[Array, ""]
    aliens: Grid
    bullets: Grid
    alien_bullets: Grid
    dx: Int[Array, ""]  # of the aliens, 1 or -1
    move_interval: Int[Array, ""]
    move_timer: Int[Array, ""]
    alien_shot_timer: Int[Array, ""]


def start(draws: Draws) -> Game:
    del draws
    return Game(
        x=jnp.int32(5),
        shot_timer=jnp.int32(0),
        aliens=jnp.asarray(WAVE),
        bullets=jnp.zeros((SIZE, SIZE), bool),
        alien_bullets=jnp.zeros((SIZE, SIZE), bool),
        dx=jnp.int32(-1),
        move_interval=jnp.int32(SLOWEST),
        move_timer=jnp.int32(SLOWEST),
        alien_shot_timer=jnp.int32(ALIEN_RELOAD),
    )


def advance(game: Game, action: Action, draws: Draws, ramping: Ramping) -> Advanced:
    del draws
    x = jnp.clip(game.x + moves(action, LEFT, RIGHT), 0, 9)
    fire = (action == FIRE) & (game.shot_timer == 0)
    shot_timer = jnp.where(fire, RELOAD, game.shot_timer)
    # A new bullet moves at once, so it appears in row 8: row 9 never has one after a step.
    muzzle = fire & (x == COLUMNS)
    bullets = jnp.concatenate([game.bullets[1:FLOOR], muzzle, NEW_ROW])
    alien_bullets = jnp.concatenate([NEW_ROW, game.alien_bullets[:FLOOR]])

    aliens, dx, overrun = _march(game, x)
    shot = jnp.any(alien_bullets[FLOOR:] & (x == COLUMNS))

    alien_fire = game.alien_shot_timer == 0
    alien_bullets = alien_bullets | (alien_fire & _shooter(aliens, x))
    kills = aliens & bullets
    aliens, bullets = aliens & ~kills, bullets & ~kills

    cleared = ~jnp.any(aliens)
    faster = cleared & (game.move_interval > FASTEST) & ramping
    count = jnp.sum(game.aliens, dtype=jnp.int32)
    move_timer = jnp.where(
        game.move_timer == 0, jnp.minimum(count, game.move_interval), game.move_timer
    )
    return (
        Game(
            x=x,
            shot_timer=jnp.maximum(shot_timer - 1, 0),
            aliens=aliens | (cleared & WAVE),
            bullets=bullets,
            alien_bullets=alien_bullets,
            dx=dx,
            move_interval=game.move_interval - faster,
            move_timer=move_timer - 1,
            alien_shot_timer=jnp.where(alien_fire, ALIEN_RELOAD, game.alien_shot_timer) - 1,
        ),
        jnp.sum(kills, dtype=jnp.float32),
        shot | overrun,
    )


def _march(game: Game, x: Int[Array, ""]) -> tuple[Grid, Int[Array, ""], Bool[Array, ""]]:
    """The aliens after their move (if one is due), their direction, and whether they have won."""
    now = game.move_timer == 0
    border = jnp.where(game.dx < 0, game.aliens[:, 0], game.aliens[:, -1])
    descend = now & jnp.any(border)
    sideways = now & ~descend
    # By the rules the roll moves row 9 to row 0; sideways no alien is at the border.
    aliens = jnp.where(descend, jnp.roll(game.aliens, 1, axis=0), game.aliens)
    aliens = jnp.where(sideways & (game.dx < 0), jnp.roll(game.aliens, -1, axis=1), aliens)
    aliens = jnp.where(sideways & (game.dx > 0), jnp.roll(game.aliens, 1, axis=1), aliens)
    landed = descend & jnp.any(game.aliens[FLOOR])
    touch = jnp.any((game.aliens[FLOOR:] | aliens[FLOOR:]) & (x == COLUMNS))
    return aliens, jnp.where(descend, -game.dx, game.dx), landed | touch


def _shooter(aliens: Grid, x: Int[Array, ""]) -> Grid:
    """The cell of the lowest alien in the nearest column; the left one of two such columns."""
    nearness = 2 * jnp.abs(COLUMNS - x) + (x < COLUMNS)
    order = SIZE * nearness + FLOOR - ROWS
    return order == jnp.min(jnp.where(aliens, order, order.size * SIZE))


def observe(game: Game) -> Image:
    cannon = cell(jnp.int32(FLOOR), game.x)
    left, right = game.aliens & (game.dx < 0), game.aliens & (game.dx > 0)
    layers = [cannon, game.aliens, left, right, game.bullets, game.alien_bullets]
    return jnp.stack(layers, axis=-1)


MINIMAL = (NOOP, LEFT, RIGHT, FIRE)
RULES = Rules("MinAtar/SpaceInvaders", 0, start, advance, observe, MINIMAL, LAYERS)
