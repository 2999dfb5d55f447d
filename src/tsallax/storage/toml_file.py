"""Reads a user's TOML files: studies, presets, search spaces."""

import tomllib
from pathlib import Path
from typing import Any

from tsallax.storage.files import read_named

LARGEST = 1 << 20  # bytes


def read_toml(path: Path) -> dict[str, Any]:
    """Read the table of a file; errors are one line."""
    return parse_toml(read_named(path, LARGEST), str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse a text; `name` stands for it in errors."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except RecursionError:
        raise ValueError(f"{name}: lists or tables are nested too deeply") from None
