"""Seaquest: a submarine picks up divers among fish and enemies, while the air runs out."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from tsallax.envs.base import Environment
from tsallax.envs.minatar.common import (
    COLUMNS,
    DOWN,
    FIRE,
    LEFT,
    NOOP,
    NOWHERE,
    RIGHT,
    ROWS,
    SIZE,
    UP,
    Action,
    Advanced,
    Draws,
    Grid,
    Image,
    Layer,
    Ramping,
    Rules,
    cell,
    environment,
    glide,
    moves,
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
GAUGES = ROWS == SIZE - 1  # row 9 shows nothing else
OXYGEN, CREW, RELOAD = 200, 6, 5
ENEMY_RELOAD, DIVER_PAUSE, DIVER_INTERVAL, LAST_RAMP = 10, 5, 30, 19
# Bounds of docs/minatar-rules.md: an object is gone before its slot is needed again.
ENEMIES, DIVERS, BULLETS = 30, 2, 2


class Enemies(NamedTuple):
    """Fish and submarines, the newest in slot 0; x is NOWHERE if it is gone.

    A submarine's bullet is gone before the next one is fired, and leaves the grid no later than the
    submarine would: so it needs no slot of its own, and keeps the row and direction of its slot.
    """

    x: Int[Array, "n"]
    y: Int[Array, "n"]
    dx: Int[Array, "n"]
    sub: Bool[Array, "n"]
    timer: Int[Array, "n"]  # steps until the next move
    shot_timer: Int[Array, "n"]
    shot_x: Int[Array, "n"]


class Divers(NamedTuple):
    """The newest in slot 0."""

    x: Int[Array, "n"]
    y: Int[Array, "n"]
    dx: Int[Array, "n"]
    timer: Int[Array, "n"]


class Bullets(NamedTuple):
    """The player's, the newest in slot 0.

    Each stays ahead of the player, who is no faster, so no two are ever in one cell.
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
    ramp: Int[Array, ""]  # number of ramps so far; both enemy intervals follow from it
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


