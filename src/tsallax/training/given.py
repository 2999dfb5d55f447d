"""Converts a value given in Python or in a file to the type of its configuration field."""

from pathlib import Path
from typing import Any

import numpy as np

from tsallax.training.config import FIELDS, NUMBERS


def field_value(name: str, value: Any) -> Any:
    """The value for field `name`: accepts one number for a grid, lists, and integers like 1e5."""
    kind = FIELDS[name].type
    if name in NUMBERS:
        try:
            return tuple(np.atleast_1d(np.asarray(value, float)).tolist())
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number or several, not {value!r}") from None
    if name == "hidden":
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    if name in ("preset", "init_from") and isinstance(value, Path):
        return str(value)
    if kind is str and not isinstance(value, str):
        raise ValueError(f"{name} must be a name, not {value!r}: several runs are a sweep")
    whole = kind is int and isinstance(value, float | np.number) and value == int(value)
    return int(value) if whole else value
