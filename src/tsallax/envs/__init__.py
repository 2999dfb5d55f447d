"""Environments by name: JAX-native ones, Gymnasium's and Atari's."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

from tsallax.envs import acrobot, cartpole
from tsallax.envs.base import Environment, Outcome
from tsallax.envs.minatar import asterix, breakout, freeway, seaquest, space_invaders
from tsallax.envs.minatar.common import environment

if TYPE_CHECKING:
    from tsallax.envs.host import HostEnvs

__all__ = [
    "CONSTRUCTORS", "Environment", "Outcome", "canonical", "ids", "kind_of", "make", "make_host",
]  # fmt: skip

GAMES: dict[str, Callable[..., Environment]] = {
    game.RULES.id: partial(environment, game.RULES)
    for game in (asterix, breakout, freeway, seaquest, space_invaders)
}
CONSTRUCTORS: dict[str, Callable[..., Environment]] = {
    "Acrobot-v1": acrobot.acrobot,
    "CartPole-v1": cartpole.cartpole,
    **GAMES,
}
# Versions that Gymnasium no longer makes, and what they are called now.
RENAMED = {"LunarLander-v2": "LunarLander-v3"}

Kind = Literal["native", "atari", "gymnasium"]


def ids() -> tuple[str, ...]:
    """The names of the JAX-native environments."""
    return tuple(CONSTRUCTORS)


def canonical(env_id: str) -> str:
    return RENAMED.get(env_id, env_id)


def kind_of(env_id: str) -> Kind:
    """Which library makes it; an unknown name is refused, with the nearest one as a hint."""
    if env_id in CONSTRUCTORS:
        return "native"
    if env_id.startswith("ALE/"):
        from tsallax.envs.atari import rom_of

        rom_of(env_id)
        return "atari"
    import gymnasium

    package, _, name = env_id.rpartition(":")
    if package.startswith("."):
        raise ValueError(
            f"unknown environment {env_id!r}; before the colon stands a package, no path"
        )
    try:
        if package:
            import_module(package)  # which registers the name
        gymnasium.spec(name)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        known = {name.lower(): name for name in (*CONSTRUCTORS, *gymnasium.registry)}
        near = get_close_matches(name.lower(), known, n=1)
        if isinstance(error, ImportError):
            hint = str(error).splitlines()[0]
        elif near:
            hint = f"did you mean {known[near[0]]!r}?"
        else:
            hint = f"there are {', '.join(CONSTRUCTORS)}, and Gymnasium's with discrete actions"
        raise ValueError(f"unknown environment {env_id!r}; {hint}") from None
    return "gymnasium"


def make(env_id: str, /, **options: object) -> Environment:
    """The JAX-native environment of that name; `options` are its constructor's."""
    if kind_of(env_id) != "native":
        raise ValueError(f"{env_id} is not JAX-native; those are {', '.join(CONSTRUCTORS)}")
    build = CONSTRUCTORS[env_id]
    _refuse_foreign(env_id, build, options)
    return build(**options)


def make_host(
    env_id: str, n: int, timeout: float = 0.0, render: bool = False, **options: Any
) -> "HostEnvs":
    """`n` environments of that name on the host, as Gymnasium or the emulator makes them."""
    if kind_of(env_id) == "atari":
        from tsallax.envs.atari import AtariEnvs

        _refuse_foreign(env_id, AtariEnvs, options)
        if timeout:
            raise ValueError(f"{env_id} runs in the emulator's own threads: it has no time-out")
        return AtariEnvs(env_id, n, **options)
    from tsallax.envs.host import GymEnvs

    limit = options.pop("time_limit", None)
    if options:
        raise ValueError(f"{env_id} has no option {', '.join(sorted(options))}")
    return GymEnvs(
        env_id, n, timeout, render, **({} if limit is None else {"max_episode_steps": limit})
    )


def _refuse_foreign(env_id: str, build: Callable[..., Any], options: dict[str, Any]) -> None:
    foreign = set(options) - set(signature(build).parameters)
    if foreign:
        raise ValueError(f"{env_id} has no option {', '.join(sorted(foreign))}")
