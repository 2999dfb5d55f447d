"""Declares the options of a run: each once, for the command line, Python and studies."""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

Rule = tuple[str, Callable[[Any], bool]]  # the allowed values, in words and as a predicate

POSITIVE: Rule = ("positive", lambda x: 0 < x < math.inf)
NOT_NEGATIVE: Rule = ("0 or more", lambda x: 0 <= x < math.inf)
SHARE: Rule = ("between 0 and 1", lambda x: 0 <= x <= 1)
AT_LEAST_ONE: Rule = ("at least 1", lambda x: x >= 1)


class Range(NamedTuple):
    """The range in which `tsallax tune` searches a number."""

    low: float
    high: float
    log: bool = False  # uniform in its logarithm


class Choices(NamedTuple):
    """The values that `tsallax tune` tries for a shape, if it is asked to search shapes."""

    values: tuple[Any, ...]


def option(
    group: str,
    help: str,  # noqa: A002 (the usual name)
    default: Any = None,
    rule: Rule | None = None,
    grid: bool = False,
    aliases: tuple[str, ...] = (),
    tune: Range | Choices | None = None,
) -> Any:
    """A field of `Config`.

    Args:
        group: the heading under which `--help` shows it.
        help: its description, as a sentence or phrase that stands alone.
        default: None is "not given": the algorithm, the choices or the preset fill it in.
        rule: the allowed values.
        grid: whether it is a number of the equations, of which several values make a grid.
        aliases: other spellings on the command line.
        tune: where `tsallax tune` searches it; None leaves it fixed.
    """
    about = {"group": group, "help": help, "rule": rule, "grid": grid, "aliases": aliases}
    return field(default=default, metadata={**about, "tune": tune})


def number(help: str, rule: Rule, aliases: tuple[str, ...] = (), tune: Range | None = None) -> Any:  # noqa: A002
    """A number of the equations, which is traced, so that several values are one program."""
    return option("algorithm", help, rule=rule, grid=True, aliases=aliases, tune=tune)
