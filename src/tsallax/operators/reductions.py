"""Which algorithm reduces to which other one at what numbers, from the rows of the table."""

import re
from typing import NamedTuple

from tsallax.operators.table import ALGORITHMS


class Reduction(NamedTuple):
    """`one` equals `other` if both have the numbers in `at`."""

    one: str
    other: str
    at: str  # such as "q = 1, entropy = 1"
    numbers: dict[str, float]


SMALL = 1e-6  # for "to 0"


def parse_reduction(one: str, text: str) -> Reduction:
    """Parse the text in a row: "al at q = inf", "dqn at alpha to 0"."""
    other, _, at = text.partition(" at ")
    found = [re.fullmatch(r"(\w+) (?:= (\S+)|to 0)", part) for part in at.split(", ")]
    if not all(found):
        raise ValueError(f'{one}: a reduction reads "NAME at q = 1, alpha to 0", not {text!r}')
    numbers = {part[1]: SMALL if part[2] is None else float(part[2]) for part in found if part}
    return Reduction(one, other, at, numbers)


def list_reductions() -> list[Reduction]:
    """All reductions of the table."""
    return [
        parse_reduction(row.name, text) for row in ALGORITHMS.values() for text in row.reductions
    ]
