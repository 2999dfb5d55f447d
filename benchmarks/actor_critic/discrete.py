"""Actor-critics with discrete actions against TAL without an actor: one table for each task.

    python benchmarks/actor_critic/discrete.py CartPole-v1 --out runs/discrete

trains the missing runs and prints the table, with bootstrap intervals over seeds.
"""

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
from side_by_side import train, words

VECTORS = (
    "--first-seed 100 --batch 64 --target-period 1000 --warmup 1000 --epsilon 1 --eval-episodes 20"
)
GAMES = (
    "--first-seed 100 --seeds 3 --steps 200000 --optimiser adam --learning-rate 2.5e-4 "
    "--train-period 4 --eval-every 40000 --eval-episodes 30"
)
TASKS = {  # settings shared by all arms of a task
    "CartPole-v1": f"{VECTORS} --seeds 10 --steps 50000 --hidden 64 64 --train-period 1 "
    "--epsilon-end 0.02 --eval-every 5000",
    "LunarLander-v3": f"{VECTORS} --seeds 3 --steps 100000 --hidden 128 128 --train-period 2 "
    "--learning-rate 5e-4 --epsilon-end 0.05 --epsilon-fraction 0.3 --eval-every 20000",
    "MinAtar/Breakout": GAMES,
    "MinAtar/SpaceInvaders": GAMES,
}
BETA = {"CartPole-v1": 0.5, "LunarLander-v3": 0.5}
ARMS = {
    "TAL": "--algo tal",
    "TAL, followed slowly": "--algo tal --tau {tau}",
    "TAL-AC without the actor": "--algo tal-ac --actor exact",
    "TAL-AC": "--algo tal-ac",
    "TAL-AC, q = 1.5": "--algo tal-ac --q 1.5",
    "TAL-AC, q = 1": "--algo tal-ac --q 1",
    "discrete SAC": "--algo sac",
    "discrete SAC, Fenchel-Young": "--algo sac --actor fenchel-young",
}
FEW = ("TAL", "TAL-AC without the actor", "TAL-AC", "discrete SAC")


def settings(task: str, arm: str) -> str:
    how = ARMS[arm].format(tau=0.02 if task in BETA else 0.005)
    beta = "" if "sac" in how else f"--beta {BETA.get(task, 0.9)}"
    return f"{task} --learner replay {TASKS[task]} {how} {beta}"


def scores(folder: Path) -> tuple[list[float], list[float]]:
    """The mean of all evaluations, and the last one, for each seed."""
    found: dict[str, list[float]] = defaultdict(list)
    with (folder / "metrics.csv").open() as file:
        for row in csv.DictReader(file):
            if row["eval_return"]:
                found[row["seed"]].append(float(row["eval_return"]))
    return [float(np.mean(x)) for x in found.values()], [x[-1] for x in found.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arms", nargs="*", choices=ARMS)
    args = parser.parse_args()
    lines = []
    for arm in args.arms or (ARMS if args.task == "CartPole-v1" else FEW):
        name = f"{args.task.split('/')[-1]} {arm}".replace(",", "").replace(" = ", "")
        folder = args.out / name.replace(" ", "-")
        train(settings(args.task, arm), folder)
        lines.append(f"| {arm} | {' | '.join(map(words, scores(folder)))} |")
    print("| | mean of all evaluations | last evaluation |\n|---|---|---|", *lines, sep="\n")


if __name__ == "__main__":
    main()
