"""SAC and TAL-AC beside Stable-Baselines3's SAC, at the same settings: returns after training.

    python benchmarks/actor_critic/side_by_side.py Pendulum-v1 --out runs/side-by-side

trains the missing runs and prints a table: the mean of 50 evaluation episodes per seed, and their
mean over seeds with a bootstrap interval. `make benchmarks/.peers/sb3/.ready` installs
Stable-Baselines3.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tsallax import stats
from tsallax.spelling import counted
from tsallax.training.build import make_run
from tsallax.training.stored_config import load_weights, read_run

HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".peers/sb3/bin/python"
STEPS = {"Pendulum-v1": 20_000, "LunarLanderContinuous-v3": 200_000}  # default: 200,000
SEEDS = {"Pendulum-v1": 5, "LunarLanderContinuous-v3": 3}  # default: 2
EPISODES = 50
ARMS = {
    "SAC": "--algo sac",
    "TAL-AC, q = 1": "--algo tal-ac --q 1",
    "TAL-AC, q = 2": "--algo tal-ac",
    "TAL-AC, q = 2, q-Gaussian": "--algo tal-ac --density q-gaussian",
}
THEIRS = "Stable-Baselines3's SAC"


def train(settings: str, folder: Path) -> None:
    """Train with tsallax: skipped if it is done, resumed if it was stopped."""
    command = [sys.executable, "-m", "tsallax", "train", *settings.split(), "--out", str(folder)]
    subprocess.run(command, check=True)


def words(values: Sequence[float]) -> str:
    """The mean over seeds, with its interval if there are several."""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    found = stats.interval(stats.mean, np.array(values)[:, None])
    return f"{found.value:.1f} ({found.low:.1f} to {found.high:.1f})"


def evaluate(folder: Path) -> list[float]:
    config, about = read_run(folder, "")
    learner = make_run(config).learner
    returns = learner.evaluate(load_weights(folder, about, learner.params()), EPISODES, True, 1)
    return returns.mean(1).tolist()


def theirs(env: str, steps: int, seeds: int, out: Path, settings: Sequence[str]) -> list[float]:
    """The returns of Stable-Baselines3 per seed, with one file per seed."""
    means = []
    for seed in range(seeds):
        path = out / f"sb3-{env}-{steps}-{seed}.json"
        if not path.exists():
            command = [str(PEER), str(HERE / "sb3_sac.py"), env, f"--steps={steps}"]
            command += [f"--seed={seed}", f"--episodes={EPISODES}", *settings]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            path.write_text(done.stdout.splitlines()[-1])
        means.append(float(np.mean(json.loads(path.read_text())["returns"])))
    return means


def same_settings(folder: Path) -> list[str]:
    """The settings of our run for which Stable-Baselines3 has other defaults."""
    config, _ = read_run(folder, "")
    return [
        f"--lr={config.learning_rate[0]}",
        f"--tau={config.tau[0]}",
        f"--warmup={config.warmup}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("env")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int)
    args = parser.parse_args()
    steps = args.steps or STEPS.get(args.env, 200_000)
    seeds = args.seeds or SEEDS.get(args.env, 2)
    lines = []
    for arm in args.arms:
        name = arm.replace(",", "").replace(" = ", "").replace(" ", "-")
        folder = args.out / f"{args.env}-{steps}-{name}"
        train(f"{args.env} {ARMS[arm]} --steps {steps} --seeds {seeds} --eval-every 0", folder)
        lines.append(f"| {arm} | {words(evaluate(folder))} |")
        settings = same_settings(folder)
    found = theirs(args.env, steps, seeds, args.out, settings)
    lines.append(f"| {THEIRS} | {words(found)} |")
    head = f"| {args.env}, {steps:,} steps, {counted(seeds, 'seed')} | return |"
    print(head, "|---|---|", *lines, sep="\n")


if __name__ == "__main__":
    main()
