"""Environments by name. The JAX-native ones are made here, Gymnasium's and Atari's in `host`."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Literal

from tsallax.envs import acrobot, cartpole, mountain_car, pendulum
from tsallax.envs.minatar import asterix, breakout, freeway, seaquest, space_invaders
from tsallax.envs.minatar.common import environment
from tsallax.types import Box, Environment, Masked, Outcome

__all__ = [
    "CONSTRUCTORS", "OWN", "Environment", "Outcome", "canonical", "ids", "kind_of", "make", "ready",
    "with_masks", "with_tuples", "with_unit_actions",
]  # fmt: skip

GAMES: dict[str, Callable[..., Environment]] = {
    game.RULES.id: partial(environment, game.RULES)
    for game in (asterix, breakout, freeway, seaquest, space_invaders)
}
CONSTRUCTORS: dict[str, Callable[..., Environment]] = {
    "Acrobot-v1": acrobot.acrobot,
    "CartPole-v1": cartpole.cartpole,
    "MountainCar-v0": mountain_car.mountain_car,
    "Pendulum-v1": pendulum.pendulum,
    **GAMES,
}
# Versions that Gymnasium no longer provides, and their current names.
RENAMED = {
    "LunarLander-v2": "LunarLander-v3",
    "LunarLanderContinuous-v2": "LunarLanderContinuous-v3",
}

Kind = Literal["native", "atari", "gymnasium", "own"]
OWN = "own/"  # prefix of the name of an environment that a user gave in Python


def ids() -> tuple[str, ...]:
    """The names of the JAX-native environments."""
    return tuple(CONSTRUCTORS)


def canonical(env_id: str) -> str:
    return RENAMED.get(env_id, env_id)


def kind_of(env_id: str) -> Kind:
    """The library that provides it; an unknown name is refused, with the nearest one as a hint."""
    if env_id in CONSTRUCTORS:
        return "native"
    if env_id.startswith(OWN):
        return "own"
    if env_id.startswith("ALE/"):
        from tsallax.envs.atari import rom_of

        rom_of(env_id)
        return "atari"
    from tsallax.envs.host import find_registered

    find_registered(env_id, CONSTRUCTORS)
    return "gymnasium"


def check_own(env_id: str, given: Any) -> None:
    """Refuse a run of a user's own environment if it is not given, and vice versa."""
    if env_id.startswith(OWN) and given is None:
        raise ValueError(f"{env_id} is an environment of a user's own: give it in Python, as `env`")
    if not env_id.startswith(OWN) and given is not None:
        raise ValueError(f"the environment of this run is {env_id}: it needs no other")


def make(env_id: str, /, **options: object) -> Environment:
    """Make the JAX-native environment of that name; `options` are its constructor's."""
    if kind_of(env_id) != "native":
        raise ValueError(f"{env_id} is not JAX-native; those are {', '.join(CONSTRUCTORS)}")
    build = CONSTRUCTORS[env_id]
    refuse_foreign(env_id, build, options)
    return build(**options)


def ready(env: Environment) -> Environment:
    """As agents see it."""
    return with_masks(with_unit_actions(with_tuples(env)))


def with_tuples(env: Environment) -> Environment:
    """The same environment, which programs can be found by: lists and arrays have no hash."""
    box = env.action_box
    bounds = None if box is None else Box(*(tuple(map(float, side)) for side in box))
    return env._replace(action_names=tuple(env.action_names), action_box=bounds)


def with_unit_actions(env: Environment) -> Environment:
    """The same environment with continuous actions in [-1, 1]."""
    box = env.action_box
    if box is None:
        return env
    return env._replace(step=lambda state, action, key: env.step(state, box.scale(action), key))


def with_masks(env: Environment) -> Environment:
    """The same environment with `Masked` observations, if it has `allowed`."""
    if env.allowed is None:
        return env
    if env.action_box is not None:
        raise ValueError(f"{env.id} has continuous actions: `allowed` is for discrete ones")
    allowed, shape = env.allowed, (env.num_actions,)

    def observe(state: Any) -> Any:
        may = allowed(state)
        if may.shape != shape or may.dtype != bool:
            raise ValueError(
                f"{env.id}: `allowed` must give bool {shape}, not {may.dtype} {may.shape}"
            )
        return Masked(env.observe(state), may | ~may.any())

    return env._replace(observe=observe)


def refuse_foreign(env_id: str, build: Callable[..., Any], options: dict[str, Any]) -> None:
    foreign = set(options) - set(signature(build).parameters)
    if foreign:
        raise ValueError(f"{env_id} has no option {', '.join(sorted(foreign))}")
