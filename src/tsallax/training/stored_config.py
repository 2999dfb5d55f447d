"""Reads the configuration and the weights of a run folder, also of older versions."""

import sys
from pathlib import Path
from typing import Any, get_args

from tsallax.storage.files import Directory
from tsallax.storage.reader import read, unflatten
from tsallax.storage.run_folder import BEST, RUN, WEIGHTS, About, read_about
from tsallax.storage.tensors import Digest, specs_of
from tsallax.training.config import FIELDS, NUMBERS, YOUNGER, Config
from tsallax.training.presets import OPTIMISER_EPS
from tsallax.training.resolve import resolve


def from_json(fields: dict[str, Any], schema: int) -> Config:
    """The resolved configuration that was stored; anything else is refused."""
    try:
        if schema < 3:
            fields = _from_schema_2(fields)
        fields = {name: FIELDS[name].default for name in YOUNGER} | fields
        if set(fields) != set(FIELDS):
            odd = sorted(set(fields) ^ set(FIELDS))
            raise ValueError(f"the configuration has other fields: {', '.join(map(str, odd))[:80]}")
        config = Config(**{name: _value(name, value) for name, value in fields.items()})
        found = resolve(config)
        if schema >= 3 and found != config:
            raise ValueError("the configuration was not resolved")
    except (TypeError, AttributeError, KeyError, OverflowError):
        raise ValueError("the configuration is damaged") from None
    return found


def _from_schema_2(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert schema 2: an empty list was a number not given, and some options did not exist."""
    since: dict[str, Any] = {name: field.default for name, field in FIELDS.items()}
    since |= {"learner": "replay", "updates": 1, "random_warmup": False}
    since["optimiser_eps"] = OPTIMISER_EPS[fields["optimiser"]]
    fields = since | fields
    if fields["env"].startswith("ALE/") and fields["episodic_life"] is None:
        fields["episodic_life"] = False
    return {n: None if n in NUMBERS and x == [] else x for n, x in fields.items()}


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in NUMBERS:  # infinity is stored as a string
        return tuple(float(x) for x in value)
    kind = FIELDS[name].type
    items = value = tuple(value) if name == "hidden" else value
    items = items if name == "hidden" else (value,)
    kinds = {int} if name == "hidden" else {t for t in (kind, *get_args(kind)) if t in KINDS}
    allowed = (kinds or {str}) | ({int} if float in kinds else set())
    if any(type(item) not in allowed for item in items):
        raise ValueError(f"the configuration is damaged: {name}")
    return float(value) if float in kinds else value


KINDS = (int, float, bool, str)


def read_run(path: Path, allowed: str = "") -> tuple[Config, About]:
    """Read the configuration of a run folder, and the contents of its `run.json`.

    A name found in a file never causes an import: an environment `package:Name` must be `allowed`,
    or its package already imported.
    """
    about = read_about(path)
    env = str(about.config.get("env"))
    package = env.partition(":")[0]
    if ":" in env and env != allowed and package not in sys.modules:
        raise ValueError(
            f"{path} needs {package!r}: give its environment, {env}, to allow the import"
        )
    return from_json(about.config, about.schema), about


def load_weights(path: Path, about: About, like: Any, best: bool = False) -> Any:
    """Load the weights of a run folder in the structure of `like`; any difference is refused.

    They are the last ones, or those with the `best` evaluation of each cell.
    """
    return load_arrays(path, about, like, BEST if best else WEIGHTS)


def load_arrays(path: Path, about: About, like: Any, name: str) -> Any:
    """Load one file of weights of a run folder, in the structure of `like`."""
    try:
        wanted = Digest(**about.everything["files"][name])
    except (KeyError, TypeError):
        if name == BEST:
            raise ValueError(f"{path} was not evaluated while it was trained") from None
        raise ValueError(f"{path} has no weights that {RUN} lists") from None
    with Directory(path) as folder:
        arrays = read(folder, name, specs_of(like), wanted)
    return unflatten(like, arrays)
