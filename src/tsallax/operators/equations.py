"""The equation of an algorithm as text, from the docstrings of its two terms."""

import inspect
import re
from collections.abc import Callable
from typing import Any

Term = Callable[..., Any]  # a value or a bonus


def target_equation(value: Term, bonus: Term) -> str:
    added = equation_of(bonus)
    return f"r + gamma {_in_brackets(equation_of(value))}" + (f" + {added}" if added != "0" else "")


def _in_brackets(formula: str) -> str:
    return f"({formula})" if " - " in formula and formula[0] != "<" else formula


def equation_of(term: Term) -> str:
    """The first formula in the docstring of `term`, or the function's name if there is none."""
    formula = re.search(r"`(.+?)`", inspect.getdoc(term) or "")
    return formula[1] if formula else getattr(term, "__name__", repr(term))
