"""How long programs have taken to compile in this process, as JAX itself measures it."""

import time
from typing import Any

import jax.monitoring

PREFIX = "/jax/core/compile/"
_spans: list[tuple[float, float]] = []  # in order, and apart from each other


def _note(event: str, duration_secs: float, **_: Any) -> None:
    if event.startswith(PREFIX):
        now = time.monotonic()
        add_span(_spans, now - duration_secs, now)


def add_span(spans: list[tuple[float, float]], begin: float, end: float) -> None:
    """Add what just ended. Tracing a program traces those inside it: no second counts twice."""
    while spans and spans[-1][0] >= begin:
        spans.pop()
    spans.append((max(begin, spans[-1][1]) if spans else begin, end))


def compile_seconds() -> float:
    """Seconds of tracing and compilation so far."""
    return sum(end - begin for begin, end in _spans)


jax.monitoring.register_event_duration_secs_listener(_note)
