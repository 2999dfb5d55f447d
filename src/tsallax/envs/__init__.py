"""The JAX-native environments by name."""

from collections.abc import Callable
from difflib import get_close_matches

from tsallax.envs import acrobot, cartpole
from tsallax.envs.base import Environment, Outcome

__all__ = ["CONSTRUCTORS", "Environment", "Outcome", "ids", "make"]

CONSTRUCTORS: dict[str, Callable[..., Environment]] = {
    "Acrobot-v1": acrobot.acrobot,
    "CartPole-v1": cartpole.cartpole,
}


def ids() -> tuple[str, ...]:
    return tuple(CONSTRUCTORS)


def make(env_id: str, /, **options: object) -> Environment:
    """The environment of that name; `options` are its constructor's, such as `time_limit`."""
    if env_id not in CONSTRUCTORS:
        raise ValueError(f"unknown environment {env_id!r}; {_hint(env_id)}")
    return CONSTRUCTORS[env_id](**options)


def _hint(env_id: str) -> str:
    known = {name.lower(): name for name in CONSTRUCTORS}
    near = get_close_matches(env_id.lower(), known, n=1)
    return f"did you mean {known[near[0]]!r}?" if near else f"known are {', '.join(CONSTRUCTORS)}"
