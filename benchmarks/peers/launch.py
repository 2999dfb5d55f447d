"""The time from `tsallax train` to its first step and metrics, with a cold and a warm cache.

The preset is `paper`. jax logs when it has compiled a program, or found it in the cache. That of a
target period then runs, starting with the first step, which is not visible otherwise, as the
program ends with the period.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory

from race import PATIENCE, ROOT, environment, pinned, say

ENV = "CartPole-v1"
READY = "XLA compilation of jit(run)"  # the program of a target period
STEP, METRICS = "step", "metrics"


def launch(cores: tuple[int, ...], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Seconds to each event, with a cold (empty) and a warm cache of programs."""
    found = {event: {"cold": [], "warm": []} for event in (STEP, METRICS)}
    for _ in range(repeats):
        with TemporaryDirectory() as folder:
            for name in ("cold", "warm"):
                for event, seconds in first_times(cores, Path(folder), name).items():
                    found[event][name].append(round(seconds, 2))
                    say(f"launch, {name}: first {event} after {seconds:.1f} s")
    return found


def first_times(cores: tuple[int, ...], folder: Path, name: str) -> dict[str, float]:
    """Seconds to each event from the start of the process."""
    command = [
        *pinned(cores),
        str(Path(sys.executable).with_name("tsallax")),
        "train",
        ENV,
        "--preset",
        "paper",
    ]
    own = {
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "JAX_LOG_COMPILES": "1",
    }
    log, metrics = folder / f"{name}.log", folder / name / "metrics.csv"
    begin = time.perf_counter()
    with log.open("w") as told:
        process = Popen(
            [*command, "--out", str(folder / name)],
            stdout=DEVNULL,
            stderr=told,
            env=environment(len(cores), **own),
        )
    try:
        step = wait(process, lambda: READY in log.read_text()) - begin
        return {STEP: step, METRICS: wait(process, lambda: rows(metrics) > 0) - begin}
    finally:
        process.kill()
        process.wait()


def wait(process: Popen, there: Callable[[], bool]) -> float:
    """Wait until `there` returns true, and return the time."""
    begin = time.perf_counter()
    while not there():
        if process.poll() is not None or time.perf_counter() - begin > PATIENCE:
            raise RuntimeError("`tsallax train` took no step, or wrote no metrics")
        time.sleep(0.01)
    return time.perf_counter()


def rows(path: Path) -> int:
    """The number of complete rows below the header."""
    return max(path.read_text().count("\n") - 1, 0) if path.exists() else 0
