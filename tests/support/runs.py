"""Run folders and tables of results without any training, for tests of what reads them."""

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from support.configs import paper
from tsallax import cli
from tsallax.experiments.results import COLUMNS
from tsallax.learners import Metrics
from tsallax.report.page import content, gather
from tsallax.storage.run_folder import RunFolder
from tsallax.training.build import make_cells
from tsallax.training.config import Config, to_json, varied


def new_folder(path: Path, config: Config, resume: bool = False) -> RunFolder:
    """The folder of a run that was never built."""
    cells = [{"seed": cell.seed, **cell.numbers} for cell in make_cells(config)]
    return RunFolder(path, to_json(config), cells, Metrics._fields, varied(config), resume)


def write_run(
    path: Path,
    env: str = "CartPole-v1",
    level: float = 100.0,
    rows: int = 10,
    status: str = "done",
    stopped: dict[int, str] | None = None,
    names: dict[str, str] | None = None,
    **fields: Any,
) -> Path:
    """A run of ten periods, or as far as `rows`: returns rise to `level` + seed^2.

    Args:
        path: of the folder.
        env: its environment.
        level: of the return at the end.
        rows: how many periods it has come.
        status: as it says itself.
        stopped: cells, and why.
        names: fields of the configuration that need not be possible.
        fields: the others.
    """
    config = paper(env, **{"steps": 10_000, **fields})
    config = dataclasses.replace(config, **(names or {}))
    folder = new_folder(path, config)
    seeds = np.array([cell["seed"] for cell in folder.cells], float)
    for i in range(1, rows + 1):
        folder.add_metrics(metrics(i * config.steps // 10, (level + seeds**2) * i / 10), None)
    folder.add_failures(stopped or {})
    folder.close(status)
    return path


def metrics(step: int, returns: np.ndarray) -> Metrics:
    """Of one period; what is not the return is its root, or one."""
    number = {name: np.ones(len(returns)) for name in Metrics._fields}
    number |= {"step": np.full(len(returns), step), "diverged": np.full(len(returns), -1)}
    return Metrics(**number | {"episode_return": returns, "action_gap": np.sqrt(returns)})


def write_results(folder: Path, rows: list[dict[str, Any]], **about: Any) -> Path:
    """A study's table: each row has labels, seeds and a level, and ten periods."""
    folder.mkdir(parents=True)
    own = {"study": folder.name, "title": "a study", "scale": "quick", "failed": {}}
    own |= {"jobs": 1, "done": 1, "environment steps": 1, "core hours": 0.5, "versions": {}}
    (folder / "about.json").write_text(json.dumps({**own, "unfinished": [], **about}))
    with (folder / "metrics.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*rows[0]["labels"], "seed", "step", *COLUMNS])
        for row in rows:
            for seed in range(row["seeds"]):
                for i in range(1, 11):
                    numbers = [1, *[row["level"] * i / 10] * 7, -1]
                    writer.writerow([*row["labels"].values(), seed, 10_000 * i, *numbers])
    return folder


def shown(*roots: Path) -> dict[str, Any]:
    """What the report page of these folders is made of."""
    return content(gather.gather(list(roots)))


def write_page(folder: Path) -> Path:
    """The report page of a folder, beside it, by the command."""
    out = folder.parent / f"{folder.name}.html"
    assert cli.main(["report", str(folder), "-o", str(out)]) == 0
    return out
