"""The terms of actor-critics with continuous actions, and the rows of all actor-critics.

An integral over actions is estimated by an average over actions drawn from the policy, so the terms
are functions of values and densities of draws. Everything else is as in `targets`: the target is
`r + discount * value + bonus`, and the bonus is 0 at beta = 0. `ln_q` of a density is summed over
the dimensions of the action, as the power of a joint density explodes with their number.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.operators.equations import target_equation
from tsallax.policies.closed import q_log_of_exp
from tsallax.types import HParams


class Draws(NamedTuple):
    """One transition with the target critics' values at s and s', and the policy's densities."""

    Q: Float[Array, ""]  # of the action a that was taken at s
    Q_drawn: Float[Array, "M"]  # of actions drawn from pi at s
    log_pi: Float[Array, "D"]  # ln pi(a), per dimension; -inf outside of a bounded support
    Q_next: Float[Array, ""]  # of an action a' drawn from pi at s'
    log_pi_next: Float[Array, "D"]  # ln pi(a'), per dimension


Term = Callable[[Draws, HParams], Float[Array, ""]]


def q_log_density(log_pi: Float[Array, "D"], hp: HParams) -> Float[Array, ""]:
    """`k sum_d ln_q pi_d(a)`, whose negative mean is the entropy."""
    return hp.k * jnp.sum(q_log_of_exp(log_pi, hp.q))


def drawn_value(x: Draws, hp: HParams) -> Float[Array, ""]:
    """`Q'(a') - e alpha k ln_q pi'(a')`, a' drawn from pi'."""
    return x.Q_next - hp.entropy * hp.alpha * q_log_density(x.log_pi_next, hp)


def no_bonus(x: Draws, hp: HParams) -> Float[Array, ""]:
    """`0`."""
    return jnp.zeros(())


def drawn_advantage_bonus(x: Draws, hp: HParams) -> Float[Array, ""]:
    """`beta [Q(s,a) - mean_j Q(s,a_j)]`, a_j drawn from pi."""
    return hp.beta * _clip(x.Q - jnp.mean(x.Q_drawn), hp)


def log_density_bonus(x: Draws, hp: HParams) -> Float[Array, ""]:
    """`beta [alpha ln pi(a)]`, which is undefined outside of a bounded support."""
    return hp.beta * _clip(hp.alpha * jnp.sum(x.log_pi), hp)


def _clip(bonus: Float[Array, ""], hp: HParams) -> Float[Array, ""]:
    return jnp.clip(bonus, hp.clip, hp.clip_above)


class ActorCritic(NamedTuple):
    """One row of an actor-critic: the two terms of its critics' target, by drawn actions.

    With discrete actions, it uses the two terms of a value agent, without draws.
    """

    name: str
    value: Term  # at s'
    bonus: Term  # at (s, a)
    source: str
    discrete: str  # the value agent whose terms it has with discrete actions
    actor: str  # the loss of its actor with discrete actions
    defaults: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    reductions: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash((self.name, self.value, self.bonus))

    @property
    def equation(self) -> str:
        return target_equation(self.value, self.bonus)


_SOFT = {"entropy": 1.0}
_SHANNON = {"q": 1.0, **_SOFT}
# fmt: off
_ROWS = (
    ActorCritic("sac", drawn_value, no_bonus,
                "Haarnoja et al. 2018", "tsallis-dqn", "objective", _SHANNON),
    ActorCritic("tac", drawn_value, no_bonus,
                "Lee et al. 2020", "tsallis-dqn", "fenchel-young", _SOFT,
                reductions=("sac at q = 1",)),
    ActorCritic("munchausen-sac", drawn_value, log_density_bonus,
                "Vieillard et al. 2020", "mt-dqn", "objective",
                {**_SHANNON, "clip": -1.0, "clip_above": 0.0},
                reductions=("sac at beta = 0",)),
    ActorCritic("tal-ac", drawn_value, drawn_advantage_bonus,
                "section 6, future work", "tal", "fenchel-young", _SOFT,
                reductions=("tac at beta = 0",)),
)
# fmt: on
ACTOR_CRITICS: dict[str, ActorCritic] = {row.name: row for row in _ROWS}
