"""The model card of a run for a model repository: its settings, its scores, how to load it."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax.spelling import counted, printable
from tsallax.storage.files import Directory
from tsallax.storage.portable import CLIPS
from tsallax.storage.run_folder import BEST, CURVES
from tsallax.storage.tables import METRICS, number, read_metrics
from tsallax.training.config import Config, varied
from tsallax.training.final import final_scores
from tsallax.training.stored_config import read_run


class Card(NamedTuple):
    """A page in Markdown, and the values for its metadata."""

    body: str
    config: Config
    score: float
    measured: str  # describes what the score is a mean of


class Cell(NamedTuple):
    """One seed of one setting, with its scores."""

    label: tuple[str, ...]
    steps: int
    trained: float  # mean over the last fifth of training
    last: float  # the last evaluation
    best: float  # the best one


def model_card(path: Path, repo: str, env: str = "") -> Card:
    """The model card of a finished run's folder; `env` as for `read_run`."""
    config, about = read_run(path, env)
    with Directory(path) as folder:
        cells = list(_cells(folder, about.everything.get("best"), varied(config)))
        pictures = [name for name in (CURVES, *CLIPS) if folder.has(name)]
        kept = folder.has(BEST)
    if not cells:
        raise ValueError(f"{path} has no metrics yet: there is nothing to report")
    score, measured = _score(cells, config)
    name = printable(f"{config.algo} on {config.env}")
    local = f"runs/{repo.rpartition('/')[2]}"
    best = (" --best", ", best=True") if kept else ("", "")
    parts = [
        f"# {name}",
        f"{counted(len(cells), 'agent')} of tsallax, deep reinforcement learning with Tsallis "
        f"entropy in JAX, trained for {max(cell.steps for cell in cells):,} environment steps"
        f"{' each' if len(cells) > 1 else ''}. **{score:.1f}** is the {measured}.",
        *(_shown(picture) for picture in pictures),
        "## What it reached",
        _table(("setting", "seeds", "in training", "last evaluation", "best"), _rows(cells)),
        "Mean returns over seeds: over the last fifth of training, of the last evaluation "
        f"({counted(config.eval_episodes, 'episode')} of each seed), and of the best one, whose "
        "weights are kept.",
        "## Load it",
        f"```sh\npip install 'tsallax[hub]'\ntsallax pull {repo} --out {local}\n"
        f"tsallax play {local}{best[0]}\n```",
        f'```python\nimport tsallax\n\nmodel = tsallax.load("{local}"{best[1]})\n'
        "action, _ = model.predict(observation, deterministic=True)\n```",
        "## Settings",
        _table(("setting", "value"), _settings(config)),
    ]
    return Card("\n\n".join(parts) + "\n", config, score, measured)


def _cells(folder: Directory, best: Any, names: list[str]) -> Iterable[Cell]:
    """The cells in the order of `run.json`, which is that of the table's rows."""
    found, _ = read_metrics(folder, ("episodes", "episode_return", "eval_return"))
    known = best.get("return") if isinstance(best, dict) else None
    if any(set(names) - set(cell.numbers) for cell in found):
        raise ValueError(f"{METRICS} does not say before the step which setting a row is of")
    for i, cell in enumerate(found):
        trained = final_scores({name: column[None] for name, column in cell.columns.items()})[0]
        last = cell.columns["eval_return"]
        last = last[np.isfinite(last)]
        yield Cell(
            tuple(f"{name} = {cell.numbers[name]:g}" for name in names),
            int(cell.steps[-1]),
            trained,
            last[-1] if len(last) else np.nan,
            number(str(known[i])) if isinstance(known, list) and i < len(known) else np.nan,
        )


def _score(cells: list[Cell], config: Config) -> tuple[float, str]:
    """The mean of the best evaluations or, without evaluations, of the training returns."""
    best = _mean(cell.best for cell in cells)
    if np.isfinite(best):
        each = counted(config.eval_episodes, "episode")
        each += " each" if len(cells) > 1 else ""
        return best, f"mean return of the best weights, {counted(len(cells), 'agent')}, {each}"
    return _mean(cell.trained for cell in cells), "mean return over the last fifth of training"


def _rows(cells: list[Cell]) -> Iterable[Iterable[str]]:
    """One row per setting: means over its seeds."""
    for label in dict.fromkeys(cell.label for cell in cells):
        own = [cell for cell in cells if cell.label == label]
        means = (_mean(values) for values in zip(*(cell[2:] for cell in own), strict=True))
        numbers = (f"{mean:.1f}" if np.isfinite(mean) else "none" for mean in means)
        yield (", ".join(label) or "all", str(len(own)), *numbers)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else np.nan


def _settings(config: Config) -> Iterable[Iterable[str]]:
    """The values in effect, without the options of other learners and environments."""
    for field in fields(config):
        value = getattr(config, field.name)
        if value is not None and value != "":
            words = " ".join(map(_short, value if isinstance(value, tuple) else (value,)))
            yield f"`{field.name.rstrip('_')}`", f"`{_cell(words).replace('`', '')}`"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [" | ".join(row) for row in (head, *rows)]
    rule = "|".join("---" for _ in lines[0].split(" | "))
    return "\n".join(
        f"| {line} |" if i != 1 else f"|{line}|"
        for i, line in enumerate([lines[0], rule, *lines[1:]])
    )


def _shown(name: str) -> str:
    if name == CURVES:
        return f"![Learning curves]({name})"
    words = "A trained agent plays, its policy beside it"
    return f"![{words}]({name})" if name.endswith(".gif") else f"[{words}]({name})"
