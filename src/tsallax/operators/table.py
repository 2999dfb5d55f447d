"""The table of algorithms: it drives the command line, the contract tests and the docs."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from tsallax.checks import suggest
from tsallax.operators import targets
from tsallax.operators.targets import boltzmann, hard
from tsallax.types import HParams, Policy, Target


class Algorithm(NamedTuple):
    """One row: a target with its name, equation, source and the numbers it starts from."""

    name: str
    target: Target
    value: str  # the value at s', as text
    bonus: str  # the bonus at (s, a), as text
    source: str  # equation of the paper, or the work that it comes from
    defaults: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    policy: Policy | None = None  # its own, or else the Tsallis policy of the configuration

    @property
    def equation(self) -> str:
        return f"r + gamma {self.value}" + (f" + {self.bonus}" if self.bonus else "")


_SHANNON = {"q": 1.0}
_ROWS = (
    Algorithm("dqn", targets.dqn, "max Q'", "", "Mnih et al. 2015", {}, hard),
    Algorithm(
        "soft-dqn",
        targets.soft_dqn,
        "<pi', Q' - alpha ln pi'>",
        "",
        "eq. 2",
        _SHANNON,
        boltzmann,
    ),
    Algorithm("tsallis-dqn", targets.tsallis_dqn, "<pi',Q'>", "", "eq. 11, beta = 0"),
    Algorithm("al", targets.al, "max Q'", "beta (Q(s,a) - max Q)", "eq. 11, q = inf", {}, hard),
    Algorithm(
        "pal",
        targets.pal,
        "max Q'",
        "max{beta (Q(s,a) - max Q), gamma (Q'(a) - max Q')}",
        "Bellemare et al. 2016",
        {},
        hard,
    ),
    Algorithm(
        "pal-atari",
        targets.pal_atari,
        "max Q'",
        "beta max{Q(s,a) - max Q, Q'(a) - max Q'}",
        "Bellemare et al. 2016",
        {},
        hard,
    ),
    Algorithm(
        "sal",
        targets.sal,
        "max Q'",
        "beta b (Q(s,a) - max Q), b ~ Beta(2,7) + 7/9",
        "Lu et al. 2019",
        {"beta": 1.0},
        hard,
    ),
    Algorithm(
        "sal-printed",
        targets.sal_printed,
        "max Q'",
        "beta b (Q(s,a) - max Q), b ~ Beta(2,9) + 7/9",
        "table 2 as printed",
        {"beta": 1.0},
        hard,
    ),
    Algorithm(
        "mdqn",
        targets.mdqn,
        "<pi', Q' - alpha ln pi'>",
        "beta [alpha ln pi(a)]",
        "eq. 8",
        {**_SHANNON, "clip": -1.0},
        boltzmann,
    ),
    Algorithm("mt-dqn", targets.mt_dqn, "<pi',Q'>", "beta [w ln(pi(a) + Delta)]", "section 4.2"),
    Algorithm(
        "mt-dqn-qlog",
        targets.mt_dqn_qlog,
        "<pi',Q'>",
        "beta [w ln_q(pi(a) + Delta)]",
        "section 6, future work",
    ),
    Algorithm(
        "cvi",
        targets.cvi,
        "<pi',Q'>",
        "beta (Q(s,a) - <pi,Q>), pi softmax",
        "eq. 10",
        _SHANNON,
        boltzmann,
    ),
    Algorithm(
        "cvi-mellowmax",
        targets.cvi_mellowmax,
        "W(Q')",
        "beta (Q(s,a) - W(Q)), W mellowmax",
        "Kozuno et al. 2019",
        _SHANNON,
        boltzmann,
    ),
    Algorithm("tal", targets.tal, "<pi',Q'>", "beta (Q(s,a) - <pi,Q>)", "eq. 11, m = 1"),
    Algorithm(
        "tal-v",
        targets.tal_v,
        "<pi',Q'>",
        "beta (Q(s,a) - <pi,Q> - alpha H_q(pi))",
        "eq. 11 with the value V",
    ),
)
ALGORITHMS: dict[str, Algorithm] = {row.name: row for row in _ROWS}


def get_algorithm(name: str) -> Algorithm:
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; {suggest(name.lower(), ALGORITHMS)}")
    return ALGORITHMS[name]


def make_hparams(algorithm: str, **numbers: Any) -> HParams:
    """The algorithm's numbers, with those that follow from others filled in.

    Left open, `k` is the paper's 1/2, but 1 (Shannon) where q = 1, and `log_weight` is alpha.
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
