"""Trains, scores and packs the agents that come with the package, into src/tsallax/trained.

    python tools/train_agents.py [--runs FOLDER] [NAME ...]

The complete runs are kept in FOLDER, and those that are done are not trained again. Each seed's
weights are those of its best evaluation. The seed to pack is chosen by 100 new episodes, and its
score is measured by another 100. LunarLander needs the extra `box2d`.
"""

import argparse
import dataclasses
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

from tsallax.storage.files import Directory
from tsallax.storage.run_folder import LONGEST, read_about
from tsallax.storage.tables import METRICS, TIMING
from tsallax.training.build import make_run
from tsallax.training.driver import make_folder
from tsallax.training.stored_config import load_weights, read_run

TRAINED = Path(__file__).parents[1] / "src" / "tsallax" / "trained"
AGENTS = {
    "CartPole-v1": "--seeds 5",
    "Acrobot-v1": "--seeds 5",
    "MountainCar-v0": "--seeds 5",
    "LunarLander-v3": "--seeds 5",
    "Pendulum-v1": "--algo tal-ac --seeds 3 --steps 20000 --hidden 64 64",
    "MinAtar/Asterix": "--steps 4000000",
    "MinAtar/Breakout": "--steps 4000000",
    "MinAtar/Freeway": "--steps 4000000",
    "MinAtar/Seaquest": "--steps 6000000",
    "MinAtar/SpaceInvaders": "--steps 6000000",
}
EPISODES = 100
CHOICE, SCORE = (
    1_000,
    2_000,
)  # seeds of episodes; the evaluations in training have seeds from 0 on


def command(name: str) -> list[str]:
    return ["tsallax", "train", name, *AGENTS[name].split()]


def train(name: str, path: Path) -> None:
    """Train the run of an agent; resume it if it was begun, skip it if it is done."""
    words = [*command(name)[1:], "--out", str(path)]
    if path.exists():
        if read_about(path).status == "done":
            return
        words = ["train", "--resume", str(path)]
    subprocess.run([sys.executable, "-m", "tsallax", *words], check=True)


def pack(name: str, path: Path, target: Path) -> None:
    """Write a run folder of the best seed alone: configuration, metrics, best weights, score."""
    config, about = read_run(path)
    run = make_run(config)
    params = load_weights(path, about, run.learner.params(), best=True)
    means = run.learner.evaluate(params, EPISODES, False, CHOICE).mean(-1)
    best = int(np.argmax(means))
    returns = run.learner.evaluate(params, EPISODES, False, SCORE)[best]
    seed, old = run.cells[best].seed, about.everything
    score = {
        "mean": round(float(returns.mean()), 2),
        "standard_error": round(float(returns.std(ddof=1)) / EPISODES**0.5, 2),
        "episodes": EPISODES,
        "seed": SCORE,
    }
    with Directory(target.parent, create=True) as trained:
        trained.remove(target.name)
    packed = make_folder(target, make_run(dataclasses.replace(config, seeds=1, first_seed=seed)))
    packed.about |= {"command": command(name), "versions": old["versions"]}
    packed.about["agent"] = {"chosen_from": len(run.cells), "score": score}
    at = [old["best"][what][best] for what in ("return", "step")]
    packed.save_best(jax.tree.map(lambda x: x[best : best + 1], params), *([x] for x in at))
    packed.write(METRICS, _rows_of(path, seed))
    packed.folder.remove(TIMING)
    packed.close("done")
    print(f"{name}: seeds {means.round(1).tolist()}, of seed {seed} {score}", flush=True)


def _rows_of(path: Path, seed: int) -> bytes:
    """The rows of one seed in the metrics, whose first column is the seed."""
    with Directory(path) as folder:
        head, *rows = folder.read(METRICS, LONGEST).splitlines(keepends=True)
    return head + b"".join(row for row in rows if row.startswith(f"{seed},".encode()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all, if none is given")
    parser.add_argument("--runs", type=Path, default=Path("runs/agents"), help="of whole runs")
    given = parser.parse_args()
    for name in given.names or AGENTS:
        short = name.replace("/", "-")
        train(name, given.runs / short)
        pack(name, given.runs / short, TRAINED / short)


if __name__ == "__main__":
    main()
