"""The progress of `tsallax.train` on one line, which is updated in a notebook or terminal."""

import sys
import time
from html import escape
from typing import Any

import numpy as np

from tsallax.learners import Ended
from tsallax.spelling import duration
from tsallax.training.config import Config
from tsallax.training.driver import Progress

EVERY = 5.0  # seconds between two lines if the output cannot be overwritten
OFTEN = 0.2  # seconds between two updates if it can


class Line:
    """A watcher that shows the progress of a run on one line."""

    def __init__(self, config: Config, cells: int):
        self.steps, self.cells, self.step = config.steps, cells, 0
        self.text = f"{config.algo} on {config.env}: compiling ..."
        self.begin, self.shown, self.seen, self.width = time.monotonic(), 0.0, 0.0, 0
        self.place = _notebook_place(self)
        self.terminal = self.place is None and sys.stdout.isatty()
        if self.terminal:
            self._draw()

    def end(self) -> None:
        """Show the final state; on a terminal, also end the line."""
        if self.shown < self.seen:
            self._draw()
        if self.terminal:
            print(flush=True)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.step}" max="{self.steps}" style="width: 16em"></progress>'
        return f"<div>{bar} {escape(self.text)}</div>"

    def begin_at(self, step: int) -> None:
        self.step = step

    def tick(self, step: int, episodes: Ended | None = None) -> None: ...

    def __call__(self, progress: Progress) -> None:
        """Show the results of a period."""
        self.seen = time.monotonic()
        self.step = progress.period.step
        parts = [f"{self.step:,} / {self.steps:,} steps"]
        if progress.last:
            parts.append(f"in {duration(time.monotonic() - self.begin)}")
        elif progress.speed:
            left = (self.steps - self.step) * self.cells / progress.speed
            parts += [f"{progress.speed:,.0f} steps/s", f"{duration(left)} left"]
        returns = np.asarray(progress.period.metrics.episode_return)
        ended = returns[np.isfinite(returns)]
        parts.append(f"return {ended.mean():.1f}" if len(ended) else "no episode ended")
        self.text = "   ".join(parts)
        often = OFTEN if self.place or self.terminal else EVERY
        if progress.last or self.seen - self.shown >= often:
            self._draw()

    def _draw(self) -> None:
        self.shown = time.monotonic()
        if self.place is not None:
            self.place.update(self)
        elif self.terminal:
            print(f"\r{self.text:{self.width}}", end="", flush=True)
            self.width = len(self.text)
        else:
            print(self.text, flush=True)


def _notebook_place(line: Line) -> Any:
    """The display handle in a notebook, else None; a notebook has already imported IPython."""
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython  # pyright: ignore[reportMissingImports]
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    if not hasattr(get_ipython(), "kernel"):
        return None
    return display(line, display_id=True)
