"""Seaquest: a submarine picks up divers among fish and enemies, while the air runs out.

Reward 1 per enemy shot, and a reward for surfacing with six divers that grows with the air left.
Ramping makes enemies appear and move faster each time the player surfaces, up to 19 times.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from tsallax.envs.minatar.common import (
    DOWN,
    FIRE,
    LEFT,
    NOOP,
    NOWHERE,
    RIGHT,
    SIZE,
    UP,
    Action,
    Advanced,
    Draws,
    Ramping,
    Rules,
    glide,
    moves,
)
from tsallax.envs.minatar.seaquest_state import (
    CREW,
    DIVER_INTERVAL,
    DIVER_PAUSE,
    ENEMIES,
    ENEMY_RELOAD,
    LAST_RAMP,
    LAYERS,
    OXYGEN,
    RELOAD,
    Bullets,
    Divers,
    Enemies,
    Game,
    move_interval,
    observe,
    spawn_interval,
    start,
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
    """Put `new` into slot 0 and move all others by one slot, so that slots are in order of age."""

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
    """A rank from 0 to 2 ENEMIES - 1 that grows with age; fish rank above submarines."""
    return jnp.where(enemies.sub, 0, ENEMIES) + np.arange(ENEMIES)


def _hits(
    bullets: Bullets, enemies: Enemies, targets: Int[Array, "n"], priority: Int[Array, "n"]
) -> tuple[Bool[Array, "m"], Bool[Array, "n"]]:
    """Bullets that hit, and enemies killed: of those hit, the one with the highest priority.

    Enemies are hit at x = `targets`, in their rows.
    """
    column = (bullets.x >= 0)[:, None] & (bullets.x[:, None] == targets[None])
    rank = jnp.where(column & (bullets.y[:, None] == enemies.y[None]), priority[None], -1)
    first = jnp.max(rank, axis=1, keepdims=True)
    return first[:, 0] >= 0, jnp.any((first >= 0) & (rank == first), axis=0)


def _shoot(enemies: Enemies, bullets: Bullets) -> tuple[Enemies, Bullets, Int[Array, ""]]:
    """Move bullets; each kills one enemy in its cell: fish before submarines, oldest first."""
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
    """Enemies move, shoot, hit bullets (submarines before fish, newest first) and the player."""
    move = (enemies.timer == 0) & (enemies.x >= 0)
    moved_x = jnp.where(move, enemies.x + enemies.dx, enemies.x)

    # A submarine that is removed in this step still fires.
    fire = enemies.sub & (enemies.x >= 0) & (enemies.shot_timer == 0)
    muzzle_x = jnp.where(fire, moved_x, enemies.shot_x)
    shot_x = glide(muzzle_x, enemies.dx)
    near = (enemies.x == x) | (moved_x == x) | (muzzle_x == x) | (shot_x == x)
    caught = jnp.any((enemies.y == y) & near)

    # The player's cell holds no bullet, so an enemy never hits both.
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


MINIMAL = (NOOP, LEFT, UP, RIGHT, DOWN, FIRE)
RULES = Rules("MinAtar/Seaquest", 5, start, advance, observe, MINIMAL, LAYERS)
