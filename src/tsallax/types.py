"""The shared types: hyper-parameters, a bootstrap, transitions, a policy, an environment."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped, UInt8

Number: TypeAlias = int | float | np.floating | np.ndarray | Array  # what a user may pass
Traced: TypeAlias = float | Array  # a number in an equation

RULED_OUT = -1e30  # the value of an action that is not allowed: finite, as 0 * -inf would be NaN


class HParams(NamedTuple):
    """Every number in an equation. All are traced, so that a grid of them is one program."""

    q: Traced = 2.0  # entropic index
    alpha: Traced = 0.03  # weight of the entropy; the Shannon tau, and CVI's sigma + tau
    beta: Traced = 0.99  # weight of the advantage or of the log-policy
    gamma: Traced = 0.99  # discount
    k: Traced = 0.5  # the entropy's own factor: 1/2 in the paper, 1 for Shannon's
    entropy: Traced = 0.0  # 1 adds alpha H(pi') to the bootstrap, 0 leaves it out
    log_weight: Traced = 0.03  # weight of the log-policy: alpha in eq. 8; 1 is the bare ln pi
    clip: Traced = -float("inf")  # l0, the lower bound of the weighted log-policy
    delta: Traced = 1e-8  # Delta, added to pi under a logarithm
    clip_ratio: Traced = 0.8  # c of clipped advantage learning
    value_floor: Traced = 0.0  # Q_l of clipped advantage learning: lower bound of action values
    learning_rate: Traced = 1e-3
    max_grad_norm: Traced = float("inf")  # the gradient's norm is clipped to this
    epsilon: Traced = 0.01  # initial share of uniform actions
    epsilon_end: Traced = 0.01  # its value after the linear decay
    epsilon_steps: Traced = 1.0  # length of the decay
    random_steps: Traced = 0.0  # actions are uniformly random before this step
    learning_rate_end: Traced = 1e-3  # final learning rate of the parallel learner: linear decay
    total_steps: Traced = 1.0  # length of this decay, and of that of the importance weights
    lambda_: Traced = 0.0  # lambda of the returns: 0 is one step, 1 the whole rollout
    reward_scale: Traced = 1.0  # factor of the rewards, for the parallel learner
    tau: Traced = 0.005  # step of the target network towards the network per update
    priority_exponent: Traced = 0.6  # of the errors, in a prioritised replay: 0 is uniform
    importance_exponent: Traced = 0.4  # initial exponent of its weights; linear to 1 at the end
    clip_above: Traced = float("inf")  # of actor-critics, as the next: upper bound of the bonus
    target_entropy: Traced = -1.0  # of an automatic alpha: a Gaussian's (Shannon), per dimension


class Bootstrap(NamedTuple):
    """One transition with the target network's values at s and s'."""

    Q: Float[Array, "A"]  # action values at s
    a: Int[Array, ""]
    r: Float[Array, ""]
    discount: Float[Array, ""]  # gamma, or 0 where the episode terminated
    Z: Float[Array, "A *N"]  # at s': action values, or N quantiles of each
    key: PRNGKeyArray  # for targets that draw a number (SAL)


Observation = Shaped[Array, "..."]  # float32 vectors, or bool images (height, width, channels)


class Masked(NamedTuple):
    """An observation together with the mask of the actions that are allowed there.

    It replaces a bare observation everywhere: in a replay, in a rollout, as a network's input.
    """

    observation: Any
    allowed: Any  # Bool[Array, "A"]


Seen: TypeAlias = Observation | Shaped[np.ndarray, "..."] | Masked  # of one state or a batch


class Transition(NamedTuple):
    """A sample of a replay buffer. s' of a truncated transition is the true next observation."""

    observation: Any  # a batch of `Seen`
    action: Shaped[Array, "..."]  # an index, or numbers in [-1, 1]
    reward: Float[Array, "*batch"]
    terminated: Bool[Array, "*batch"]
    next_observation: Any


class Segment(NamedTuple):
    """n consecutive transitions from the sampled one on. Those after the first cut are ignored."""

    observation: Any  # a batch of `Seen`, (batch, n, ...)
    action: Int[Array, "batch n"]
    reward: Float[Array, "batch n"]
    terminated: Bool[Array, "batch n"]
    cut: Bool[Array, "batch n"]  # the episode ended in this step, or nothing later is stored
    next_observation: Any  # the true one after the first cut, or after the last transition


Policy = Callable[[Float[Array, "A"], HParams], Float[Array, "A"]]
# The terms of a target: the value is an average of atoms under the policy of the action values.
Value = Callable[[Float[Array, "A"], Float[Array, "A *N"], HParams, Policy], Float[Array, "*N"]]
Bonus = Callable[[Bootstrap, HParams, Policy], Float[Array, ""]]
Target = Callable[..., Float[Array, "*N"]]  # (x, hp, policy, Q of a double estimate)

EnvState = Any  # a pytree of arrays, the same structure from every reset and step


def bare(seen: Any) -> Any:
    """The observation without its mask, if it has one."""
    return seen.observation if isinstance(seen, Masked) else seen


def allowed_at(seen: Any) -> Any:
    """The mask of an observation, or None if it has none, which is static under tracing."""
    return seen.allowed if isinstance(seen, Masked) else None


def stacked(rows: Sequence[Any], axis: int = 0) -> Any:
    """`np.stack` of arrays, or of the fields of `Masked` observations."""
    if isinstance(rows[0], Masked):
        return Masked(*(np.stack(part, axis) for part in zip(*rows, strict=True)))
    return np.stack(rows, axis)


class Outcome(NamedTuple):
    """The result of a step besides the next state. A time limit truncates, never terminates."""

    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Box(NamedTuple):
    """Bounds of continuous actions, one pair per dimension: finite, and low < high."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def scale(self, action: Any) -> Any:
        """Maps an action from [-1, 1], the range of policies, to the bounds."""
        low, high = (np.asarray(x, np.float32) for x in self)
        # Rounding could exceed the bounds by one unit in the last place.
        return (low + (action + 1) * ((high - low) / 2)).clip(low, high)


class Environment(NamedTuple):
    """A JAX-native environment: pure functions of a state, an action and a key.

    It is a single environment: `vmap` it for many. There is no autoreset: the loop resets it.

    If `step` truncates, `time_limit` must be the least number of steps after which it does: the
    replay reserves space for the final observations of truncated episodes accordingly, to
    bootstrap from them.

    Its actions are indices or, with an `action_box`, vectors within these bounds; `action_names`
    are then the names of the dimensions.

    `allowed`, if given, returns for each action whether it may be taken in a state. If it allows
    none, all count as allowed, which has no effect in a terminal state.
    """

    id: str
    action_names: tuple[str, ...]
    reset: Callable[[PRNGKeyArray], EnvState]
    step: Callable[[EnvState, Shaped[Array, "..."], PRNGKeyArray], tuple[EnvState, Outcome]]
    observe: Callable[[EnvState], Observation]
    render: Callable[[EnvState], UInt8[Array, "height width 3"]]
    time_limit: int | None = None
    action_box: Box | None = None
    allowed: Callable[[EnvState], Bool[Array, "A"]] | None = None

    @property
    def num_actions(self) -> int:
        return len(self.action_names)
