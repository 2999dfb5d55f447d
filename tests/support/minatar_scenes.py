"""Random scenes of Seaquest, dense with events that play reaches seldom."""

from typing import Any

import jax
import numpy as np

from tsallax.envs.minatar import seaquest_state
from tsallax.envs.minatar.common import NOWHERE


def put(game: Any, rng: np.random.Generator) -> None:
    """Writes a scene into the original. Few rows, so that things meet.

    The scenes keep what the rules guarantee: a bullet is ahead of the player (see `Bullets`), and
    there are no more objects than fit.
    """
    rows = rng.choice(np.arange(1, 9), 2, replace=False)

    def row() -> int:
        return int(rng.choice(rows))

    def flag() -> bool:
        return bool(rng.random() < 0.5)

    def timer(limit: int) -> int:
        return int(rng.integers(1, limit + 1)) if flag() else 0

    ramp = int(rng.integers(20))
    game.ramp_index, game.e_spawn_speed, game.move_speed = ramp, 20 - ramp, max(2, 5 - ramp // 2)
    game.e_spawn_timer, game.d_spawn_timer = timer(3), timer(3)
    game.sub_x, game.sub_y = int(rng.integers(10)), 1 if flag() else row()
    game.sub_or = game.sub_x > 0 and (game.sub_x == 9 or flag())
    game.oxygen, game.surface = timer(200), False
    game.diver_count, game.shot_timer = int(rng.choice([-1, 0, 1, 4, 5, 6])), timer(4)

    def column() -> int:
        return game.sub_x if rng.random() < 0.3 else int(rng.integers(10))

    subs, fish, shots = rng.integers(1, 9, 3)
    game.e_subs = [[column(), row(), flag(), timer(2), timer(10)] for _ in range(subs)]
    game.e_fish = [[column(), row(), flag(), timer(2)] for _ in range(fish)]
    game.e_bullets = [[column(), row(), flag()] for _ in range(shots)]
    divers = rng.integers(3 if game.d_spawn_timer else 2)  # leave a slot if one is due
    game.divers = [[column(), row(), flag(), timer(5)] for _ in range(divers)]
    if game.d_spawn_timer and rng.random() < 0.1:  # room for one of two
        game.diver_count = 5
        game.divers = [[game.sub_x, game.sub_y, flag(), timer] for timer in (1, 2)]
    left = [[x, y, False] for x in range(game.sub_x) for y in rows]
    right = [[x, y, True] for x in range(game.sub_x + 1, 10) for y in rows]
    # One bullet: a second one may be fired in this step.
    game.f_bullets = [list(rng.choice(np.array(left + right, object)))]


def ours(game: Any) -> seaquest_state.Game:
    """The scene in our form. A bullet without its submarine is in the slot of one that is gone."""

    def slots(cls, rows: list, count: int):
        empty = [NOWHERE] * len(cls._fields)
        rows = rows[::-1] + [empty] * (count - len(rows))  # newest first
        return cls(*np.array(rows, np.int32).T)

    def sign(right: bool) -> int:
        return 2 * right - 1

    subs = [[x, y, sign(r), 1, t, s, NOWHERE] for x, y, r, t, s in game.e_subs]
    fish = [[x, y, sign(r), 0, t, 0, NOWHERE] for x, y, r, t in game.e_fish]
    shots = [[NOWHERE, y, sign(r), 1, 9, 9, x] for x, y, r in game.e_bullets]
    enemies = slots(seaquest_state.Enemies, subs + fish + shots, seaquest_state.ENEMIES)
    divers = [[x, y, sign(r), t] for x, y, r, t in game.divers]
    bullets = [[x, y, sign(r)] for x, y, r in game.f_bullets]
    names = "sub_x", "sub_y", "oxygen", "diver_count", "shot_timer", "e_spawn_timer"
    x, y, oxygen, crew, *timers = (np.int32(getattr(game, name)) for name in names)
    return seaquest_state.Game(
        x,
        y,
        np.int32(sign(game.sub_or)),
        oxygen,
        crew,
        np.bool_(game.surface),
        *timers,
        np.int32(game.d_spawn_timer),
        np.int32(game.ramp_index),
        enemies._replace(sub=enemies.sub == 1),
        slots(seaquest_state.Divers, divers, seaquest_state.DIVERS),
        slots(seaquest_state.Bullets, bullets, seaquest_state.BULLETS),
    )


def stack(games: list[seaquest_state.Game]) -> seaquest_state.Game:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *games)
