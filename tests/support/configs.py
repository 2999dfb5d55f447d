"""Configurations of tests: by the paper's tables, which do not change."""

from typing import Any

from tsallax.training.config import Config
from tsallax.training.resolve import resolve


def paper(env: str, **fields: Any) -> Config:
    """A resolved configuration; the preset is the paper's if it is not given."""
    return resolve(Config(env, **{"preset": "paper", **fields}))
