"""Files of options that a user names, in TOML: studies, presets, search spaces."""

import tomllib
from pathlib import Path
from typing import Any

from tsallax.storage.files import read_named

LARGEST = 1 << 20  # bytes


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a file; one line says what is wrong with it."""
    return parse_toml(read_named(path, LARGEST), str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The same of a text, which is called `name`."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except RecursionError:
        raise ValueError(f"{name}: lists or tables are nested too deeply") from None
