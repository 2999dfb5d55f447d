"""From `tsallax train` to its first line of metrics, with an empty compile cache and a full one."""

import sys
import time
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory

from race import PATIENCE, ROOT, environment, pinned, say

ENV = "CartPole-v1"


def launch(cores: tuple[int, ...], repeats: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"cold": [], "warm": []}
    for _ in range(repeats):
        with TemporaryDirectory() as folder:
            for name, column in found.items():
                column.append(round(first_metrics(cores, Path(folder), name), 2))
                say(f"launch, {name}: {column[-1]:.1f} s")
    return found


def first_metrics(cores: tuple[int, ...], folder: Path, name: str) -> float:
    """Seconds from the start of the process to the first row, after a target period."""
    command = [*pinned(cores), str(Path(sys.executable).with_name("tsallax")), "train", ENV]
    own = {
        "PYTHONPATH": str(ROOT / "src"),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    begin = time.perf_counter()
    process = Popen(
        [*command, "--out", str(folder / name)],
        stdout=DEVNULL,
        stderr=DEVNULL,
        env=environment(len(cores), **own),
    )
    try:
        while not rows(folder / name / "metrics.csv"):
            if process.poll() is not None or time.perf_counter() - begin > PATIENCE:
                raise RuntimeError("`tsallax train` wrote no metrics")
            time.sleep(0.01)
        return time.perf_counter() - begin
    finally:
        process.kill()
        process.wait()


def rows(path: Path) -> int:
    """Whole rows below the header."""
    return max(path.read_text().count("\n") - 1, 0) if path.exists() else 0
