"""What a user gave in Python or in a file, as the value of a field of a configuration."""

from pathlib import Path
from typing import Any

import numpy as np

from tsallax.training.config import FIELDS, NUMBERS


def field_value(name: str, value: Any) -> Any:
    """One number where a grid may stand, lists, and whole numbers such as 1e5 are welcome."""
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
