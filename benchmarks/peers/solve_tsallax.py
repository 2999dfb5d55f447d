"""`tsallax train` until its evaluation reaches the goal: the whole process counts.

The result is read from the metrics in its folder.
"""

import csv
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks import Attempt, Stopwatch, answer, attempt

# Steps, with an evaluation every twentieth of them, and episodes per evaluation.
RUNS = {
    "cartpole": ("3e5", "100"),
    "acrobot": ("5e5", "100"),
    "lunarlander": ("5e5", "100"),
    "breakout": ("2e6", "30"),
}


def command(asked: Attempt, folder: Path) -> list[str]:
    steps, episodes = RUNS[asked.name]
    return [
        *(str(Path(sys.executable).with_name("tsallax")), "train", asked.task.env),
        *("--learner", "parallel", "--steps", steps),
        *(f"--stop-at={asked.task.goal}", "--eval-episodes", episodes),
        *("--first-seed", str(asked.seed), "--out", str(folder)),
    ]


def last_evaluation(metrics: Path) -> tuple[int, float]:
    """The step and mean return of the last evaluation; zeros if there was none."""
    if not metrics.exists():
        return 0, 0.0
    with metrics.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["eval_return"]]
    return (int(rows[-1]["step"]), float(rows[-1]["eval_return"])) if rows else (0, 0.0)


def main() -> None:
    asked, watch = attempt(), Stopwatch()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        done = subprocess.run(command(asked, folder), stdout=subprocess.DEVNULL)
        steps, mean = last_evaluation(folder / "metrics.csv")
        answer(done.returncode == 0 and mean >= asked.task.goal, watch.seconds(), steps, mean)


if __name__ == "__main__":
    main()
