"""The interface of a Gymnasium environment: its spaces, observations and action masks."""

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box, Discrete
from jaxtyping import Shaped

from tsallax.envs.actions import action_box
from tsallax.types import Masked

MASK = "action_mask"  # key of `info`


class EnvironmentStoppedError(Exception):
    """One environment cannot continue."""


class Sight(NamedTuple):
    """Converts the observations of an environment to those of an agent."""

    frame: jax.ShapeDtypeStruct
    actions: int
    first: int | None = None  # the least discrete observation; these are one-hot encoded
    masks: bool = False  # whether each observation comes with a mask

    @property
    def observation(self) -> Any:
        if not self.masks:
            return self.frame
        return Masked(self.frame, jax.ShapeDtypeStruct((self.actions,), jnp.bool_))

    def blank(self) -> Any:
        """The placeholder for an observation that is not used."""
        frame = np.zeros(self.frame.shape, self.frame.dtype)
        return Masked(frame, np.ones(self.actions, bool)) if self.masks else frame

    def read(self, given: Any, info: Any, call: str, last: bool = False) -> Any:
        """Convert and check an observation; `last` marks one that is not bootstrapped from."""
        frame = self._frame(given, call)
        allowed = self._allowed(info, call, last)
        return frame if allowed is None else Masked(frame, allowed)

    def _frame(self, given: Any, call: str) -> Shaped[np.ndarray, "..."]:
        if self.first is not None:
            at, (count,) = int(given) - self.first, self.frame.shape
            if not 0 <= at < count:
                raise EnvironmentStoppedError(f"{call} gave the observation {at + self.first}")
            return np.arange(count) == at
        found = np.asarray(given)
        if found.shape != self.frame.shape:
            wanted = self.frame.shape
            raise EnvironmentStoppedError(f"{call} gave an observation {found.shape}, not {wanted}")
        found = found.astype(self.frame.dtype)
        if found.dtype == np.float32 and not np.isfinite(found).all():
            raise EnvironmentStoppedError(f"{call} gave an observation that is not finite")
        return found

    def _allowed(self, info: Any, call: str, last: bool) -> Shaped[np.ndarray, "A"] | None:
        if (MASK in info) != self.masks:
            said = ("an", "did not give") if MASK in info else ("no", "gave")
            raise EnvironmentStoppedError(
                f"{call} gave {said[0]} {MASK}, which the first reset {said[1]}"
            )
        if not self.masks:
            return None
        found = np.asarray(info[MASK])
        if found.shape != (self.actions,):
            raise EnvironmentStoppedError(
                f"{call} gave an {MASK} {found.shape}, not ({self.actions},)"
            )
        allowed = found.astype(bool)
        if not allowed.any() and not last:
            raise EnvironmentStoppedError(f"{call} gave an {MASK} that allows no action")
        return allowed if allowed.any() else ~allowed


def sight_of(
    name: str,
    observations: gymnasium.Space,
    actions: gymnasium.Space,
    one_hot: bool = False,
    masks: bool = False,
) -> Sight:
    """The `Sight` of an environment with these spaces; unsupported spaces are refused."""
    box = action_box(name, actions)
    number = len(box.low) if box else int(actions.n)  # type: ignore[attr-defined]
    if one_hot:
        if not isinstance(observations, Discrete):
            raise ValueError(
                f"{name} has observations {first_line(observations)}: one_hot is for Discrete ones"
            )
        frame = jax.ShapeDtypeStruct((int(observations.n),), jnp.bool_)
        return Sight(frame, number, int(observations.start), masks)
    return Sight(observation_spec(name, observations), number, None, masks)


def observation_spec(name: str, space: gymnasium.Space) -> jax.ShapeDtypeStruct:
    """The spec of observations: vectors become float32, uint8 and bool images keep their dtype."""
    if isinstance(space, Discrete):
        raise ValueError(
            f"{name} has observations {space}: --one-hot True (one_hot=True) makes vectors of them"
        )
    if not isinstance(space, Box) or not 1 <= len(space.shape) <= 3:
        raise ValueError(
            f"{name} has observations {first_line(space)}: only Box vectors and images can be "
            "learned from; a wrapper such as gymnasium.wrappers.FlattenObservation may help"
        )
    compact = space.dtype in (np.dtype(np.uint8), np.dtype(bool))
    return jax.ShapeDtypeStruct(space.shape, space.dtype if compact else jnp.float32)


def first_line(thing: object) -> str:
    return (str(thing).strip() or type(thing).__name__).splitlines()[0]
