"""Asterix: collect the gold and avoid the enemies that cross the screen.

Reward 1 per gold. Ramping makes entities appear and move faster, up to nine times.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from tsallax.envs.minatar.common import (
    COLUMNS,
    DOWN,
    LEFT,
    NOOP,
    NOWHERE,
    RIGHT,
    UP,
    Action,
    Advanced,
    Draws,
    Image,
    Layer,
    Ramping,
    Rules,
    cell,
    glide,
    moves,
)

LAYERS = (
    Layer(2, (100, 100, 108), "trail"),
    Layer(3, (240, 228, 66)),
    Layer(1, (213, 94, 0)),
    Layer(0, (86, 180, 233)),
)
ENTITY_Y = np.arange(1, 9)  # slot k is row k + 1; rows 0 and 9 stay empty
BEFORE = np.triu(np.ones((8, 8), bool), 1)  # [j, k]: j < k
RAMP_STEPS, LAST_RAMP = 100, 9


class Game(NamedTuple):
    x: Int[Array, ""]  # the player
    y: Int[Array, ""]
    entity_x: Int[Array, "8"]  # NOWHERE in an empty slot, whose other fields are undefined
    entity_dx: Int[Array, "8"]  # 1 or -1
    entity_gold: Bool[Array, "8"]
    spawn_timer: Int[Array, ""]
    move_timer: Int[Array, ""]
    ramp_timer: Int[Array, ""]
    ramp: Int[Array, ""]  # number of ramps so far, which determines both intervals


def spawn_interval(ramp: Int[Array, ""]) -> Int[Array, ""]:
    return 10 - ramp


def move_interval(ramp: Int[Array, ""]) -> Int[Array, ""]:
    return 5 - ramp // 2


def start(draws: Draws) -> Game:
    del draws
    return Game(
        x=jnp.int32(5),
        y=jnp.int32(5),
        entity_x=jnp.full(8, NOWHERE, jnp.int32),
        entity_dx=jnp.ones(8, jnp.int32),
        entity_gold=jnp.zeros(8, bool),
        spawn_timer=jnp.int32(10),
        move_timer=jnp.int32(5),
        ramp_timer=jnp.int32(RAMP_STEPS),
        ramp=jnp.int32(0),
    )


def advance(game: Game, action: Action, draws: Draws, ramping: Ramping) -> Advanced:
    entity_x, entity_dx, entity_gold = _spawn(game, draws)
    x = jnp.clip(game.x + moves(action, LEFT, RIGHT), 0, 9)
    y = jnp.clip(game.y + moves(action, UP, DOWN), 1, 8)
    touch = (y == ENTITY_Y) & (entity_x == x)
    entity_x = jnp.where(touch & entity_gold, NOWHERE, entity_x)

    move = game.move_timer == 0
    entity_x = jnp.where(move, glide(entity_x, entity_dx), entity_x)
    # Without a move this adds nothing to `touch`.
    touch_again = (y == ENTITY_Y) & (entity_x == x)
    entity_x = jnp.where(touch_again & entity_gold, NOWHERE, entity_x)
    touched = touch | touch_again  # at most one: the player's row

    ramps = (game.ramp < LAST_RAMP) & ramping
    ramp_up = ramps & (game.ramp_timer < 0)
    spawn_timer = jnp.where(game.spawn_timer == 0, spawn_interval(game.ramp), game.spawn_timer)
    move_timer = jnp.where(move, move_interval(game.ramp), game.move_timer)
    return (
        Game(
            x=x,
            y=y,
            entity_x=entity_x,
            entity_dx=entity_dx,
            entity_gold=entity_gold,
            spawn_timer=spawn_timer - 1,
            move_timer=move_timer - 1,
            ramp_timer=jnp.where(ramp_up, RAMP_STEPS, game.ramp_timer - ramps),
            ramp=game.ramp + ramp_up,
        ),
        jnp.any(touched & entity_gold).astype(jnp.float32),
        jnp.any(touched & ~entity_gold),
    )


def _spawn(game: Game, draws: Draws) -> tuple[Int[Array, "8"], Int[Array, "8"], Bool[Array, "8"]]:
    right, gold, slot = draws[0] < 1 / 2, draws[1] < 1 / 3, draws[2]
    empty = game.entity_x < 0
    index = jnp.floor(slot * jnp.sum(empty)).astype(jnp.int32)
    rank = jnp.sum(BEFORE & empty[:, None], axis=0)  # of each slot among the empty ones
    chosen = (game.spawn_timer == 0) & empty & (rank == index)
    return (
        jnp.where(chosen, jnp.where(right, 0, 9), game.entity_x),
        jnp.where(chosen, jnp.where(right, 1, -1), game.entity_dx),
        jnp.where(chosen, gold, game.entity_gold),
    )


def observe(game: Game) -> Image:
    enemy = jnp.where(game.entity_gold, NOWHERE, game.entity_x)[:, None] == COLUMNS
    gold = jnp.where(game.entity_gold, game.entity_x, NOWHERE)[:, None] == COLUMNS
    trail = (game.entity_x - game.entity_dx)[:, None] == COLUMNS
    rows = jnp.stack([enemy, trail, gold], axis=-1)
    entities = jnp.pad(rows, ((1, 1), (0, 0), (0, 0)))
    return jnp.concatenate([cell(game.y, game.x)[..., None], entities], axis=-1)


MINIMAL = (NOOP, LEFT, UP, RIGHT, DOWN)
RULES = Rules("MinAtar/Asterix", 3, start, advance, observe, MINIMAL, LAYERS)
