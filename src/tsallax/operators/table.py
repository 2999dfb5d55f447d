"""The table of algorithms, which the command line, the contract tests and the docs read."""

import inspect
import re
from typing import Any, NamedTuple

import jax.numpy as jnp

from tsallax.checks import suggest
from tsallax.operators import targets
from tsallax.operators.targets import boltzmann, hard
from tsallax.types import Bonus, HParams, Policy, Value


class Algorithm(NamedTuple):
    """One row: the two terms of a target, where they come from, and its default numbers."""

    name: str
    value: Value  # at s'
    bonus: Bonus  # at (s, a)
    source: str  # equation of the paper, or the work that it comes from
    defaults: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    policy: Policy | None = None  # for acting; if None, the Tsallis policy of the configuration
    reductions: tuple[str, ...] = ()  # what it becomes, such as "al at q = inf"

    def __hash__(self) -> int:  # the defaults are a dict; rows are static arguments of `jax.jit`
        return hash((self.name, self.value, self.bonus))

    @property
    def equation(self) -> str:
        bonus = equation_of(self.bonus)
        return f"r + gamma {equation_of(self.value)}" + (f" + {bonus}" if bonus != "0" else "")


def equation_of(term: Value | Bonus) -> str:
    """The first formula of its docstring, or the function's name if it has none."""
    formula = re.search(r"`(.+?)`", inspect.getdoc(term) or "")
    return formula[1] if formula else getattr(term, "__name__", repr(term))


class Reduction(NamedTuple):
    """`one` is `other` where both have these numbers."""

    one: str
    other: str
    at: str  # such as "q = 1, entropy = 1"
    numbers: dict[str, float]


SMALL = 1e-6  # for "to 0"


def parse_reduction(one: str, text: str) -> Reduction:
    """From the text in a row: "al at q = inf", "dqn at alpha to 0"."""
    other, _, at = text.partition(" at ")
    found = [re.fullmatch(r"(\w+) (?:= (\S+)|to 0)", part) for part in at.split(", ")]
    if not all(found):
        raise ValueError(f'{one}: a reduction reads "NAME at q = 1, alpha to 0", not {text!r}')
    numbers = {part[1]: SMALL if part[2] is None else float(part[2]) for part in found if part}
    return Reduction(one, other, at, numbers)


def list_reductions() -> list[Reduction]:
    """Which algorithm becomes which other one, over the whole table."""
    return [
        parse_reduction(row.name, text) for row in ALGORITHMS.values() for text in row.reductions
    ]


_SHANNON = {"q": 1.0}
_ROWS = (
    Algorithm("dqn", targets.max_value, targets.no_bonus, "Mnih et al. 2015", policy=hard),
    Algorithm(
        "soft-dqn",
        targets.soft_value,
        targets.no_bonus,
        "eq. 2",
        _SHANNON,
        boltzmann,
        reductions=("dqn at alpha to 0",),
    ),
    Algorithm(
        "tsallis-dqn",
        targets.expected_value,
        targets.no_bonus,
        "eq. 11, beta = 0",
        reductions=("soft-dqn at q = 1, entropy = 1", "dqn at q = inf"),
    ),
    Algorithm(
        "al",
        targets.max_value,
        targets.greedy_bonus,
        "eq. 11, q = inf",
        policy=hard,
        reductions=("dqn at beta = 0",),
    ),
    Algorithm(
        "pal",
        targets.max_value,
        targets.persistent_bonus,
        "Bellemare et al. 2016",
        policy=hard,
        reductions=("dqn at beta = 0",),
    ),
    Algorithm(
        "pal-atari",
        targets.max_value,
        targets.persistent_bonus_atari,
        "Bellemare et al. 2016",
        policy=hard,
        reductions=("dqn at beta = 0",),
    ),
    Algorithm(
        "sal",
        targets.max_value,
        targets.stochastic_bonus,
        "Lu et al. 2019",
        {"beta": 1.0},
        hard,
        reductions=("al at b = 1",),
    ),
    Algorithm(
        "sal-printed",
        targets.max_value,
        targets.stochastic_bonus_printed,
        "table 2 as printed",
        {"beta": 1.0},
        hard,
        reductions=("al at b = 1",),
    ),
    Algorithm(
        "mdqn",
        targets.soft_value,
        targets.munchausen_bonus,
        "eq. 8",
        {**_SHANNON, "clip": -1.0},
        boltzmann,
        reductions=("soft-dqn at beta = 0",),
    ),
    Algorithm(
        "mt-dqn",
        targets.expected_value,
        targets.log_policy_bonus,
        "section 4.2",
        reductions=("mdqn at q = 1, entropy = 1, delta = 0, clip = -inf",),
    ),
    Algorithm(
        "mt-dqn-qlog",
        targets.expected_value,
        targets.q_log_policy_bonus,
        "section 6, future work",
        reductions=("mt-dqn at q = 1",),
    ),
    Algorithm(
        "cvi",
        targets.boltzmann_value,
        targets.boltzmann_bonus,
        "eq. 10",
        _SHANNON,
        boltzmann,
    ),
    Algorithm(
        "cvi-mellowmax",
        targets.mellowmax_value,
        targets.mellowmax_bonus,
        "Kozuno et al. 2019",
        _SHANNON,
        boltzmann,
        reductions=("al at alpha to 0",),
    ),
    Algorithm(
        "tal",
        targets.expected_value,
        targets.advantage_bonus,
        "eq. 11, m = 1",
        reductions=("tsallis-dqn at beta = 0", "al at q = inf", "cvi at q = 1"),
    ),
    Algorithm(
        "tal-v",
        targets.expected_value,
        targets.advantage_bonus_v,
        "eq. 11 with the value V",
        reductions=("mdqn at q = 1, entropy = 1, clip = -inf",),
    ),
)
ALGORITHMS: dict[str, Algorithm] = {row.name: row for row in _ROWS}


def get_algorithm(name: str) -> Algorithm:
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; {suggest(name.lower(), ALGORITHMS)}")
    return ALGORITHMS[name]


def make_hparams(algorithm: str, **numbers: Any) -> HParams:
    """The algorithm's numbers, with those that follow from others filled in.

    If not given, `k` is the paper's 1/2, but 1 (Shannon) where q = 1, and `log_weight` is alpha.
    """
    unknown = set(numbers) - set(HParams._fields)
    if unknown:
        raise ValueError(
            f"unknown numbers {sorted(unknown)}; there are {', '.join(HParams._fields)}"
        )
    hp = HParams(**{**get_algorithm(algorithm).defaults, **numbers})
    if "k" not in numbers:
        hp = hp._replace(k=jnp.where(jnp.asarray(hp.q) == 1, 1.0, 0.5))
    if "log_weight" not in numbers:
        hp = hp._replace(log_weight=hp.alpha)
    return hp
