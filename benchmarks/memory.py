"""The peak memory of a run of the minatar preset, stage by stage.

    python benchmarks/memory.py

Two processes run one after the other: the first compiles the program and caches it, the second
finds it in the cache.
"""

import os
import sys
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any


def peak() -> int:
    """The peak resident memory of this process so far, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(1024e-6 * next(int(x.split()[1]) for x in lines if x.startswith("VmHWM")))


def stages() -> None:
    """Print a line after each stage: its name and the peak."""
    say = lambda stage: print(stage, peak(), sep="\t", flush=True)  # noqa: E731
    import numpy as np

    say("Python and numpy")
    import jax

    jax.block_until_ready(jax.numpy.ones(1) + 1)
    say("jax, and one operation")
    from tsallax.learners.device import program
    from tsallax.training.build import make_run
    from tsallax.training.config import Config
    from tsallax.training.resolve import resolve

    built = make_run(resolve(Config("MinAtar/Breakout", preset="paper", steps=10**6)))
    learner: Any = built.learner
    state = learner.start()
    say("the run's start: network, environment, replay")
    numbers = next(learner.plan(0))
    lowered: Any = program(learner.loop, 1)
    lowered = lowered.lower(state, built.hp, numbers)
    say("the target period traced")
    compiled = lowered.compile()
    say("compiled, or found in the cache")
    jax.tree.map(np.asarray, compiled(state, built.hp, numbers)[1])
    say("run once")


def main() -> None:
    with TemporaryDirectory() as folder:
        kept = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PLATFORMS": "cpu"}
        kept["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        command, own = [sys.executable, __file__, "inside"], {**os.environ, **kept}
        cold, warm = (run(command, env=own, capture_output=True, text=True) for _ in range(2))
    print("| peak of resident memory after, MB | compiling | found in the cache |\n|---|---|---|")
    for first, second in zip(cold.stdout.splitlines(), warm.stdout.splitlines(), strict=True):
        print(f"| {first.replace(chr(9), ' | ')} | {second.rpartition(chr(9))[2]} |")


if __name__ == "__main__":
    stages() if sys.argv[1:] else main()
