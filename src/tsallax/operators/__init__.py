"""Bootstrap targets, the table of algorithms, losses."""

from tsallax.operators.losses import huber, quantile_huber, squared
from tsallax.operators.table import ALGORITHMS, Algorithm, get_algorithm, make_hparams
from tsallax.operators.targets import action_values, advantage, expect

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "action_values",
    "advantage",
    "expect",
    "get_algorithm",
    "huber",
    "make_hparams",
    "quantile_huber",
    "squared",
]
