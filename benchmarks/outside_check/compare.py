"""Do tsallax's `sb3` runs have the returns of the same algorithms inside Stable-Baselines3?

    python benchmarks/outside_check/compare.py --sb3 FOLDER

FOLDER is what sb3_tal.py wrote; our runs are those of the study `readings` with the choices `sb3`,
from its table in results/. For each algorithm it compares one score per seed between the two
libraries, prints a table, and writes results.json and the learning curves.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from permutation import p_value, shift_interval

from tsallax import stats
from tsallax.experiments import study
from tsallax.experiments.results import read_provenance, read_table, select
from tsallax.storage.files import Directory
from tsallax.training.config import to_json

HERE = Path(__file__).resolve().parent
FIGURE = HERE.parents[1] / "docs/figures/outside-check.png"
PERIOD = 1000  # steps per row of metrics.csv: CartPole's target period
LAST = 20_000  # steps of the final score
STUDY, SCALE = "readings", "quick"
LABELS = {"choices": "sb3", "policy": "paper", "q": 2.0}  # of our runs in the study
ALGORITHMS = {"tal": "TAL", "tsallis-dqn": "Tsallis-DQN"}
# Settings that both sides record: the name in run.json, the name in about.json.
SHARED = {
    "env": "env",
    "steps": "steps",
    "warmup": "learning_starts",
    "learning_rate": "learning_rate",
    "batch": "batch_size",
    "buffer": "buffer_size",
    "train_period": "train_freq",
    "updates": "gradient_steps",
    "target_period": "target_update_interval",
    "gamma": "gamma",
    "epsilon": "exploration_initial_eps",
    "epsilon_end": "exploration_final_eps",
    "hidden": "hidden",
    "alpha": "alpha",
}
# Settings in the code of sb3_tal.py, and defaults of Stable-Baselines3's DQN.
OWN = {
    "q": 2.0,
    "max_grad_norm": 10.0,
    "loss": "huber",
    "acting": "argmax",
    "random_warmup": True,
    "optimiser": "adam",
    "optimiser_eps": 1e-8,
    "entropy": 0.0,
}


class Returns(NamedTuple):
    """The number of episodes that ended in each period, by seed, and the sum of their returns."""

    episodes: np.ndarray  # (seeds, periods)
    total: np.ndarray

    def curve(self) -> np.ndarray:
        """The mean return of each period, or the last known one if no episode ended."""
        empty = np.full(self.total.shape, np.nan)
        means = np.divide(self.total, self.episodes, out=empty, where=self.episodes > 0)
        return stats.carry_forward(means)

    def mean(self, start: int, end: int) -> np.ndarray:
        """The mean return of each seed over the episodes that ended in steps (start, end]."""
        part = slice(start // PERIOD, end // PERIOD)
        return self.total[:, part].sum(1) / self.episodes[:, part].sum(1)


def read_sb3(folder: Path, algo: str, steps: int) -> Returns:
    """Read the CSV files of sb3_tal.py: one row per episode."""
    paths = sorted(
        folder.glob(f"{algo}-[0-9]*.csv"), key=lambda path: int(path.stem.split("-")[-1])
    )
    if not paths:
        raise SystemExit(f"{folder} has no finished run of {algo}")
    returns = Returns(*np.zeros((2, len(paths), steps // PERIOD)))
    for seed, path in enumerate(paths):
        step, value = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2).T
        period = (step.astype(int) - 1) // PERIOD
        np.add.at(returns.episodes[seed], period, 1)
        np.add.at(returns.total[seed], period, value)
    return returns


def read_tsallax(table: Path, algo: str, steps: int) -> Returns:
    """Read our runs from the table of the study: one row per seed and period."""
    found = select(read_table(table), algo=algo, **LABELS)
    if len(found) != 1:
        raise SystemExit(f"{table} has no runs of {algo} with the choices sb3")
    (curve,) = found
    if curve.steps.tolist() != list(range(PERIOD, steps + 1, PERIOD)):
        raise SystemExit(f"{table} has no row for every {PERIOD} steps to {steps}")
    episodes = curve.columns["episodes"]
    return Returns(episodes, np.nan_to_num(curve.columns["episode_return"]) * episodes)


def configuration(algo: str) -> dict[str, Any]:
    """The configuration of our runs, as their `run.json` has it."""
    (config,) = (
        setting.config
        for setting in study.settings(study.load(STUDY), SCALE)
        if setting.labels.items() >= {"algo": algo, **LABELS}.items()
    )
    return json.loads(json.dumps(to_json(config)))


def check_same_setting(config: dict[str, Any], algo: str, about: dict[str, Any]) -> None:
    """Refuse runs whose settings differ between the two sides."""
    wanted = {ours: about[theirs] for ours, theirs in SHARED.items()} | OWN | {"algo": algo}
    if about["beta"][algo]:  # without an advantage term, our beta is not used
        wanted["beta"] = about["beta"][algo]
    for name, value in wanted.items():
        there = config.get(name, "no such setting")
        if there not in (value, [value]):  # numbers that may be a grid are lists
            raise SystemExit(f"{algo}: {name} is {there}, and {value} in Stable-Baselines3")


def compare(ours: np.ndarray, theirs: np.ndarray) -> dict[str, Any]:
    """The difference of the means, ours minus theirs, with two 95 % intervals and a p-value."""

    def difference(x: np.ndarray, y: np.ndarray) -> Any:
        return stats.mean(x) - stats.mean(y)

    bootstrap = stats.interval(difference, ours[:, None], theirs[:, None])
    return {
        "tsallax": ours.round(2).tolist(),
        "stable-baselines3": theirs.round(2).tolist(),
        "difference": round(float(bootstrap.value), 2),
        "interval": [round(x, 2) for x in shift_interval(ours, theirs)],
        "bootstrap interval": [round(float(x), 2) for x in bootstrap[1:]],
        "p": round(p_value(ours, theirs), 4),
    }


def scores(returns: Returns, warmup: int, steps: int) -> dict[str, np.ndarray]:
    """Three scores, each with one number per seed."""
    return {
        f"last {LAST:,} steps": returns.mean(steps - LAST, steps),
        "all steps of learning": stats.area_under_curve(returns.curve()[:, warmup // PERIOD :]),
        "uniform actions before": returns.mean(0, warmup),
    }


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    def sample(values: list[float]) -> str:
        return f"{np.mean(values):.1f} ({', '.join(f'{x:.0f}' for x in values)})"

    lines = [
        "| algorithm | mean return | tsallax | Stable-Baselines3 | difference (95 %) | p |",
        "|---|---|---|---|---|---|",
    ]
    for algo, rows in found.items():
        for name, x in rows.items():
            low, high = x["interval"]
            cells = [ALGORITHMS[algo], name, sample(x["tsallax"]), sample(x["stable-baselines3"])]
            cells += [f"{x['difference']:.1f} ({low:.1f} to {high:.1f})", f"{x['p']:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(
    sb3: Path,
    ours: Path = HERE.parents[1] / "results" / SCALE / STUDY,
    results: Path = HERE / "results.json",
    figure: Path = FIGURE,
) -> None:
    """Compare, print, and write the numbers and the picture.

    Args:
        sb3: folder of sb3_tal.py.
        ours: folder of the table of our study.
        results: the numbers.
        figure: the learning curves.
    """
    about = json.loads((sb3 / "about.json").read_text())
    warmup, steps = about["learning_starts"], about["steps"]
    found, curves = {}, {}
    for algo in ALGORITHMS:
        check_same_setting(configuration(algo), algo, about)
        sides = read_tsallax(ours / "metrics.csv", algo, steps), read_sb3(sb3, algo, steps)
        pairs = [scores(x, warmup, steps) for x in sides]
        found[algo] = {name: compare(*(x[name] for x in pairs)) for name in pairs[0]}
        names = "tsallax", "Stable-Baselines3"
        curves[ALGORITHMS[algo]] = {n: x.curve() for n, x in zip(names, sides, strict=True)}
    print(table(found))
    with Directory(ours) as folder:
        versions = read_provenance(folder)["versions"] | about["versions"]
    setting = {name: value for name, value in about.items() if name != "versions"}
    whole = {"setting": setting, "versions": versions, "scores": found}
    results.write_text(json.dumps(whole, indent=2) + "\n")
    from picture import picture

    picture(curves, PERIOD, warmup, figure)


if __name__ == "__main__":
    tyro.cli(main)
