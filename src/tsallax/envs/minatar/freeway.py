"""Freeway: lead a chicken over eight lanes of traffic, as often as the time allows.

Reward 1 per crossing. The game has no ramping; the option exists because all games share it. The
episode ends only after 2501 steps. That is a time limit, so it truncates; the original reports a
terminal state.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from tsallax.envs.minatar.common import (
    COLUMNS,
    DOWN,
    NOOP,
    SIZE,
    UP,
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
    Layer(2, (230, 160, 0), "trail"),
    Layer(3, (150, 130, 135), "trail"),
    Layer(4, (115, 180, 255), "trail"),
    Layer(5, (55, 30, 245), "trail"),
    Layer(6, (120, 0, 130), "trail"),
    Layer(1, (160, 20, 0)),
    Layer(0, (255, 255, 255)),
)
EPISODE = 2501  # steps: the original's timer starts at 2500 and ends the episode below 0
CAR_Y = np.arange(1, 9)
SPEEDS = np.arange(1, 6)[None]
CHICKEN_X, START_Y, PAUSE = 4, 9, 3


class Game(NamedTuple):
    y: Int[Array, ""]  # the chicken
    pause: Int[Array, ""]  # steps until the chicken may move
    car_x: Int[Array, "8"]
    car_speed: Int[Array, "8"]  # steps between moves: a small number is fast
    car_dx: Int[Array, "8"]
    car_timer: Int[Array, "8"]


def traffic(draws: Draws) -> tuple[Int[Array, "8"], Int[Array, "8"]]:
    """Speeds from the first eight numbers, directions from the others."""
    speed = 1 + jnp.floor(draws[:8] * 5).astype(jnp.int32)
    return speed, jnp.where(draws[8:] < 0.5, jnp.int32(-1), 1)


def start(draws: Draws) -> Game:
    speed, dx = traffic(draws)
    return Game(
        y=jnp.int32(START_Y),
        pause=jnp.int32(PAUSE),
        car_x=jnp.zeros(8, jnp.int32),
        car_speed=speed,
        car_dx=dx,
        car_timer=speed,
    )


def advance(game: Game, action: Action, draws: Draws, ramping: Ramping) -> Advanced:
    del ramping
    dy = moves(action, UP, DOWN)
    walk = (game.pause == 0) & (dy != 0)
    pause = jnp.where(walk, PAUSE, game.pause)
    y = jnp.clip(game.y + jnp.where(walk, dy, 0), 0, 9)

    goal = y == 0
    y = jnp.where(goal, START_Y, y)
    new_speed, new_dx = traffic(draws)
    speed = jnp.where(goal, new_speed, game.car_speed)
    dx = jnp.where(goal, new_dx, game.car_dx)
    timer = jnp.where(goal, new_speed, game.car_timer)

    move = timer == 0
    car_x = jnp.where(move, jnp.mod(game.car_x + dx, SIZE), game.car_x)
    # Only the car in the chicken's row can hit: a hit sends the chicken to row 9, without cars.
    hit = jnp.any((y == CAR_Y) & ((game.car_x == CHICKEN_X) | (car_x == CHICKEN_X)))
    return (
        Game(
            y=jnp.where(hit, START_Y, y),
            pause=jnp.maximum(pause - 1, 0),
            car_x=car_x,
            car_speed=speed,
            car_dx=dx,
            car_timer=jnp.where(move, speed, timer - 1),
        ),
        goal.astype(jnp.float32),
        jnp.asarray(False),
    )


def observe(game: Game) -> Image:
    cars = game.car_x[:, None] == COLUMNS
    behind = jnp.mod(game.car_x - game.car_dx, SIZE)[:, None] == COLUMNS
    speeds = behind[:, :, None] & (game.car_speed[:, None] == SPEEDS)[:, None, :]
    lanes = jnp.concatenate([cars[..., None], speeds], axis=-1)
    chicken = cell(game.y, jnp.int32(CHICKEN_X))[..., None]
    return jnp.concatenate([chicken, jnp.pad(lanes, ((1, 1), (0, 0), (0, 0)))], axis=-1)


MINIMAL = (NOOP, UP, DOWN)
RULES = Rules("MinAtar/Freeway", 16, start, advance, observe, MINIMAL, LAYERS, EPISODE)