def advance(game: Game, action: Action, draws: Draws, ramping: Ramping) -> Advanced:
    enemies = _spawn_enemy(game, draws[:3])
    divers = _spawn_diver(game, draws[3:])
    x = jnp.clip(game.x + moves(action, LEFT, RIGHT), 0, 9)
    y = jnp.clip(game.y + moves(action, UP, DOWN), 0, 8)
    turn = moves(action, LEFT, RIGHT)
    dx = jnp.where(turn == 0, game.dx, turn)
    fire = (action == FIRE) & (game.shot_timer == 0)
    bullets = _push(fire, Bullets(x, y, dx), game.bullets)

    enemies, bullets, shot_down = _shoot(enemies, bullets)
    divers, crew = _pick_up(divers, game.crew, x, y)
    enemies, bullets, rammed, caught = _attack(enemies, bullets, x, y, move_interval(game.ramp))

    deep = y > 0
    back = ~deep & ~game.surfaced
    surface = back & (crew != 0)
    full = surface & (crew == CREW)
    bonus = jnp.where(full, game.oxygen * 10 // OXYGEN, 0)
    oxygen = jnp.where(surface, OXYGEN, game.oxygen - deep)
    crew_left = jnp.where(full, 0, crew) - surface
    enemy_timer = jnp.where(game.enemy_timer == 0, spawn_interval(game.ramp), game.enemy_timer)
    diver_timer = jnp.where(game.diver_timer == 0, DIVER_INTERVAL, game.diver_timer)
    shot_timer = jnp.where(fire, RELOAD, game.shot_timer)
    return (
        Game(
            x=x,
            y=y,
            dx=dx,
            oxygen=oxygen,
            crew=crew_left,
            surfaced=~deep & (game.surfaced | surface),
            shot_timer=jnp.maximum(shot_timer - 1, 0),
            enemy_timer=jnp.maximum(enemy_timer - 1, 0),
            diver_timer=jnp.maximum(diver_timer - 1, 0),
            ramp=game.ramp + (surface & (game.ramp < LAST_RAMP) & ramping),
            enemies=enemies,
            divers=divers,
            bullets=bullets,
        ),
        (shot_down + rammed + bonus).astype(jnp.float32),
        caught | (game.oxygen <= 0) | (back & (crew == 0)),
    )


Slots = TypeVar("Slots", Enemies, Divers, Bullets)


def _push(when: Bool[Array, ""], new: Slots, slots: Slots) -> Slots:
    """`new` in slot 0 and all others one slot further, so that slots are in order of age."""

    def push(first: Array, rest: Array) -> Array:
        return jnp.where(when, jnp.concatenate([first[None], rest[:-1]]), rest)

    return jax.tree.map(push, new, slots)


def _enter(right: Bool[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    return jnp.where(right, 0, SIZE - 1), jnp.where(right, 1, -1)


def _row(draw: Float[Array, ""]) -> Int[Array, ""]:
    return 1 + jnp.floor(draw * 8).astype(jnp.int32)


def _spawn_enemy(game: Game, draws: Float[Array, "3"]) -> Enemies:
    enemies = game.enemies
    x, dx = _enter(draws[0] < 1 / 2)
    sub, y = draws[1] < 1 / 3, _row(draws[2])
    blocked = jnp.any((enemies.x >= 0) & (enemies.y == y) & (enemies.dx != dx))
    timer, shot_timer = move_interval(game.ramp), jnp.int32(ENEMY_RELOAD)
    new = Enemies(x, y, dx, sub, timer, shot_timer, jnp.int32(NOWHERE))
    return _push((game.enemy_timer == 0) & ~blocked, new, enemies)


def _spawn_diver(game: Game, draws: Float[Array, "2"]) -> Divers:
    x, dx = _enter(draws[0] < 1 / 2)
    new = Divers(x, _row(draws[1]), dx, jnp.int32(DIVER_PAUSE))
    return _push(game.diver_timer == 0, new, game.divers)


def _seniority(enemies: Enemies) -> Int[Array, "n"]:
    """Grows with age; every fish is above every submarine. From 0 to 2 ENEMIES - 1."""
    return jnp.where(enemies.sub, 0, ENEMIES) + np.arange(ENEMIES)


def _hits(
    bullets: Bullets, enemies: Enemies, targets: Int[Array, "n"], priority: Int[Array, "n"]
) -> tuple[Bool[Array, "m"], Bool[Array, "n"]]:
    """Bullets that hit, and enemies killed: of those met, the one with the highest priority.

    Enemies are met at x = `targets`, in their rows.
    """
    column = (bullets.x >= 0)[:, None] & (bullets.x[:, None] == targets[None])
    rank = jnp.where(column & (bullets.y[:, None] == enemies.y[None]), priority[None], -1)
    first = jnp.max(rank, axis=1, keepdims=True)
    return first[:, 0] >= 0, jnp.any((first >= 0) & (rank == first), axis=0)


def _shoot(enemies: Enemies, bullets: Bullets) -> tuple[Enemies, Bullets, Int[Array, ""]]:
    """Bullets move, and each kills one enemy in its cell: fish before submarines, old first."""
    bullets = bullets._replace(x=glide(bullets.x, bullets.dx))
    hit, killed = _hits(bullets, enemies, enemies.x, _seniority(enemies))
    return (
        enemies._replace(x=jnp.where(killed, NOWHERE, enemies.x)),
        bullets._replace(x=jnp.where(hit, NOWHERE, bullets.x)),
        jnp.sum(hit, dtype=jnp.int32),
    )


def _pick_up(
    divers: Divers, crew: Int[Array, ""], x: Int[Array, ""], y: Int[Array, ""]
) -> tuple[Divers, Int[Array, ""]]:
    move = divers.timer == 0
    moved_x = jnp.where(move, glide(divers.x, divers.dx), divers.x)
    met = (divers.y == y) & ((divers.x == x) | (moved_x == x))
    newer = met[0] & (crew < CREW)
    older = met[1] & (crew + newer < CREW)
    gone = jnp.stack([newer, older])
    timer = jnp.where(move, DIVER_PAUSE, divers.timer - 1)
    return divers._replace(x=jnp.where(gone, NOWHERE, moved_x), timer=timer), crew + newer + older


def _attack(
    enemies: Enemies,
    bullets: Bullets,
    x: Int[Array, ""],
    y: Int[Array, ""],
    interval: Int[Array, ""],
) -> tuple[Enemies, Bullets, Int[Array, ""], Bool[Array, ""]]:
    """Enemies move, shoot, run into bullets (submarines before fish, new first) and the player."""
    move = (enemies.timer == 0) & (enemies.x >= 0)
    moved_x = jnp.where(move, enemies.x + enemies.dx, enemies.x)

    # A submarine that is removed in this step still fires.
    fire = enemies.sub & (enemies.x >= 0) & (enemies.shot_timer == 0)
    muzzle_x = jnp.where(fire, moved_x, enemies.shot_x)
    shot_x = glide(muzzle_x, enemies.dx)
    near = (enemies.x == x) | (moved_x == x) | (muzzle_x == x) | (shot_x == x)
    caught = jnp.any((enemies.y == y) & near)

    # The player's cell holds no bullet, so an enemy never meets both.
    targets = jnp.where(move, moved_x, NOWHERE)
    hit, killed = _hits(bullets, enemies, targets, 2 * ENEMIES - _seniority(enemies))
    gone = killed | (moved_x < 0) | (moved_x >= SIZE)
    return (
        enemies._replace(
            x=jnp.where(gone, NOWHERE, moved_x),
            timer=jnp.where(move, interval, enemies.timer - 1),
            shot_timer=jnp.where(fire, ENEMY_RELOAD, enemies.shot_timer - 1),
            shot_x=shot_x,
        ),
        bullets._replace(x=jnp.where(hit, NOWHERE, bullets.x)),
        jnp.sum(hit, dtype=jnp.int32),
        caught,
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


MINIMAL = (NOOP, LEFT, UP, RIGHT, DOWN, FIRE)
RULES = Rules("MinAtar/Seaquest", 5, start, advance, observe, MINIMAL, LAYERS)


def make(
    sticky: float = 0.1,
    ramping: bool = True,
    minimal_actions: bool = False,
    time_limit: int | None = None,
) -> Environment:
    """Reward 1 per enemy shot, and more for surfacing with six divers the more air is left.

    Ramping makes enemies come and move faster each time that the player surfaces, 19 times.
    """
    return environment(RULES, sticky, ramping, minimal_actions, time_limit)
