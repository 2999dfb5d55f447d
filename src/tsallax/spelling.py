"""Text for messages: the nearest name to an unknown one, counts, install commands."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from shutil import which


def suggest(name: str, known: Iterable[str]) -> str:
    """Suggests the nearest name, or lists all of them."""
    known = list(known)
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def counted(n: int, noun: str) -> str:
    """A count with its noun: 1 run, 2 runs."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def printable(text: object) -> str:
    """The text on one line, with terminal control characters escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def install(extra: str) -> str:
    """The command that installs an extra into this environment, whichever `pip` is on the path."""
    own = Path(which("pip") or "").parent == Path(sys.executable).parent
    there = f"{sys.executable} -m pip" if find_spec("pip") else "uv pip"  # uv installs no pip
    return f"{'pip' if own else there} install 'tsallax[{extra}]'"
