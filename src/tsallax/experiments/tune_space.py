"""The space of a search for settings: the options, and the range of each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax.spelling import suggest
from tsallax.storage.toml_file import read_toml
from tsallax.training.config import (
    FIELDS,
    NUMBERS,
    OFF,
    Config,
    agent_kind,
    foreign_options,
    in_effect,
)
from tsallax.training.given import field_value
from tsallax.training.options import Choices, Range
from tsallax.training.presets import OPEN, with_preset_file
from tsallax.training.resolve import EVALUATIONS, resolve

Space = dict[str, Range | Choices]
EPISODES = 10  # number of episodes per evaluation and seed
GROUPS = ("algorithm", "network")  # groups of options that can be searched


class Search(NamedTuple):
    """A search: the settings to start from, and a range for each option of the space."""

    base: Config  # resolved
    space: Space

    def start(self) -> dict[str, Any]:
        """The values of the first trial."""
        return {name: _one(name, in_effect(self.base, name)) for name in self.space}

    def config(self, values: Mapping[str, Any]) -> Config:
        """The configuration of a trial."""
        return resolve(replace(self.base, **{n: as_field(n, x) for n, x in values.items()}))


def make_search(
    given: Config, start: Sequence[str] = (), file: Path | None = None, shapes: bool = False
) -> Search:
    """The search over every option that has a range, belongs to the learner and was not given.

    Args:
        given: the options given, which are fixed; the others are None.
        start: values to start from, such as `beta=0.9`, instead of the preset's.
        file: a table of options and their ranges, which is then the whole space.
        shapes: also search the options that have choices. Each shape is a separate program.
    """
    wanted = with_preset_file(replace(given, **_parse(start)))
    base = resolve(wanted)
    if not wanted.eval_every:
        base = resolve(replace(base, eval_every=-(-base.steps // EVALUATIONS)))
    if wanted.eval_episodes is None:  # four evaluations count, of every seed
        base = replace(base, eval_episodes=EPISODES)
    known = _searchable(base)
    if file is not None:
        space = _read_space(file, known)
        if fixed := [n for n in space if getattr(given, n) is not None]:
            raise ValueError(f"{file}: {fixed[0]} is given and searched: leave one of them out")
    else:
        declared = {n: FIELDS[n].metadata["tune"] for n in known if FIELDS[n].metadata["tune"]}
        kinds = (Range, Choices) if shapes else (Range,)
        space = {
            n: where
            for n, where in declared.items()
            if isinstance(where, kinds) and getattr(given, n) is None
        }
    space = {n: _widen(n, where, in_effect(base, n)) for n, where in space.items()}
    if not space:
        raise ValueError("there is nothing to search: every option that has a range was given")
    search = Search(base, space)
    for name, where in space.items():  # refuse bad values now, not after an hour
        for value in where.values if isinstance(where, Choices) else where[:2]:
            search.config({name: value})
    return search


def as_field(name: str, value: Any) -> Any:
    """Converts a value of the search to one of the configuration."""
    if name == "hidden":
        return tuple(map(int, value.split()))
    return (float(value),) if name in NUMBERS else value


def _searchable(base: Config) -> list[str]:
    """The options of the algorithm and the network that this run has."""
    foreign = foreign_options(base, agent_kind(base))
    return [
        n
        for n in OPEN
        if FIELDS[n].metadata["group"] in GROUPS
        and n not in foreign
        and (n in OFF or getattr(base, n) is not None)
    ]


def _read_space(file: Path, known: Sequence[str]) -> Space:
    """`NAME = {low = 0.1, high = 1.0, log = true}`, or `NAME = {choices = [...]}`."""
    space: Space = {}
    for name, about in read_toml(file).items():
        if name not in known:
            raise ValueError(f"{file}: {name!r} cannot be searched; {suggest(name, known)}")
        try:
            space[name] = _read_range(name, about)
        except (TypeError, ValueError, KeyError):
            raise ValueError(
                f"{file}: {name} must be {{low = ..., high = ..., log = true or false}}, or "
                "{choices = [...]}"
            ) from None
        if isinstance(space[name], Range) and FIELDS[name].type is int:
            raise ValueError(f"{file}: {name} is a whole number: give it choices")
    return space


def _read_range(name: str, about: Any) -> Range | Choices:
    if set(about) == {"choices"} and about["choices"]:
        return Choices(tuple(_one(name, field_value(name, x)) for x in about["choices"]))
    low, high, log = float(about["low"]), float(about["high"]), about.get("log", False)
    if set(about) - {"low", "high", "log"} or not low < high or (log and low <= 0):
        raise ValueError
    return Range(low, high, bool(log))


def _parse(words: Sequence[str]) -> dict[str, Any]:
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in FIELDS or not isinstance(FIELDS[name].metadata["tune"], Range):
            known = [n for n, field in FIELDS.items() if isinstance(field.metadata["tune"], Range)]
            raise ValueError(f"start: {name!r} is not searched; {suggest(name, known)}")
        try:
            found[name] = (float(text),) if name in NUMBERS else float(text)
        except ValueError:
            raise ValueError(f"start: {word!r} is not NAME=NUMBER") from None
    return found


def _one(name: str, value: Any) -> Any:
    """Converts a value of the configuration to one of the search: a number or a string."""
    if name == "hidden":
        return " ".join(map(str, value))
    if name not in NUMBERS:
        return value
    values = np.atleast_1d(value)
    if len(values) > 1:
        raise ValueError("a search starts from one value of each number, not from a grid")
    return float(values[0])


def _widen(name: str, where: Range | Choices, start: Any) -> Range | Choices:
    """The range, widened to contain the value that the search starts from."""
    value = _one(name, start)
    if isinstance(where, Choices):
        found = tuple(_one(name, x) if isinstance(x, tuple) else x for x in where.values)
        return Choices(found if value in found else (*found, value))
    return Range(min(where.low, value), max(where.high, value), where.log and value > 0)
