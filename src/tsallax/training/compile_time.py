"""When this process compiles programs, and for how long, by JAX's own monitoring events."""

import time
from typing import Any

import jax.monitoring

PREFIX = "/jax/core/compile/"
_spans: list[tuple[float, float]] = []  # sorted and disjoint
_begun: list[float] = []  # begin of each event under way (trace, lower, compile), outermost first


def _note_begin(event: str, value: float | int, **_: Any) -> None:
    if event.startswith(PREFIX):
        _begun.append(time.monotonic())


def _note(event: str, duration_secs: float, **_: Any) -> None:
    if event.startswith(PREFIX):
        now = time.monotonic()
        add_span(_spans, now - duration_secs, now)
        del _begun[-1:]


def add_span(spans: list[tuple[float, float]], begin: float, end: float) -> None:
    """Add an event that just ended, merging nested ones so that no second counts twice."""
    while spans and spans[-1][0] >= begin:
        spans.pop()
    spans.append((max(begin, spans[-1][1]) if spans else begin, end))


def compile_seconds() -> float:
    """The seconds of tracing and compilation so far."""
    return sum(end - begin for begin, end in _spans)


def compiling_for() -> float | None:
    """The seconds since the compilation under way began; None if there is none."""
    begun = _begun[:1]  # a copy: another thread may ask
    return time.monotonic() - begun[0] if begun else None


jax.monitoring.register_event_duration_secs_listener(_note)
jax.monitoring.register_scalar_listener(_note_begin)
