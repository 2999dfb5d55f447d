"""`tsallax train` until its evaluation reaches the goal: the whole process counts.

What it wrote is read from the metrics of its folder.
"""

import csv
import sys
import time
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from tempfile import TemporaryDirectory

from tasks import Attempt, answer, attempt

STEPS = {"cartpole": "3e5", "breakout": "2e6"}  # an evaluation every twentieth of them
EPISODES = {"cartpole": "100", "breakout": "30"}


def command(asked: Attempt, folder: Path) -> list[str]:
    return [
        *(str(Path(sys.executable).with_name("tsallax")), "train", asked.task.env),
        *("--learner", "parallel", "--steps", STEPS[asked.name]),
        *("--stop-at", str(asked.task.goal), "--eval-episodes", EPISODES[asked.name]),
        *("--first-seed", str(asked.seed), "--out", str(folder)),
    ]


def last_evaluation(metrics: Path) -> tuple[int, float]:
    """Its step and mean return; zeros if there was none."""
    if not metrics.exists():
        return 0, 0.0
    with metrics.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["eval_return"]]
    return (int(rows[-1]["step"]), float(rows[-1]["eval_return"])) if rows else (0, 0.0)


def main() -> None:
    asked = attempt()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        begin = time.perf_counter()
        process = Popen(command(asked, folder), stdout=DEVNULL)
        try:
            code = process.wait(asked.limit)
        except TimeoutExpired:
            process.kill()
            code = process.wait()
        seconds = time.perf_counter() - begin
        steps, mean = last_evaluation(folder / "metrics.csv")
        answer(code == 0 and mean >= asked.task.goal, seconds, steps, mean)


if __name__ == "__main__":
    main()
