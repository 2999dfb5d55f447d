"""The JAX-native environments by name."""

from collections.abc import Callable
from difflib import get_close_matches
from inspect import signature

from tsallax.envs import acrobot, cartpole
from tsallax.envs.base import Environment, Outcome
from tsallax.envs.minatar import GAMES

__all__ = ["CONSTRUCTORS", "Environment", "Outcome", "constructor", "ids", "make"]

CONSTRUCTORS: dict[str, Callable[..., Environment]] = {
    "Acrobot-v1": acrobot.acrobot,
    "CartPole-v1": cartpole.cartpole,
    **GAMES,
}


def ids() -> tuple[str, ...]:
    return tuple(CONSTRUCTORS)


def constructor(env_id: str) -> Callable[..., Environment]:
    """The function that makes it; an unknown name is refused with the nearest one."""
    if env_id not in CONSTRUCTORS:
        known = {name.lower(): name for name in CONSTRUCTORS}
        near = get_close_matches(env_id.lower(), known, n=1)
        hint = (
            f"did you mean {known[near[0]]!r}?"
            if near
            else f"there are {', '.join(known.values())}"
        )
        raise ValueError(f"unknown environment {env_id!r}; {hint}")
    return CONSTRUCTORS[env_id]


def make(env_id: str, /, **options: object) -> Environment:
    """The environment of that name; `options` are its constructor's, such as `time_limit`."""
    build = constructor(env_id)
    foreign = set(options) - set(signature(build).parameters)
    if foreign:
        raise ValueError(f"{env_id} has no option {', '.join(sorted(foreign))}")
    return build(**options)
