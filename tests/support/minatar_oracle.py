"""The original MinAtar games as oracles: recorded play, with served instead of drawn numbers.

A step takes a vector of uniform numbers. `queue` says which of them the original asks for in this
step, and in which order: the generator asserts that it asks for these and no others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import minatar
import numpy as np

from tsallax.envs.minatar.common import Rules

Fields = dict[str, Any]


class Served:
    """A generator that serves the queued numbers: floats as they are, integers scaled from them."""

    def __init__(self):
        self.queue: list[Any] = []

    def rand(self, *size):
        return np.array(self.queue.pop(0), np.float64) if size else float(self.queue.pop(0))

    def randint(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        drawn = low + np.floor(np.float32(self.queue.pop(0)) * (high - low)).astype(int)
        assert np.shape(drawn) == (() if size is None else (size,))
        return int(drawn) if size is None else drawn


class Oracle(NamedTuple):
    """One game: our rules, and what a test needs to know of the original."""

    name: str
    rules: Rules
    on_reset: Callable[[np.ndarray], list]
    on_step: Callable[[Any, int, np.ndarray], list]
    original: Callable[[Any], Fields]  # one state of the original
    ours: Callable[[Any], Fields]  # many states of ours, in the same form
    player: Callable[[Any, int, np.random.Generator], int]
    mercy: float = 0.0  # probability that a terminal state is lived on (see `record`)


class Tape(NamedTuple):
    """Inputs of a replay, and what came out of the original. All arrays begin with time."""

    ramping: np.ndarray
    fresh: np.ndarray  # whether a reset comes before this step
    reset_draws: np.ndarray
    action: np.ndarray
    draws: np.ndarray
    outputs: Fields


def record(oracle: Oracle, steps: int, seed: int, ramping: bool = True) -> Tape:
    """Plays the original. A terminal state is followed by a reset, or lived on with `mercy`.

    The terminal flag only stops the original from stepping on; with the flag put back, it plays by
    the same rules. So a player of modest skill gets to the late game.
    """
    rng = np.random.default_rng(seed)
    game = minatar.Environment(oracle.name, difficulty_ramping=ramping).env
    game.random = Served()
    draws = rng.random((2, steps, oracle.rules.num_draws), np.float32)
    fresh, action, outputs = [], [], []
    again = True
    for t, (reset_draws, step_draws) in enumerate(zip(*draws, strict=True)):
        fresh.append(again)
        if again:
            serve(game, oracle.on_reset(reset_draws), game.reset)
        action.append(oracle.player(game, t, rng))
        outputs.append(act(oracle, game, action[-1], step_draws))
        again = game.terminal and rng.random() >= oracle.mercy
        if game.terminal and not again:
            game.terminal = False
    inputs = np.full(steps, ramping), np.array(fresh), draws[0], np.array(action, np.int32)
    return Tape(*inputs, draws[1], stacked(outputs))


def serve(game: Any, queue: list, call: Callable) -> Any:
    game.random.queue = list(queue)
    result = call()
    assert not game.random.queue
    return result


def act(oracle: Oracle, game: Any, action: int, draws: np.ndarray) -> Fields:
    """One step of the original, with all that can be seen after it."""
    reward, end = serve(game, oracle.on_step(game, action, draws), lambda: game.act(action))
    outputs = {"reward": reward, "terminal": end, "image": game.state()}
    return outputs | oracle.original(game)


def stacked(outputs: list[Fields]) -> Fields:
    return {name: np.array([o[name] for o in outputs]) for name in outputs[0]}


def joined(*tapes: Tape) -> Tape:
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *tapes)


def quick(f: Callable) -> Callable:
    """Compiles without the costly optimisations, for functions that run little."""
    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


def replay(oracle: Oracle, tape: Tape) -> Fields:
    """What our rules give for the inputs of the tape."""
    start, advance, observe = oracle.rules.start, oracle.rules.advance, oracle.rules.observe

    def body(game, inputs):
        ramping, fresh, reset_draws, action, draws = inputs
        game = jax.tree.map(lambda a, b: jnp.where(fresh, a, b), start(reset_draws), game)
        game, reward, terminal = advance(game, action, draws, ramping)
        return game, (game, reward, terminal, observe(game))

    run = jax.jit(lambda inputs: jax.lax.scan(body, start(inputs[2][0]), inputs)[1])
    games, reward, terminal, image = jax.tree.map(np.asarray, run(tape[:5]))
    return {"reward": reward, "terminal": terminal, "image": image, **oracle.ours(games)}


def first_mismatch(ours: Fields, original: Fields) -> str | None:
    assert ours.keys() == original.keys()
    found = []
    for name, a in ours.items():
        b = original[name]
        assert a.shape == b.shape, (name, a.shape, b.shape)
        wrong = (a != b).reshape(len(a), -1).any(1)
        if wrong.any():
            t = int(wrong.argmax())
            at = np.argwhere(a[t] != b[t])[:5].tolist()
            found.append((t, f"step {t}, {name} at {at}: {a[t]}, should be {b[t]}"))
    return min(found)[1] if found else None
