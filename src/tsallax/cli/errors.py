"""One clear line instead of a traceback, for errors that a user can fix."""


def printable(text: object) -> str:
    """The text on one line, with escapes for what could move a terminal's cursor or colour it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def check_counts(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")


def check_seed(seed: int) -> None:
    """A seed of episodes is an argument of a compiled program, so it must fit an int32."""
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed must be between 0 and 2^31 - 1, not {seed}")


def one_line(error: Exception) -> str:
    """The message of an error, without the number that the operating system gives it."""
    if isinstance(error, OSError) and error.strerror:
        return printable(
            f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        )
    return printable(error)
