"""The MinAtar games against the original package, and against the contract of environments."""

import jax
import jax.numpy as jnp
import minatar
import numpy as np
import pytest

from support import minatar_scenes
from support.minatar_games import ORACLES
from support.minatar_oracle import (
    Served,
    act,
    first_mismatch,
    joined,
    quick,
    record,
    replay,
    stacked,
)
from tsallax.envs import GAMES
from tsallax.envs.minatar import freeway
from tsallax.envs.minatar.common import ACTIONS, FIRE, TILE, Rules, environment, paint

STEPS, STEPS_WITHOUT_RAMPING = 20_000, 3_000
CHANNELS = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}


# How far the recorded play got: (reached, wanted). `on` is true where a state has a state before.


def _asterix_reach(out, before, on):
    full = (before["slots"][:, :, 0] >= 0).all(1)
    return {
        "ramps": (out["ramp"].max(), 9),
        "steps after all ramps": ((out["ramp"] == 9).sum(), 500),
        "spawns into full rows": ((on & full & (before["spawn_timer"] == 0)).sum(), 50),
        "gold": (out["reward"].sum(), 300),
    }


def _breakout_reach(out, before, on):
    number, number_before = out["bricks"].sum((1, 2)), before["bricks"].sum((1, 2))
    still = (out["x"] == out["last_x"]) & (out["y"] == out["last_y"])
    turned = (out["direction"] - before["direction"]) % 4 == 2
    return {
        "refills": ((on & (number_before == 0) & (number == 30)).sum(), 10),
        "bricks entered": ((out["strike"] & (out["reward"] == 0)).sum(), 5),
        "corners": (still.sum(), 50),
        "turned by the paddle": ((on & turned & (out["y"] == 8)).sum(), 50),
        "lost": (out["terminal"].sum(), 10),
    }


def _freeway_reach(out, before, on):
    back = on & (out["y"] == 9) & (before["y"] < 9) & (out["reward"] == 0)
    return {
        "crossings": (out["reward"].sum(), 100),
        "hits": (back.sum(), 100),
        "ends": (out["terminal"].sum(), 5),
    }


def _seaquest_reach(out, before, on):
    alive = [out[kind][:, :, 0] >= 0 for kind in ("fish", "subs")]
    enemies = sum(a.sum(1) for a in alive)
    surfaced = on & (out["oxygen"] == 200) & (before["oxygen"] < 200)
    return {
        "ramps": (out["ramp"].max(), 19),
        "steps after all ramps": ((out["ramp"] == 19).sum(), 2000),
        "enemies at once": (enemies.max(), 20),
        "surfacings": (surfaced.sum(), 100),
        "surfacings with six divers": ((surfaced & (before["crew"] == 6)).sum(), 5),
        "rewards for surfacing": ((out["reward"] > 2).sum(), 1),
        "equal enemy bullets": ((out["shots"] > 1).any((1, 2, 3)).sum(), 5),
        "two divers": ((out["divers"][:, 1, 0] >= 0).sum(), 20),
        "two bullets": ((out["bullets"][:, 1, 0] >= 0).sum(), 20),
        "shot down": (out["reward"].sum(), 500),
    }


def _invaders_reach(out, before, on):
    number, number_before = out["aliens"].sum((1, 2)), before["aliens"].sum((1, 2))
    columns = np.abs(np.arange(10) - out["x"][:, None]) + 99 * ~out["aliens"].any(1)
    tie = (columns == columns.min(1, keepdims=True)).sum(1) == 2
    return {
        "ramps": (out["ramp"].max(), 6),
        "new waves": ((on & (number_before < 24) & (number == 24)).sum(), 20),
        "aliens in row 9": (out["aliens"][:, 9].any(1).sum(), 100),
        "shots from equally near columns": ((tie & (out["alien_shot_timer"] == 9)).sum(), 20),
        "killed": (out["reward"].sum(), 500),
    }


REACH = dict(
    zip(
        GAMES,
        (_asterix_reach, _breakout_reach, _freeway_reach, _seaquest_reach, _invaders_reach),
        strict=True,
    )
)


@pytest.mark.parametrize("game", GAMES)
def test_play_equals_the_original(game):
    """Every state, image, reward and terminal flag, with and without ramping."""
    oracle = ORACLES[game]
    tape = joined(record(oracle, STEPS, 0), record(oracle, STEPS_WITHOUT_RAMPING, 1, ramping=False))
    ours, out = replay(oracle, tape), dict(tape.outputs)
    if game == "MinAtar/Freeway":
        # Its end is a time limit of the environment, not a rule.
        starts = np.flatnonzero(tape.fresh)
        ends = starts[(starts > 0) & (starts != STEPS)] - 1
        assert np.array_equal(ends, np.flatnonzero(out["terminal"]))
        lengths = np.diff(starts[starts < STEPS])
        assert (lengths == freeway.EPISODE).all()
        ours["terminal"] = out["terminal"]
    assert first_mismatch(ours, out) is None

    before = {name: np.roll(value, 1, axis=0) for name, value in out.items()}
    for what, (reached, wanted) in REACH[game](out, before, ~tape.fresh).items():
        assert reached >= wanted, what
    if "ramp" in out:
        assert not out["ramp"][~tape.ramping].any()


