"""Converts a value given in Python or in a file to the type of its configuration field."""

from pathlib import Path
from typing import Any, get_args

import numpy as np

from tsallax.training.config import FIELDS, NUMBERS


def field_value(name: str, value: Any) -> Any:
    """One number where a grid may stand, lists, and whole numbers such as 1e5 are welcome."""
    if value is None:  # not given
        return None
    kind = FIELDS[name].type
    if name in NUMBERS:
        try:
            return tuple(np.atleast_1d(np.asarray(value, float)).tolist())
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a number or several, not {value!r}") from None
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if name == "hidden":
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    if name in ("preset", "init_from") and isinstance(value, Path):
        return str(value)
    if kind is str and not isinstance(value, str):
        raise ValueError(f"{name} must be a name, not {value!r}: several runs are a sweep")
    whole = int in (kind, *get_args(kind)) and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value
