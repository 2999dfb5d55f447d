"""What a user gave: values of Python or of a file as the fields of a configuration."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from tsallax.spelling import suggest
from tsallax.storage.toml_file import read_toml
from tsallax.training.config import FIELDS, NUMBERS, Config
from tsallax.training.resolve import NAMED

# What a preset may say.
OPEN = [n for n, field in FIELDS.items() if field.default is None and n != "init_cell"]


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


def with_preset_file(config: Config) -> Config:
    """The same configuration, in the place of a preset file what that file says.

    What was given stays. The file is a flat table of options in TOML, of those that a preset can
    say; its own `preset` is what stands beneath it.
    """
    name = config.preset
    if name is None or name in NAMED or not name.endswith(".toml"):
        return config
    table = read_toml(Path(name))
    config = dataclasses.replace(config, preset=None)
    for key in table:
        if key not in OPEN:
            known = "it is not a preset's to say" if key in FIELDS else suggest(key, OPEN)
            raise ValueError(f"{name}: no option {key!r}; {known}")
    try:
        found = {key: field_value(key, value) for key, value in table.items()}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    return dataclasses.replace(
        config, **{key: x for key, x in found.items() if getattr(config, key) is None}
    )