def _shot_while_firing(before, out):
    """Scenes with a submarine that moves and is gone, with a new bullet ahead of its last cell."""
    x, y, dx, timer, shot_timer = np.moveaxis(before["subs"], -1, 0)
    fires = (x >= 0) & (timer == 0) & (shot_timer == 0) & (x + 2 * dx >= 0) & (x + 2 * dx <= 9)
    scene = np.arange(len(x))[:, None]
    shot = out["shots"][scene, y, np.clip(x + 2 * dx, 0, 9), (dx + 1) // 2] > 0
    moved = np.stack([x + dx, y, dx], axis=-1)[:, :, None]
    survives = (out["subs"][:, None, :, :3] == moved).all(-1).any(-1)
    return (fires & shot & ~survives).any(1)


def test_seaquest_scenes_equal_the_original():
    """One step from crowded scenes: who is hit first, who fires, who is picked up."""
    oracle, number = ORACLES["MinAtar/Seaquest"], 1500
    rng = np.random.default_rng(0)
    original = minatar.Environment("seaquest").env
    original.random = Served()
    actions = rng.integers(6, size=number, dtype=np.int32)
    draws = rng.random((number, oracle.rules.num_draws), np.float32)
    before, games, out = [], [], []
    for action, u in zip(actions, draws, strict=True):
        original.reset()
        minatar_scenes.put(original, rng)
        before.append(oracle.original(original))
        games.append(minatar_scenes.ours(original))
        out.append(act(oracle, original, int(action), u))
    before, games, out = stacked(before), minatar_scenes.stack(games), stacked(out)
    assert first_mismatch(oracle.ours(games), before) is None

    @quick
    @jax.vmap
    def step(game, action, u):
        game, reward, terminal = oracle.rules.advance(game, action, u, True)
        return game, reward, terminal, oracle.rules.observe(game)

    games, reward, terminal, image = jax.tree.map(np.asarray, step(games, actions, draws))
    ours = {"reward": reward, "terminal": terminal, "image": image, **oracle.ours(games)}
    assert first_mismatch(ours, out) is None

    surfaced = (out["oxygen"] == 200) & (before["oxygen"] < 200)
    alone = (before["divers"][:, 1, 0] >= 0) & (out["divers"][:, 0, 0] >= 0)
    last_seat = alone & (out["divers"][:, 1, 0] < 0) & (before["crew"] == 5) & (out["crew"] == 6)
    for what, reached, wanted in (
        ("one of two divers picked up", last_seat.sum(), 10),
        ("submarines shot while they fire", _shot_while_firing(before, out).sum(), 10),
        ("surfacings without oxygen", (surfaced & (before["oxygen"] == 0)).sum(), 10),
        ("double kills", (out["reward"] == 2).sum(), 5),
        ("divers picked up", (out["crew"] > before["crew"]).sum(), 20),
        ("steps that are not terminal", (~out["terminal"]).sum(), 200),
    ):
        assert reached >= wanted, what


# The contract.


def _key(seed: int):
    return jax.random.key(seed)


def _rollout(env):
    """A function of keys (the first for the reset) and actions: states, images and outcomes."""

    def run(keys, actions):
        def body(state, inputs):
            state, outcome = env.step(state, *inputs)
            return state, (state, env.observe(state), outcome)

        return jax.lax.scan(body, env.reset(keys[0]), (actions, keys[1:]))

    return run


@pytest.mark.parametrize("game", GAMES)
def test_shapes_and_dtypes(game):
    env = GAMES[game]()
    state = jax.eval_shape(env.reset, _key(0))
    stepped, outcome = jax.eval_shape(env.step, state, jnp.int32(0), _key(0))
    image = jax.eval_shape(env.observe, state)
    picture = jax.eval_shape(env.render, state)
    assert env.id == game
    assert env.action_names == ACTIONS
    assert stepped == state
    assert not any(leaf.weak_type for leaf in jax.tree.leaves((state, stepped, outcome)))
    assert (image.shape, image.dtype) == ((10, 10, CHANNELS[game.split("/")[1]]), bool)
    assert (picture.shape, picture.dtype) == ((160, 160, 3), np.uint8)
    assert [(o.shape, o.dtype) for o in outcome] == [((), np.float32), ((), bool), ((), bool)]


def test_freeway_ends_with_its_time():
    env = GAMES["MinAtar/Freeway"]()
    actions = jax.random.randint(_key(1), (env.time_limit,), 0, env.num_actions)
    keys = jax.random.split(_key(0), env.time_limit + 1)
    outcomes = quick(_rollout(env))(keys, actions)[1][2]
    assert not outcomes.terminated.any()
    assert np.flatnonzero(outcomes.truncated).tolist() == [freeway.EPISODE - 1]


def _toy() -> Rules:
    """A game that only remembers what it was given: the action and the draws of the step."""

    def advance(game, action, draws, ramping):
        return (action, draws), jnp.float32(0), action == FIRE

    def start(draws):
        return jnp.int32(-1), draws

    return Rules("Toy", 2, start, advance, lambda game: game, (0, 2, 5), ())


def test_sticky_actions():
    """The executed action is the given one, or with probability `sticky` the last one."""
    length = 4000

    @quick
    @jax.vmap
    def run(sticky, keys, actions):
        return _rollout(environment(_toy(), sticky, True, False, None))(keys, actions)

    probabilities = np.array([0.0, 0.25, 1.0])
    actions = jax.random.randint(_key(0), (3, length), 0, 6)
    _, (states, _, outcomes) = run(
        probabilities, jax.random.split(_key(1), (3, length + 1)), actions
    )
    executed, given = np.asarray(states.last_action), np.asarray(actions)
    last = np.pad(executed, ((0, 0), (1, 0)))[:, :-1]  # after a reset it is the no-op, 0
    assert np.array_equal(states.game[0], executed)
    assert np.array_equal(outcomes.terminated, executed == FIRE)
    assert ((executed == given) | (executed == last)).all()
    rates = np.mean(executed != given, axis=1, where=given != last)
    assert rates[0] == 0
    assert rates[2] == 1
    assert abs(rates[1] - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 3000)

    # The game's own numbers are fresh in each step and know nothing of the stickiness.
    draws, repeated = np.asarray(states.game[1])[1], (executed != given)[1]
    assert len(np.unique(draws)) > 0.99 * draws.size
    assert (abs(draws.mean(0) - 1 / 2) < 0.03).all()
    assert (abs(draws[repeated].mean(0) - draws[~repeated].mean(0)) < 0.06).all()


def _play(env, actions):
    """As `_rollout`, without compiling a loop."""
    state, outcomes = env.reset(_key(0)), []
    for t, action in enumerate(actions):
        state, outcome = env.step(state, jnp.int32(action), _key(t))
        outcomes.append((state, outcome))
    return outcomes


def test_minimal_actions_stand_for_actions_of_the_game():
    env = environment(_toy(), 0.0, True, True, None)
    assert env.action_names == ("noop", "up", "fire")
    assert [int(state.last_action) for state, _ in _play(env, [1, 2, 0, 1])] == [2, 5, 0, 2]


@pytest.mark.parametrize("game", GAMES)
def test_minimal_actions_are_the_originals(game):
    minimal = minatar.Environment(ORACLES[game].name).minimal_action_set()
    env = GAMES[game](minimal_actions=True)
    assert env.action_names == tuple(ACTIONS[a] for a in minimal)


@pytest.mark.parametrize(
    ("own", "given", "limit"),
    [(None, None, None), (None, 7, 7), (5, None, 5), (5, 9, 5), (5, 3, 3)],
)
def test_time_limit(own, given, limit):
    """The shorter limit counts; it truncates in the step of its number."""
    env = environment(_toy()._replace(time_limit=own), 0.1, True, False, given)
    assert env.time_limit == limit
    outcomes = [outcome for _, outcome in _play(env, [0] * 7)]
    assert [bool(o.truncated) for o in outcomes] == [t >= (limit or 99) for t in range(1, 8)]
    assert not any(o.terminated for o in outcomes)


def test_freeway_traffic_is_uniform():
    games = quick(jax.vmap(GAMES["MinAtar/Freeway"]().reset))(jax.random.split(_key(0), 2000)).game
    counts = np.bincount(games.car_speed.ravel(), minlength=6)
    assert counts[0] == 0
    assert (abs(counts[1:] / counts.sum() - 1 / 5) < 0.02).all()
    assert abs((games.car_dx == 1).mean() - 1 / 2) < 0.02


@pytest.mark.parametrize("game", GAMES)
def test_every_painted_channel_shows_in_its_colour(game):
    """At the centre of its cell, or in its half of it."""
    layers = ORACLES[game].rules.layers
    channels = CHANNELS[game.split("/")[1]]
    images = np.zeros((len(layers), 10, 10, channels), bool)
    for image, layer in zip(images, layers, strict=True):
        image[2, 7, layer.channel] = True
    for picture, layer in zip(jax.vmap(paint, (0, None))(images, layers), layers, strict=True):
        row = {"upper": 4, "lower": 12}.get(layer.shape, 8)
        assert tuple(picture[2 * 16 + row, 7 * 16 + 8].tolist()) == layer.colour
        assert tuple(picture[7 * 16 + 8, 2 * 16 + 8].tolist()) == TILE
