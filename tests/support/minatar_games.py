"""Adapters of the five games for the oracle: draws, states in comparable form, and players.

Attributes of the original are named in docs/minatar-rules.md.
"""

from typing import Any

import jax
import numpy as np

from support.minatar_oracle import Fields, Oracle
from tsallax.envs.minatar import (
    asterix,
    breakout,
    freeway,
    seaquest,
    seaquest_state,
    space_invaders,
)

N, L, U, R, D, F = range(6)


def _nothing(*_) -> list:
    return []


def _scalars(game: Any, names: dict[str, str]) -> Fields:
    return {ours: int(getattr(game, theirs)) for ours, theirs in names.items()}


def _toward(x: int, y: int, to_x: int, to_y: int) -> int:
    if x != to_x:
        return R if to_x > x else L
    return N if y == to_y else D if to_y > y else U


ASTERIX = {
    "x": "player_x",
    "y": "player_y",
    "spawn_interval": "spawn_speed",
    "move_interval": "move_speed",
    "spawn_timer": "spawn_timer",
    "move_timer": "move_timer",
    "ramp_timer": "ramp_timer",
    "ramp": "ramp_index",
}


def _asterix_player(game, t, rng) -> int:
    """Runs for the nearest gold."""
    x, y = game.player_x, game.player_y
    gold = [e for e in game.entities if e is not None and e[3]]
    if rng.random() < 0.1 or not gold:
        return int(rng.integers(6))
    near = min(gold, key=lambda e: 2 * abs(e[1] - y) + abs(e[0] - x))
    return _toward(x, y, near[0], near[1])


def _asterix_draws(game, action, u) -> list:
    if game.spawn_timer:
        return []
    return list(u if None in game.entities else u[:2])


def _asterix_original(game) -> Fields:
    slots = [[-1, 0, 0] if e is None else [e[0], 2 * e[2] - 1, e[3]] for e in game.entities]
    return _scalars(game, ASTERIX) | {"slots": slots}


def _asterix_ours(g: asterix.Game) -> Fields:
    own = {name: value for name, value in g._asdict().items() if name in ASTERIX}
    slots = np.stack([g.entity_x, g.entity_dx, g.entity_gold], axis=-1)
    return own | {
        "spawn_interval": jax.vmap(asterix.spawn_interval)(g.ramp),
        "move_interval": jax.vmap(asterix.move_interval)(g.ramp),
        "slots": np.where(g.entity_x[..., None] < 0, [-1, 0, 0], slots),
    }


BREAKOUT = {
    "paddle": "pos",
    "x": "ball_x",
    "y": "ball_y",
    "direction": "ball_dir",
    "last_x": "last_x",
    "last_y": "last_y",
    "strike": "strike",
}


def _breakout_player(game, t, rng) -> int:
    """Follows the ball, or runs ahead of it; a slip now and then ends the game."""
    if rng.random() < 0.004:
        return int(rng.integers(6))
    dx = 1 if game.ball_dir in (1, 2) else -1
    to = np.clip(game.ball_x + dx, 0, 9) if rng.random() < 0.5 else game.ball_x
    return R if to > game.pos else L if to < game.pos else N


def _breakout_original(game) -> Fields:
    assert not game.brick_map[[0, 4, 5, 6, 7, 8, 9]].any()
    return _scalars(game, BREAKOUT) | {"bricks": game.brick_map[1:4].astype(bool)}


def _breakout_ours(g: breakout.Game) -> Fields:
    direction = np.where(g.dy < 0, np.where(g.dx < 0, 0, 1), np.where(g.dx < 0, 3, 2))
    own = {name: value for name, value in g._asdict().items() if name in BREAKOUT}
    return own | {"direction": direction, "bricks": g.bricks}


def _freeway_player(game, t, rng) -> int:
    """Goes up when the lane ahead looks free; restless enough to be hit now and then."""
    if rng.random() < 0.1:
        return int(rng.integers(6))
    free = game.pos == 1 or abs(game.cars[game.pos - 2][0] - 4) > 1
    return U if free or rng.random() < 0.05 else N


def _freeway_draws(u) -> list:
    return [u[:8], u[8:]]


def _freeway_step_draws(game, action, u) -> list:
    goal = game.pos == 1 and game.move_timer == 0 and action == U
    return _freeway_draws(u) if goal else []


def _freeway_original(game) -> Fields:
    cars = [[x, int(timer), int(speed)] for x, _, timer, speed in game.cars]
    return _scalars(game, {"y": "pos", "pause": "move_timer"}) | {"cars": cars}


def _freeway_ours(g: freeway.Game) -> Fields:
    cars = np.stack([g.car_x, g.car_timer, g.car_speed * g.car_dx], axis=-1)
    return {"y": g.y, "pause": g.pause, "cars": cars}


INVADERS = {
    "x": "pos",
    "shot_timer": "shot_timer",
    "dx": "alien_dir",
    "move_interval": "enemy_move_interval",
    "move_timer": "alien_move_timer",
    "alien_shot_timer": "alien_shot_timer",
    "ramp": "ramp_index",
}


def _invaders_player(game, t, rng) -> int:
    """Shoots and dodges; in every third stretch of time it holds its fire, so that aliens land."""
    x, tired = game.pos, t // 300 % 3 == 2
    if rng.random() < 0.05:
        return int(rng.integers(5 if tired else 6))
    if game.e_bullet_map[6:9, x].any():
        return L if x > 5 else R
    columns = np.flatnonzero(game.alien_map.any(0)) + game.alien_dir
    to = columns[np.abs(columns - x).argmin()]
    if game.shot_timer == 0 and abs(to - x) < 2 and not tired:
        return F
    return R if to > x else L if to < x else N


