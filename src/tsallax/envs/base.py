"""The contract of a JAX-native environment: pure functions of a state, an action and a key."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt8

State = Any  # a pytree of arrays, the same structure from every reset and step
Observation = Shaped[Array, "..."]  # float32 vectors, or bool images (height, width, channels)


class Outcome(NamedTuple):
    """What a step gives besides the next state. A time limit truncates; it does not terminate."""

    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Environment(NamedTuple):
    """One environment, for one seed: `vmap` it for many. No autoreset: the loop resets.

    If `step` truncates, `time_limit` must be the least number of steps after which it does: the
    replay reserves room for the last observations of that many episodes, to bootstrap from them.
    """

    id: str
    action_names: tuple[str, ...]
    reset: Callable[[PRNGKeyArray], State]
    step: Callable[[State, Int[Array, ""], PRNGKeyArray], tuple[State, Outcome]]
    observe: Callable[[State], Observation]
    render: Callable[[State], UInt8[Array, "height width 3"]]
    time_limit: int | None = None

    @property
    def num_actions(self) -> int:
        return len(self.action_names)
