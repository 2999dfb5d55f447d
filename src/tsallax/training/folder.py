"""A run's folder: what it was asked to do, what it measured, what it learned."""

import csv
import dataclasses
import json
import math
import platform
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import load_file, save_file

from tsallax._version import __version__
from tsallax.training.config import RANGES, Config
from tsallax.training.loop import Metrics
from tsallax.training.run import Cell

SCHEMA = 1
RUN, METRICS, TIMING, WEIGHTS, CURVES = (
    "run.json",
    "metrics.csv",
    "timing.csv",
    "weights.safetensors",
    "curves.png",
)


class Folder:
    """Writes as the run goes on. `run.json` says `done` only when all the rest is there."""

    def __init__(self, path: Path, config: Config, cells: list[Cell], varied: list[str]):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise FileExistsError(f"{path} is in use: give another --out, or remove it")
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.cells, self.varied = path, cells, varied
        self.about = {
            "schema": SCHEMA,
            "status": "running",
            "config": dataclasses.asdict(config),
            "cells": [{"seed": c.seed, **c.numbers} for c in cells],
            "command": sys.argv,
            "versions": {
                "tsallax": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("jax", "jaxlib", "numpy", "optax")},
            },
        }
        self.write_about()
        self.header = ["seed", *varied, *Metrics._fields, "eval_return"]
        self._append(METRICS, [self.header])
        self._append(TIMING, [["step", "seconds", "steps_per_second"]])

    def add(self, metrics: Metrics, evaluation: np.ndarray | None) -> None:
        """One row a cell: tidy, so that `pandas.read_csv` is all it takes."""
        rows = []
        for i, cell in enumerate(self.cells):
            values = [str(np.asarray(x)[i]) for x in metrics]
            score = "" if evaluation is None else repr(float(evaluation[i].mean()))
            rows.append([cell.seed, *(cell.numbers[n] for n in self.varied), *values, score])
        self._append(METRICS, rows)

    def add_timing(self, step: int, seconds: float, speed: float) -> None:
        """Apart from the metrics, which are equal to the bit when a run is repeated."""
        self._append(TIMING, [[step, f"{seconds:.3f}", f"{speed:.1f}"]])

    def note_stopped(self, stopped: dict[int, str]) -> None:
        """Cells whose environment failed, and how: in `run.json`."""
        if stopped:
            self.about["stopped"] = {str(cell): why for cell, why in stopped.items()}
            self.write_about()

    def save(self, params: Any) -> None:
        save_weights(self.path / WEIGHTS, params)

    def close(self, status: str) -> None:
        self.about["status"] = status
        self.write_about()

    def write_about(self) -> None:
        write_atomically(self.path / RUN, json.dumps(_plain(self.about), indent=2) + "\n")

    def _append(self, name: str, rows: Iterable[Iterable[Any]]) -> None:
        with (self.path / name).open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def write_atomically(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def save_weights(path: Path, params: Any) -> None:
    leaves, _ = jax.tree.flatten_with_path(params)
    part = path.with_suffix(".part")
    save_file({jax.tree_util.keystr(at): np.asarray(leaf) for at, leaf in leaves}, part)
    part.replace(path)


def load_weights(path: Path, like: Any) -> Any:
    """The weights in the structure of `like`; names and shapes must agree."""
    stored: Mapping[str, np.ndarray] = load_file(path)
    leaves, tree = jax.tree.flatten_with_path(like)
    found = []
    for at, leaf in leaves:
        name = jax.tree_util.keystr(at)
        if name not in stored or stored[name].shape != leaf.shape:
            raise ValueError(f"{path.name} does not fit this run's network at {name}")
        found.append(stored[name])
    return jax.tree.unflatten(tree, found)


def read_about(path: Path) -> dict[str, Any]:
    """`run.json`, with the configuration as a `Config`."""
    try:
        about = json.loads((path / RUN).read_text())
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is no run folder: it has no {RUN}") from None
    if about.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {about.get('schema')}; this version reads {SCHEMA}")
    fields: dict[str, Any] = {
        name: tuple(map(float, value))
        if name in RANGES
        else tuple(value)
        if name == "hidden"
        else value
        for name, value in about["config"].items()
    }
    return {**about, "config": Config(**fields)}


def _plain(value: Any) -> Any:
    """JSON has no infinity: it is written as a word that `float` reads."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
