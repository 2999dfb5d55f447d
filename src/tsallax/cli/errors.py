"""One clear line instead of a traceback, for what a user can mend."""

import functools
import sys
from collections.abc import Callable


def printable(text: object) -> str:
    """On one line, with escapes for what could move a terminal's cursor or colour it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def check_counts(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


def check_seed(seed: int) -> None:
    """Of episodes: it goes into a compiled program."""
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be between 0 and 2^31 - 1, not {seed}")


def one_line(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Bad input and a disk that refuses end the command with a line and exit code 2."""

    @functools.wraps(command)
    def run(*args, **kwargs) -> int | None:
        try:
            return command(*args, **kwargs)
        except (ValueError, OSError) as error:
            print(f"tsallax: {printable(error)}", file=sys.stderr)
            return 2

    return run
