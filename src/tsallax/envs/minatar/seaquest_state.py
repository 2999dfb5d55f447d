"""Seaquest's state and its observation; the rules are in seaquest.py."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from tsallax.envs.minatar.common import (
    COLUMNS,
    NOWHERE,
    ROWS,
    SIZE,
    Draws,
    Grid,
    Image,
    Layer,
    cell,
)

LAYERS = (
    Layer(7, (86, 180, 233), "upper"),
    Layer(8, (213, 94, 0), "lower"),
    Layer(3, (72, 72, 80), "trail"),
    Layer(9, (30, 193, 213)),
    Layer(5, (31, 22, 250)),
    Layer(6, (160, 205, 95)),
    Layer(1, (165, 0, 5)),
    Layer(0, (240, 228, 66)),
    Layer(2, (255, 255, 255), "dot"),
    Layer(4, (177, 48, 148), "dot"),
)
GAUGES = ROWS == SIZE - 1  # row 9 has only gauges
OXYGEN, CREW, RELOAD = 200, 6, 5
ENEMY_RELOAD, DIVER_PAUSE, DIVER_INTERVAL, LAST_RAMP = 10, 5, 30, 19
# Bounds from docs/minatar-rules.md: an object is removed before its slot is needed again.
ENEMIES, DIVERS, BULLETS = 30, 2, 2


class Enemies(NamedTuple):
    """Fish and submarines, the newest in slot 0; x is NOWHERE if it has been removed.

    A submarine's bullet is removed before the next one is fired, and leaves the grid no later than
    the submarine would: so it shares the slot, with its row and direction.
    """

    x: Int[Array, "n"]
    y: Int[Array, "n"]
    dx: Int[Array, "n"]
    sub: Bool[Array, "n"]
    timer: Int[Array, "n"]  # steps until the next move
    shot_timer: Int[Array, "n"]
    shot_x: Int[Array, "n"]


class Divers(NamedTuple):
    """The divers, the newest in slot 0."""

    x: Int[Array, "n"]
    y: Int[Array, "n"]
    dx: Int[Array, "n"]
    timer: Int[Array, "n"]


class Bullets(NamedTuple):
    """The player's bullets, the newest in slot 0.

    Each stays ahead of the player, who is not faster, so no two are ever in the same cell.
    """

    x: Int[Array, "n"]
    y: Int[Array, "n"]
    dx: Int[Array, "n"]


class Game(NamedTuple):
    x: Int[Array, ""]  # the player's front
    y: Int[Array, ""]
    dx: Int[Array, ""]  # the side that the player faces
    oxygen: Int[Array, ""]
    crew: Int[Array, ""]  # divers on board: -1 and below after surfacing with six
    surfaced: Bool[Array, ""]
    shot_timer: Int[Array, ""]
    enemy_timer: Int[Array, ""]
    diver_timer: Int[Array, ""]
    ramp: Int[Array, ""]  # number of ramps so far, which determines both enemy intervals
    enemies: Enemies
    divers: Divers
    bullets: Bullets


def spawn_interval(ramp: Int[Array, ""]) -> Int[Array, ""]:
    return 20 - ramp


def move_interval(ramp: Int[Array, ""]) -> Int[Array, ""]:
    return jnp.maximum(5 - ramp // 2, 2)


def start(draws: Draws) -> Game:
    del draws

    def empty(n: int) -> Int[Array, "n"]:
        return jnp.full(n, NOWHERE, jnp.int32)

    enemy, diver, bullet = empty(ENEMIES), empty(DIVERS), empty(BULLETS)
    sub = jnp.zeros(ENEMIES, bool)
    return Game(
        x=jnp.int32(5),
        y=jnp.int32(0),
        dx=jnp.int32(-1),
        oxygen=jnp.int32(OXYGEN),
        crew=jnp.int32(0),
        surfaced=jnp.asarray(True),
        shot_timer=jnp.int32(0),
        enemy_timer=jnp.int32(20),
        diver_timer=jnp.int32(DIVER_INTERVAL),
        ramp=jnp.int32(0),
        enemies=Enemies(enemy, enemy, enemy, sub, enemy, enemy, enemy),
        divers=Divers(diver, diver, diver, diver),
        bullets=Bullets(bullet, bullet, bullet),
    )


def observe(game: Game) -> Image:
    enemies, divers, bullets = game.enemies, game.divers, game.bullets

    def grid(y: Int[Array, "n"], x: Int[Array, "n"]) -> Grid:
        return jnp.any(jax.vmap(cell)(y, x), axis=0)

    trail = grid(enemies.y, enemies.x - enemies.dx) | grid(divers.y, divers.x - divers.dx)
    layers = [
        cell(game.y, game.x),
        cell(game.y, game.x - game.dx),
        grid(bullets.y, bullets.x),
        trail,
        grid(enemies.y, enemies.shot_x),
        grid(enemies.y, jnp.where(enemies.sub, NOWHERE, enemies.x)),
        grid(enemies.y, jnp.where(enemies.sub, enemies.x, NOWHERE)),
        GAUGES & (game.oxygen * 10 // OXYGEN > COLUMNS),
        GAUGES & (9 - game.crew <= COLUMNS) & (COLUMNS < 9),
        grid(divers.y, divers.x),
    ]
    return jnp.stack(layers, axis=-1)
