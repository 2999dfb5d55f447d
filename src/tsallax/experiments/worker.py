"""A process that runs jobs one after the other, on one core.

    python -m tsallax.experiments.worker CORE BEAT

A job is a line of JSON on standard input, `{"config": ..., "path": ...}`; the answer is a line on
standard output: `{"end": "done"}`, `{"end": "stopped"}`, `{"busy": ...}` or `{"error": ...}`. An
empty answer, `{}`, is sent every BEAT seconds as a heartbeat. Standard error is the log. Compiled
programs are kept between jobs.
"""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


def work(
    config: dict[str, Any], path: str, alone: Callable[[], bool] = lambda: False
) -> dict[str, str]:
    """Run one job, resumed if it was begun, until it ends or `alone` returns true.

    `alone` tells whether the parent process has died. An error is returned as an answer, too.
    """
    from tsallax._jaxlib import use_cache
    from tsallax.storage.files import BusyError
    from tsallax.storage.run_folder import SCHEMA, status
    from tsallax.training.build import check_memory, make_run
    from tsallax.training.driver import Silent, train_into
    from tsallax.training.interrupt import Interrupt
    from tsallax.training.stored_config import from_json

    try:
        use_cache()
        wanted = from_json(config, SCHEMA)
        if status(Path(path), config) == "done":
            return {"end": "done"}
        run = make_run(wanted)
        check_memory(run)
        with Interrupt() as interrupt:
            asked = lambda: interrupt.asked or alone()  # noqa: E731
            end = train_into(run, Path(path), Silent(), asked, say=log, keep_state=False)
        return {"end": end.status}
    except BusyError as error:
        return {"busy": str(error)}
    except Exception as error:
        log(traceback.format_exc())
        return {"error": f"{type(error).__name__}: {error}"}


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(core: int, beat: float) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})  # before XLA counts its threads
    answers, one_line = os.fdopen(os.dup(1), "w", buffering=1), threading.Lock()
    os.dup2(2, 1)  # standard output is only for answers
    sweep = os.getppid()

    def say(answer: dict[str, str]) -> None:
        with one_line:
            print(json.dumps(answer), file=answers)

    def live() -> None:
        while os.getppid() == sweep:
            say({})
            time.sleep(beat)

    threading.Thread(target=live, daemon=True).start()
    for line in sys.stdin:
        answer = work(**json.loads(line), alone=lambda: os.getppid() != sweep)
        say(answer)
        if answer.get("end") == "stopped":
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
