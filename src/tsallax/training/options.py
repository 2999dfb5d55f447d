"""How an option of a run is declared: once, for the command line, Python and studies."""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

Rule = tuple[str, Callable[[Any], bool]]  # what is allowed, in words and as a test

POSITIVE: Rule = ("positive", lambda x: 0 < x < math.inf)
NOT_NEGATIVE: Rule = ("0 or more", lambda x: 0 <= x < math.inf)
SHARE: Rule = ("between 0 and 1", lambda x: 0 <= x <= 1)
AT_LEAST_ONE: Rule = ("at least 1", lambda x: x >= 1)


class Range(NamedTuple):
    """Where `tsallax tune` looks for a number."""

    low: float
    high: float
    log: bool = False  # evenly in its logarithm


class Choices(NamedTuple):
    """Which values `tsallax tune` tries of a shape, if it is asked to search shapes."""

    values: tuple[Any, ...]


def option(
    group: str,
    help: str,  # noqa: A002 (as the field calls it)
    default: Any = None,
    rule: Rule | None = None,
    grid: bool = False,
    aliases: tuple[str, ...] = (),
    tune: Range | Choices | None = None,
) -> Any:
    """A field of `Config`.

    Args:
        group: the heading under which `--help` shows it.
        help: what it is, as a sentence or a phrase that stands alone.
        default: None is "not given": the algorithm, the choices or the preset fill it in.
        rule: which values are allowed.
        grid: a number of the equations, of which several values make a grid.
        aliases: other spellings on the command line.
        tune: where `tsallax tune` looks for it; it leaves the others as they are.
    """
    about = {"group": group, "help": help, "rule": rule, "grid": grid, "aliases": aliases}
    return field(default=default, metadata={**about, "tune": tune})


def number(help: str, rule: Rule, aliases: tuple[str, ...] = (), tune: Range | None = None) -> Any:  # noqa: A002
    """A number of the equations: traced, so that several values are one program."""
    return option("algorithm", help, rule=rule, grid=True, aliases=aliases, tune=tune)
