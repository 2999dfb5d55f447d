"""The table of algorithms, which the command line, the contract tests and the docs read.

A row is a value and a bonus (`targets`); `one_step` makes the target from them. Actor-critics have
their own type of rows (`actor_critics`), with the same two terms.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from tsallax.operators import targets
from tsallax.operators.actor_critics import ACTOR_CRITICS, ActorCritic
from tsallax.operators.equations import target_equation
from tsallax.operators.targets import action_values, boltzmann, hard
from tsallax.spelling import suggest
from tsallax.types import Bonus, Bootstrap, HParams, Policy, Target, Value


class Algorithm(NamedTuple):
    """One row: the two terms of a target, their source, and default numbers."""

    name: str
    value: Value  # at s'
    bonus: Bonus  # at (s, a)
    source: str  # equation of the paper, or the work that it comes from
    defaults: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    policy: Policy | None = None  # for acting; if None, the Tsallis policy of the configuration
    reductions: tuple[str, ...] = ()  # special cases, such as "al at q = inf"

    def __hash__(self) -> int:  # the defaults are a dict; rows are static arguments of `jax.jit`
        return hash((self.name, self.value, self.bonus))

    @property
    def equation(self) -> str:
        return target_equation(self.value, self.bonus)


def terms(
    algorithm: Algorithm,
    x: Bootstrap,
    hp: HParams,
    policy: Policy,
    Q: Float[Array, "A"] | None = None,
) -> tuple[Float[Array, "*N"], Float[Array, ""]]:
    """The value at s' and the bonus at (s, a) of one transition.

    The policy at s' is that of `Q`: the online network's action values at s' for a double estimate;
    if None, those of the atoms themselves.
    """
    value = algorithm.value(action_values(x.Z) if Q is None else Q, x.Z, hp, policy)
    return value, algorithm.bonus(x, hp, policy)


def one_step(algorithm: Algorithm) -> Target:
    """The target of one transition, `r + discount * value + bonus`; for `Q` see `terms`."""

    def target(
        x: Bootstrap, hp: HParams, policy: Policy, Q: Float[Array, "A"] | None = None
    ) -> Float[Array, "*N"]:
        value, bonus = terms(algorithm, x, hp, policy, Q)
        return backup(x.r, bonus, x.discount, value)

    return target


def backup(
    r: Float[Array, ""],
    bonus: Float[Array, ""],
    discount: Float[Array, ""],
    following: Float[Array, "*N"],
) -> Float[Array, "*N"]:
    """`r + discount * following + bonus`, in this order: stored runs are compared bit by bit."""
    return r + discount * following + bonus


_SHANNON = {"q": 1.0}
# fmt: off
_ROWS = (
    Algorithm("dqn", targets.max_value, targets.no_bonus,
              "Mnih et al. 2015", policy=hard),
    Algorithm("soft-dqn", targets.soft_value, targets.no_bonus,
              "eq. 2", _SHANNON, boltzmann, reductions=("dqn at alpha to 0",)),
    Algorithm("tsallis-dqn", targets.expected_value, targets.no_bonus,
              "eq. 11, beta = 0", reductions=("soft-dqn at q = 1, entropy = 1", "dqn at q = inf")),
    Algorithm("al", targets.max_value, targets.greedy_bonus,
              "eq. 11, q = inf", policy=hard, reductions=("dqn at beta = 0",)),
    Algorithm("pal", targets.max_value, targets.persistent_bonus,
              "Bellemare et al. 2016", policy=hard, reductions=("dqn at beta = 0",)),
    Algorithm("pal-atari", targets.max_value, targets.persistent_bonus_atari,
              "Bellemare et al. 2016", policy=hard, reductions=("dqn at beta = 0",)),
    Algorithm("clipped-al", targets.max_value, targets.clipped_bonus, "Zhang et al. 2022",
              {"beta": 0.8, "clip_ratio": 0.8, "value_floor": 0.0}, hard,
              reductions=("al at value_floor = -inf",)),
    Algorithm("sal", targets.max_value, targets.stochastic_bonus,
              "Lu et al. 2019", {"beta": 1.0}, hard, reductions=("al at b = 1",)),
    Algorithm("sal-printed", targets.max_value, targets.stochastic_bonus_printed,
              "table 2 as printed", {"beta": 1.0}, hard, reductions=("al at b = 1",)),
    Algorithm("mdqn", targets.soft_value, targets.munchausen_bonus,
              "eq. 8", {**_SHANNON, "clip": -1.0}, boltzmann, reductions=("soft-dqn at beta = 0",)),
    Algorithm("mt-dqn", targets.expected_value, targets.log_policy_bonus,
              "section 4.2", reductions=("mdqn at q = 1, entropy = 1, delta = 0, clip = -inf",)),
    Algorithm("mt-dqn-qlog", targets.expected_value, targets.q_log_policy_bonus,
              "section 6, future work", reductions=("mt-dqn at q = 1",)),
    Algorithm("cvi", targets.boltzmann_value, targets.boltzmann_bonus,
              "eq. 10", _SHANNON, boltzmann),
    Algorithm("cvi-mellowmax", targets.mellowmax_value, targets.mellowmax_bonus,
              "Kozuno et al. 2019", _SHANNON, boltzmann, reductions=("al at alpha to 0",)),
    Algorithm("tal", targets.expected_value, targets.advantage_bonus, "eq. 11, m = 1",
              reductions=("tsallis-dqn at beta = 0", "al at q = inf", "cvi at q = 1")),
    Algorithm("tal-v", targets.expected_value, targets.advantage_bonus_v,
              "eq. 11 with the value V", reductions=("mdqn at q = 1, entropy = 1, clip = -inf",)),
    Algorithm("mvi", targets.q_soft_value, targets.advantage_bonus, "Zhu et al. 2023",
              reductions=("soft-dqn at q = 1, beta = 0",)),
)
# fmt: on
ALGORITHMS: dict[str, Algorithm] = {row.name: row for row in _ROWS}


def get_row(name: str) -> Algorithm | ActorCritic:
    """The row of that name, of either type."""
    if name not in (rows := {**ALGORITHMS, **ACTOR_CRITICS}):
        raise ValueError(f"unknown algorithm {name!r}; {suggest(name.lower(), rows)}")
    return rows[name]


def get_algorithm(name: str) -> Algorithm:
    row = get_row(name)
    if isinstance(row, ActorCritic):
        raise ValueError(f"{name} is an actor-critic: it has no values of discrete actions")
    return row


def make_hparams(algorithm: str, **numbers: Any) -> HParams:
    """The algorithm's numbers, with those that are derived from others filled in.

    If not given, `k` is the paper's 1/2, but 1 (Shannon) if q = 1, and `log_weight` is alpha.
    """
    unknown = set(numbers) - set(HParams._fields)
    if unknown:
        raise ValueError(
            f"unknown numbers {sorted(unknown)}; there are {', '.join(HParams._fields)}"
        )
    hp = HParams(**{**get_row(algorithm).defaults, **numbers})
    if "k" not in numbers:
        hp = hp._replace(k=jnp.where(jnp.asarray(hp.q) == 1, 1.0, 0.5))
    if "log_weight" not in numbers:
        hp = hp._replace(log_weight=hp.alpha)
    return hp
