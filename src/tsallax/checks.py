"""Errors for values that are known now; a value that is being traced passes unseen."""

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike


def is_traced(x: ArrayLike) -> bool:
    return isinstance(x, Tracer)


def require_finite(name: str, x: ArrayLike) -> None:
    if not is_traced(x) and not np.all(np.isfinite(np.asarray(x))):
        raise ValueError(f"{name} must be finite, but it holds NaN or infinite values")


def require_positive(name: str, x: ArrayLike, hint: str = "") -> None:
    if not is_traced(x) and not np.all(np.asarray(x) > 0):
        raise ValueError(f"{name} must be positive, not {np.asarray(x)}{hint}")


def require_actions(name: str, x: ArrayLike) -> None:
    """The last axis is the actions, at least one of them."""
    shape = np.shape(x)
    if not shape or shape[-1] == 0:
        raise ValueError(f"the last axis of {name} is the actions: at least one, not shape {shape}")


def suggest(name: str, known: Iterable[str]) -> str:
    """For an unknown name: the nearest one, or all there are."""
    known = list(known)
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
