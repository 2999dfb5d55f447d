"""When programs are compiled in this process, and for how long, as JAX itself measures it."""

import time
from typing import Any

import jax.monitoring

PREFIX = "/jax/core/compile/"
_spans: list[tuple[float, float]] = []  # in order, and apart from each other
_begun: list[float] = []  # of what is being traced, lowered or compiled, the outermost first


def _note_begin(event: str, value: float | int, **_: Any) -> None:
    if event.startswith(PREFIX):
        _begun.append(time.monotonic())


def _note(event: str, duration_secs: float, **_: Any) -> None:
    if event.startswith(PREFIX):
        now = time.monotonic()
        add_span(_spans, now - duration_secs, now)
        del _begun[-1:]


def add_span(spans: list[tuple[float, float]], begin: float, end: float) -> None:
    """Add what just ended. Tracing a program traces those inside it: no second counts twice."""
    while spans and spans[-1][0] >= begin:
        spans.pop()
    spans.append((max(begin, spans[-1][1]) if spans else begin, end))


def compile_seconds() -> float:
    """Seconds of tracing and compilation so far."""
    return sum(end - begin for begin, end in _spans)


def compiling_for() -> float | None:
    """Seconds since the program began that is being compiled; None if none is."""
    begun = _begun[:1]  # a copy: another thread may ask
    return time.monotonic() - begun[0] if begun else None


jax.monitoring.register_event_duration_secs_listener(_note)
jax.monitoring.register_scalar_listener(_note_begin)