def _invaders_original(game) -> Fields:
    maps = {"aliens": game.alien_map, "bullets": game.f_bullet_map}
    maps |= {"alien_bullets": game.e_bullet_map}
    return _scalars(game, INVADERS) | {name: m.astype(bool) for name, m in maps.items()}


def _invaders_ours(g: space_invaders.Game) -> Fields:
    return g._asdict() | {"ramp": space_invaders.SLOWEST - g.move_interval}


SEAQUEST = {
    "x": "sub_x",
    "y": "sub_y",
    "oxygen": "oxygen",
    "crew": "diver_count",
    "surfaced": "surface",
    "shot_timer": "shot_timer",
    "enemy_timer": "e_spawn_timer",
    "diver_timer": "d_spawn_timer",
    "spawn_interval": "e_spawn_speed",
    "move_interval": "move_speed",
    "ramp": "ramp_index",
}


def _seaquest_player(game, t, rng) -> int:
    """Collects divers, shoots what is ahead, and surfaces when it must or when it is free."""
    x, y = game.sub_x, game.sub_y
    if rng.random() < 0.05:
        return int(rng.integers(6))
    slack = -1 if game.ramp_index % 3 == 0 else 20  # -1: arrives with no oxygen left
    free = -20 < game.diver_count < 0 and game.ramp_index < 19
    if game.diver_count == 6 or (game.diver_count and game.oxygen <= y + slack) or free:
        return U if y else D
    ahead = [e for e in game.e_fish + game.e_subs if e[1] == y and (e[0] > x) == game.sub_or]
    if ahead and game.shot_timer == 0:
        return F
    if not game.divers:
        return _toward(x, y, 5, 4)
    near = min(game.divers, key=lambda d: abs(d[0] - x) + abs(d[1] - y))
    return _toward(x, y, near[0], near[1])


def _seaquest_draws(game, action, u) -> list:
    enemy = [] if game.e_spawn_timer else u[:3]
    diver = [] if game.d_spawn_timer else u[3:]
    return [*enemy, *diver]


def _padded(rows: list, slots: int, width: int) -> list:
    assert len(rows) <= slots
    signed = [[x, y, 2 * right - 1, *timers] for x, y, right, *timers in rows]
    return signed + [[-1] * width] * (slots - len(rows))


def _seaquest_original(game) -> Fields:
    shots = np.zeros((10, 10, 2), int)  # with copies: our rules keep them as well
    for x, y, right in game.e_bullets:
        shots[y, x, int(right)] += 1
    return _scalars(game, SEAQUEST) | {
        "dx": 2 * int(game.sub_or) - 1,
        "fish": _padded(game.e_fish, seaquest_state.ENEMIES, 4),
        "subs": _padded(game.e_subs, seaquest_state.ENEMIES, 5),
        "divers": _padded(game.divers, seaquest_state.DIVERS, 4),
        "bullets": _padded(game.f_bullets, seaquest_state.BULLETS, 3),
        "shots": shots,
    }


def _oldest_first(mask: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """The slots of `mask` (time, slot), from the last to the first, then -1 for all others."""
    order = np.argsort(~mask[:, ::-1], axis=1, kind="stable")
    rows = np.stack([np.where(mask, c, -1)[:, ::-1] for c in columns], axis=-1)
    return np.take_along_axis(rows, order[..., None], axis=1)


def _seaquest_ours(g: seaquest_state.Game) -> Fields:
    e, d, b = g.enemies, g.divers, g.bullets
    shots = np.zeros((len(g.x), 10, 10, 2), int)
    t, k = np.nonzero(e.shot_x >= 0)
    np.add.at(shots, (t, e.y[t, k], e.shot_x[t, k], (e.dx[t, k] + 1) // 2), 1)
    own = {name: value for name, value in g._asdict().items() if name in SEAQUEST}
    return own | {
        "dx": g.dx,
        "spawn_interval": jax.vmap(seaquest_state.spawn_interval)(g.ramp),
        "move_interval": np.asarray(jax.vmap(seaquest_state.move_interval)(g.ramp)),
        "fish": _oldest_first((e.x >= 0) & ~e.sub, e.x, e.y, e.dx, e.timer),
        "subs": _oldest_first((e.x >= 0) & e.sub, e.x, e.y, e.dx, e.timer, e.shot_timer),
        "divers": _oldest_first(d.x >= 0, d.x, d.y, d.dx, d.timer),
        "bullets": _oldest_first(b.x >= 0, b.x, b.y, b.dx),
        "shots": shots,
    }


ORACLES = {
    oracle.rules.id: oracle
    for oracle in (
        Oracle(
            "asterix",
            asterix.RULES,
            _nothing,
            _asterix_draws,
            _asterix_original,
            _asterix_ours,
            _asterix_player,
            mercy=0.95,
        ),
        Oracle(
            "breakout",
            breakout.RULES,
            list,
            _nothing,
            _breakout_original,
            _breakout_ours,
            _breakout_player,
        ),
        Oracle(
            "freeway",
            freeway.RULES,
            _freeway_draws,
            _freeway_step_draws,
            _freeway_original,
            _freeway_ours,
            _freeway_player,
        ),
        Oracle(
            "seaquest",
            seaquest.RULES,
            _nothing,
            _seaquest_draws,
            _seaquest_original,
            _seaquest_ours,
            _seaquest_player,
            mercy=0.98,
        ),
        Oracle(
            "space_invaders",
            space_invaders.RULES,
            _nothing,
            _nothing,
            _invaders_original,
            _invaders_ours,
            _invaders_player,
            mercy=0.98,
        ),
    )
}
