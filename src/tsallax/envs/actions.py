"""The actions of a Gymnasium environment: indices, or vectors within bounds."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tsallax.types import Box

# Gymnasium does not name its actions, nor their dimensions.
NAMES = {
    "Acrobot": ("-1", "0", "+1"),
    "BipedalWalker": ("hip 1", "knee 1", "hip 2", "knee 2"),
    "CartPole": ("left", "right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "LunarLanderContinuous": ("main engine", "side engines"),
    "MountainCar": ("left", "nothing", "right"),
    "MountainCarContinuous": ("force",),
    "Pendulum": ("torque",),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
}


def action_box(env_id: str, space: gymnasium.Space) -> Box | None:
    """The bounds of continuous actions, None for discrete ones; other spaces are refused."""
    if isinstance(space, spaces.Discrete):
        return None
    fault = _fault(space)
    if fault:
        raise ValueError(f"{env_id} has {fault}; a wrapper of yours may change its actions")
    assert isinstance(space, spaces.Box)
    return Box(tuple(map(float, space.low)), tuple(map(float, space.high)))


def _fault(space: gymnasium.Space) -> str:
    """Why actions of this kind are not supported; empty if they are."""
    if not isinstance(space, spaces.Box):
        kind = type(space).__name__
        return f"{kind} actions: only Discrete ones, and a Box of numbers, can be learned"
    if not np.issubdtype(space.dtype, np.floating):
        return f"a Box of {space.dtype} actions: only one of floating-point numbers can be learned"
    if len(space.shape) != 1 or not space.shape[0]:
        return f"a Box of actions of the shape {space.shape}: only vectors can be learned"
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (np.asarray(x).astype(np.float32) for x in (space.low, space.high))
        width = high - low
    for wrong, why in (
        (np.isnan(low) | np.isnan(high), "a bound that is not a number"),
        (~np.isfinite(low) | ~np.isfinite(high), "no bounds"),
        (~np.isfinite(width), "bounds too far apart for float32"),
        (width <= 0, "no width"),
    ):
        if wrong.any():
            at = int(np.argmax(wrong))
            given = f"[{space.low[at]:g}, {space.high[at]:g}]"
            return f"actions with {why} in dimension {at}, {given}: each needs finite bounds"
    return ""


def nobody(box: Box | None) -> int | float:
    """The placeholder for no action: an index, or a number, that no policy returns."""
    return -1 if box is None else -np.inf


def action_names(env: gymnasium.Env) -> tuple[str, ...]:
    """The names of the actions, or of the dimensions of continuous ones."""
    space = env.action_space
    count = int(space.n) if isinstance(space, spaces.Discrete) else math.prod(space.shape or ())
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    if meanings:
        return tuple(meanings())
    model: Any = getattr(env.unwrapped, "model", None)
    if type(model).__name__ == "MjModel" and model.nu == count:  # MuJoCo's actuators
        return tuple(model.actuator(i).name or str(i) for i in range(count))
    known = NAMES.get(env.spec.name if env.spec else "", ())
    return known if len(known) == count else tuple(str(i) for i in range(count))
