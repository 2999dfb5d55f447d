"""One clear line instead of a traceback, for what a user can mend."""

import functools
import sys
from collections.abc import Callable


def one_line(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Bad input and a disk that refuses end the command with a line and exit code 2."""

    @functools.wraps(command)
    def run(*args, **kwargs) -> int | None:
        try:
            return command(*args, **kwargs)
        except (ValueError, OSError) as error:
            print(f"tsallax: {error}", file=sys.stderr)
            return 2

    return run
