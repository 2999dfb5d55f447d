"""Environments that a user passes in Python: objects, functions that make them, vectors."""

import re
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import gymnasium
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from tsallax.envs import OWN, with_tuples
from tsallax.envs.host import GymEnvs, HostEnvs
from tsallax.envs.spaces import Sight, first_line, sight_of
from tsallax.envs.vector import VectorEnvs
from tsallax.types import Environment

Single: TypeAlias = gymnasium.Env | VectorEnv


class Source:
    """Provides a user's Gymnasium environments.

    A user's object is used for one run at a time, and never closed. Further ones are made from its
    `spec`; a user's function makes all of them.

    Args:
        first: the object, or the first environment that the function made.
        build: makes another one.
        is_users: whether the first one is the user's object.
    """

    def __init__(self, first: Single, build: Callable[[], Any], is_users: bool):
        self.first: Single | None = first  # None while it is in use
        self.users = first if is_users else None
        self.build, self.made = build, weakref.WeakSet([first])
        self.name, self.size = _name(first), 0
        self.spaces: tuple[Any, Any]
        if isinstance(first, VectorEnv):
            self.size = first.num_envs
            self.spaces = first.single_observation_space, first.single_action_space
        else:
            self.spaces = first.observation_space, first.action_space

    def make(self) -> Any:
        if self.first is not None:
            made, self.first = self.first, None
            return made
        made = _checked(self.build())
        if made in self.made:
            raise ValueError(
                "env gave the same environment twice: it has to make a new one each time"
            )
        self.made.add(made)
        return made

    def give_back(self, env: Any) -> None:
        if env is self.users:
            self.first = env
        else:
            env.close()

    def sight(self, one_hot: bool) -> Sight:
        return sight_of(self.name, *self.spaces, one_hot)

    def check_copies(self) -> None:
        """Refuse an object of which no copy can be made, before a run needs one."""
        if self.users is not None:
            self.build().close()

    def envs(self, n: int, timeout: float = 0.0, masks: bool = False, **options: Any) -> HostEnvs:
        one_hot = bool(options.pop("one_hot", False))
        if options:
            raise ValueError(f"{self.name} has no option {', '.join(sorted(options))}")
        if self.size:
            return VectorEnvs(self.name, n, self, timeout, one_hot, masks)
        return GymEnvs(self.name, n, timeout, one_hot=one_hot, masks=masks, source=self)


def given_environment(given: Any) -> Environment | Source | None:
    """An environment that was given instead of a name; None for a name."""
    return None if isinstance(given, str) else own_environment(given)


def own_environment(given: Any) -> Environment | Source:
    """Convert what a user gave instead of a name; anything but an environment is refused."""
    if isinstance(given, Environment):
        return with_tuples(given)
    if isinstance(given, Single):
        return Source(given, partial(_copy, given), is_users=True)
    if not callable(given):
        raise ValueError(
            f"env must be a name, an environment, or a function that makes one, not {_kind(given)}"
        )
    made = given()
    if isinstance(made, Environment):
        return with_tuples(made)
    return Source(_checked(made), given, is_users=False)


def own_name(own: Environment | Source) -> str:
    """Its name in a run folder."""
    name = own.id if isinstance(own, Environment) else own.name
    return OWN + re.sub(r"[^\w.-]+", "-", name)


def _checked(made: Any) -> Single:
    if not isinstance(made, Single):
        raise ValueError(f"env must make an environment, not {_kind(made)}")
    return made


def _name(one: Any) -> str:
    """The registered name, or its class's; for a vector, that of one environment, if accessible."""
    one = getattr(one.unwrapped, "envs", [one])[0]
    return _kind(one.unwrapped) if one.spec is None else one.spec.id


def _kind(thing: Any) -> str:
    return type(thing).__name__


def _copy(given: Single) -> Single:
    """Make another one from its spec; for a vector, with the functions that made it."""
    name = _kind(given.unwrapped)
    hint = "give a function that makes one, or eval_every=0 and a single seed"
    try:
        if isinstance(given, VectorEnv):
            if not isinstance(given, SyncVectorEnv | AsyncVectorEnv):
                raise TypeError("only a bare SyncVectorEnv or AsyncVectorEnv can be copied")
            return type(given)(given.env_fns, autoreset_mode=given.autoreset_mode)
        if given.spec is None:
            raise TypeError("it has no spec")
        return gymnasium.make(given.spec, disable_env_checker=True)
    except Exception as error:  # a user's environment may raise anything
        raise ValueError(
            f"this run needs a second {name}, which cannot be made ({first_line(error)}): {hint}"
        ) from None
