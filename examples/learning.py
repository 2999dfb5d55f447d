"""Does it learn? One run per environment and algorithm, by the command line, and their curves.

python examples/learning.py            # what is missing is trained; hours on a small machine
python examples/learning.py --only Breakout
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

import study
from study import BLUE, GREEN, PURPLE, VERMILION

RUNS = Path("runs") / "learning"


class Task(NamedTuple):
    """A run, and the mean return over seeds that some window of it must reach."""

    env: str
    algo: str
    seeds: int
    steps: int
    window: int
    wanted: float
    random: float  # mean return of uniformly random actions, measured over 1,000 episodes
    head: str = "scalar"

    @property
    def label(self) -> str:
        return ("qr-" if self.head == "quantile" else "") + self.algo

    @property
    def name(self) -> str:
        return f"{self.env.split('/')[-1]}-{self.label}"

    def command(self, out: Path) -> list[str]:
        what = [self.env, "--preset", "paper", "--algo", self.algo, "--head", self.head]
        numbers = ["--seeds", str(self.seeds), "--steps", str(self.steps), "--out", str(out)]
        return [sys.executable, "-m", "tsallax", "train", *what, *numbers]


TASKS = {
    task.name: task
    for task in (
        Task("CartPole-v1", "tal", 5, 100_000, 10_000, 195, 22.5),
        Task("CartPole-v1", "mdqn", 5, 50_000, 10_000, 195, 22.5),
        Task("CartPole-v1", "al", 5, 50_000, 10_000, 195, 22.5),
        Task("CartPole-v1", "dqn", 2, 20_000, 5_000, 195, 22.5, "quantile"),
        Task("MinAtar/Breakout", "tal", 2, 300_000, 30_000, 5, 0.5),
        Task("MinAtar/SpaceInvaders", "tal", 2, 60_000, 10_000, 10, 2.8),
        Task("Acrobot-v1", "tal", 2, 100_000, 10_000, -400, -498),
        Task("LunarLander-v3", "tal", 2, 100_000, 10_000, -130, -180),
    )
}


def returns(path: Path) -> pd.DataFrame:
    """Mean episodic return: one row per period, one column per seed."""
    table = pd.read_csv(path / "metrics.csv")
    return table.pivot_table("episode_return", "step", "seed", dropna=False)


def best_window(table: pd.DataFrame, steps: int) -> float:
    """The largest mean over seeds and any `steps` consecutive steps."""
    period = int(np.diff(table.index).max())
    return float(table.mean(axis=1).rolling(max(1, steps // period)).mean().max())


def draw(tasks: list[Task]) -> None:
    colours = {"tal": BLUE, "mdqn": VERMILION, "al": GREEN, "qr-dqn": PURPLE}
    panels = list(dict.fromkeys(task.env for task in tasks))
    rows = -(-len(panels) // 2)
    figure = Figure((1.25 * study.WIDTH, 3.6 * rows), layout="constrained")
    grid = np.ravel(figure.subplots(rows, min(2, len(panels)), squeeze=False))
    for spare in grid[len(panels) :]:
        spare.remove()
    axes = dict(zip(panels, grid, strict=False))
    for task in tasks:
        axis = axes[task.env]
        table = returns(RUNS / task.name).rolling(5, min_periods=1).mean()
        mean, spread = table.mean(axis=1), table.std(axis=1, ddof=0)
        steps = table.index.to_numpy()
        axis.plot(steps, mean, color=colours[task.label], label=f"{task.label}, {task.seeds} seeds")
        axis.fill_between(steps, mean - spread, mean + spread, color=colours[task.label], alpha=0.2)
        axis.axhline(task.random, color=study.GREY, lw=1, ls=":")
        axis.set(title=task.env, xlabel="environment steps")
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.legend(loc="lower right")
    next(iter(axes.values())).set_ylabel("episodic return")
    study.save(figure, "learning.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="tasks whose name has this in it")
    only = parser.parse_args().only
    tasks = [task for name, task in TASKS.items() if only in name]
    for task in tasks:
        if not (RUNS / task.name).exists():
            subprocess.run(task.command(RUNS / task.name), check=True)
        best = best_window(returns(RUNS / task.name), task.window)
        print(
            f"{task.name:24} best window {best:7.1f}   wanted {task.wanted}   random {task.random}"
        )
    draw(tasks)


if __name__ == "__main__":
    main()
