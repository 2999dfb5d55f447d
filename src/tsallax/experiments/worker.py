"""A process that runs jobs one after the other, on one core.

    python -m tsallax.experiments.worker CORE

A job is a line of JSON on standard input, `{"config": ..., "path": ...}`; the answer is one on
standard output: `{"end": "done"}`, `{"end": "stopped"}`, `{"busy": ...}` or `{"error": ...}`.
Standard error is the log. Programs stay compiled from one job to the next.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def work(
    config: dict[str, Any], path: str, alone: Callable[[], bool] = lambda: False
) -> dict[str, str]:
    """One job, from where it stands, until it ends or the worker is left `alone`.

    What went wrong is an answer, too.
    """
    from tsallax.training.cache import use_cache
    from tsallax.training.conduct import Interrupt, conduct
    from tsallax.training.config import from_json
    from tsallax.training.folder import status
    from tsallax.training.lock import BusyError
    from tsallax.training.run import check_memory, make_run

    try:
        use_cache()
        wanted = from_json(config)
        if status(Path(path), wanted) == "done":
            return {"end": "done"}
        run = make_run(wanted)
        check_memory(run)
        with Interrupt() as interrupt:
            asked = lambda: interrupt.asked or alone()  # noqa: E731
            end = conduct(run, Path(path), Pace(), asked, say=log)
        return {"end": end.status}
    except BusyError as error:
        return {"busy": str(error)}
    except Exception as error:
        log(traceback.format_exc())
        return {"error": f"{type(error).__name__}: {error}"}


class Pace:
    """Steps a second since the first period, which was compiled on the way."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None

    def begin_at(self, step: int) -> None:
        pass

    def tick(self, step: int) -> None:
        pass

    def __call__(self, step: int, metrics: Any, stopped: dict[int, str]) -> float:
        now, cells = time.monotonic(), len(metrics.step)
        if self.first is None:
            self.first = now, step
            return 0.0
        return (step - self.first[1]) * cells / max(now - self.first[0], 1e-9)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(core: int) -> None:
    os.sched_setaffinity(0, {core})  # before XLA counts its threads
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nothing else may speak there
    sweep = os.getppid()
    for line in sys.stdin:
        answer = work(**json.loads(line), alone=lambda: os.getppid() != sweep)
        print(json.dumps(answer), file=answers)
        if answer.get("end") == "stopped":
            return


if __name__ == "__main__":
    main(int(sys.argv[1]))
