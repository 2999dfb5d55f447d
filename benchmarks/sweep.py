"""A sweep of 16 cells on all cores compared with one core: `python benchmarks/sweep.py`.

It needs an idle machine. Both are complete commands, with the imports and compilation of their
workers, and start with the same cached programs. Perfect scaling on n cores takes 1/n of the time.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

STUDY = """
title = "16 cells"
[common]
env = "CartPole-v1"
steps = {steps}
seeds = 4
[[runs]]
algo = ["tal", "tsallis-dqn"]
q = [1.5, 3]
"""


def seconds(folder: Path, workers: int) -> float:
    command = [sys.executable, "-m", "tsallax", "sweep", str(folder / "cells.toml")]
    begin = time.perf_counter()
    subprocess.run(
        [*command, "--out", str(folder / str(workers)), "--workers", str(workers)],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")},
    )
    return time.perf_counter() - begin


def main(steps: int = 10_000, rounds: int = 3) -> None:
    """Measure and print.

    Args:
        steps: steps of a cell.
        rounds: repetitions; the cores take turns.
    """
    cores = len(os.sched_getaffinity(0))
    ratios = []
    for _ in range(rounds):
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "cells.toml").write_text(STUDY.format(steps=2_000))
            seconds(folder, cores)  # compiles
            (folder / "cells.toml").write_text(STUDY.format(steps=steps))
            one, all_cores = seconds(folder, 1), seconds(folder, cores)
        ratios.append(all_cores / (one / cores))
        print(
            f"one core {one:.1f} s, {cores} cores {all_cores:.1f} s: {ratios[-1]:.3f}", flush=True
        )
    print(f"of the time of perfect sharing: {sorted(ratios)[len(ratios) // 2]:.3f} (wanted 1.15)")


if __name__ == "__main__":
    tyro.cli(main)
