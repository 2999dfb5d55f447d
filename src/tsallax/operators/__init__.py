"""Every algorithm as a value and a bonus, the table of algorithms, returns and losses."""

from tsallax.operators.actor_critics import ACTOR_CRITICS, ActorCritic
from tsallax.operators.equations import equation_of
from tsallax.operators.reductions import list_reductions
from tsallax.operators.returns import lambda_returns, n_step_returns
from tsallax.operators.table import (
    ALGORITHMS,
    Algorithm,
    get_algorithm,
    get_row,
    make_hparams,
    one_step,
    terms,
)
from tsallax.operators.targets import (
    action_values,
    advantage,
    expect,
    huber,
    quantile_huber,
    squared,
)

__all__ = [
    "ACTOR_CRITICS",
    "ALGORITHMS",
    "ActorCritic",
    "Algorithm",
    "action_values",
    "advantage",
    "equation_of",
    "expect",
    "get_algorithm",
    "get_row",
    "huber",
    "lambda_returns",
    "list_reductions",
    "make_hparams",
    "n_step_returns",
    "one_step",
    "quantile_huber",
    "squared",
    "terms",
]
