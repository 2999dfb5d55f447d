"""Words for people: the nearest name to an unknown one, and numbers of things."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(name: str, known: Iterable[str]) -> str:
    """The nearest name, or all there are."""
    known = list(known)
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def counted(n: int, noun: str) -> str:
    """A number of things: 1 run, 2 runs."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
