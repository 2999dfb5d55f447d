"""A run's folder: what it was asked to do, what it measured, what it learned."""

import contextlib
import csv
import dataclasses
import hashlib
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tsallax._version import __version__
from tsallax.training import checkpoint, freeze, tensors
from tsallax.training.config import Config, from_json, varied
from tsallax.training.lock import BusyError, lock
from tsallax.training.loop import Metrics
from tsallax.training.run import Cell
from tsallax.training.tensors import Digest, Spec

SCHEMA = 2
LONGEST = 1 << 24  # bytes of a run.json
RUN, METRICS, TIMING, WEIGHTS, CURVES = (
    "run.json",
    "metrics.csv",
    "timing.csv",
    "weights.safetensors",
    "curves.png",
)


class Folder:
    """Writes as the run goes on. `run.json` says `done` only when all the rest is there.

    One process at a time: the system drops the lock of one that died.

    Args:
        path: of the folder; new or empty, unless it is to be resumed.
        config: resolved.
        cells: of the run.
        resume: go on in a folder that holds this very run, unfinished.
    """

    def __init__(self, path: Path, config: Config, cells: list[Cell], resume: bool = False):
        if not resume and path.exists() and not _is_free(path):
            raise FileExistsError(f"{path} is not empty: choose another folder, or remove it")
        path.mkdir(parents=True, exist_ok=True)
        self.path, self.config, self.cells, self.varied = path, config, cells, varied(config)
        self._lock = lock(path)
        if resume and status(path, config) == "done":
            os.close(self._lock)
            raise BusyError(f"{path} was just finished by another process")
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
        try:
            if resume:  # the weights of where it was stopped are still there
                self.about |= {n: x for n, x in read_json(path).items() if n == "files"}
            self.write_about()
            if not resume:
                self.restart()
        except BaseException:
            os.close(self._lock)
            raise

    def restart(self) -> None:
        """Empty tables."""
        for name in (METRICS, TIMING):
            (self.path / name).unlink(missing_ok=True)
        self._append(METRICS, [["seed", *self.varied, *Metrics._fields, "eval_return"]])
        self._append(TIMING, [["step", "seconds", "steps_per_second"]])

    def checkpoint(
        self, step: int, arrays: Mapping[str, np.ndarray], about: dict[str, Any]
    ) -> None:
        """Everything, so that the run can go on from here."""
        sizes = {name: (self.path / name).stat().st_size for name in (METRICS, TIMING)}
        for name in sizes:
            _sync_file(self.path / name)
        extra = {"run": about, "sizes": sizes, "config": config_digest(self.config)}
        checkpoint.save(self.path, step, arrays, extra)

    def rewind(self, sizes: Mapping[str, int]) -> None:
        """Forget the rows that came after a checkpoint."""
        for name in (METRICS, TIMING):
            file = self.path / name
            if file.is_symlink() or not file.is_file() or file.stat().st_size < sizes[name]:
                raise ValueError(f"{name} is shorter than the checkpoint says it was")
            os.truncate(file, sizes[name])

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
        """The weights; `run.json` will say what they are, byte for byte."""
        self.about["files"] = {WEIGHTS: save_weights(self.path / WEIGHTS, params)._asdict()}

    def close(self, status: str) -> None:
        """`done` needs no checkpoints any more: all else must be on the disk by then."""
        try:
            self.about["status"] = status
            for name in (METRICS, TIMING, CURVES) if status == "done" else ():
                if (self.path / name).exists():
                    _sync_file(self.path / name)
            self.write_about()
            if status == "done":
                os.fsync(self._lock)  # the folder itself
                with contextlib.suppress(OSError):  # of no use any more, and no harm
                    checkpoint.remove(self.path)
        finally:
            os.close(self._lock)

    def write_about(self) -> None:
        write_atomically(self.path / RUN, json.dumps(plain(self.about), indent=2) + "\n")

    def _append(self, name: str, rows: Iterable[Iterable[Any]]) -> None:
        with (self.path / name).open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def _is_free(path: Path) -> bool:
    """Empty, or left by a run that could not write its first file."""
    part = Path(RUN).with_suffix(".part").name
    return path.is_dir() and all(found.name == part for found in path.iterdir())


def config_digest(config: Config) -> str:
    text = json.dumps(plain(dataclasses.asdict(config)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def status(path: Path, config: Config) -> str | None:
    """How far this very run is, if the folder holds it."""
    try:
        about = read_about(path, config.env)
    except (ValueError, OSError):
        return None
    same = config_digest(about["config"]) == config_digest(config)
    return about["status"] if same else None


def last_checkpoint(
    path: Path, config: Config, expected: Callable[[dict[str, Any]], Mapping[str, Spec]]
) -> tuple[checkpoint.Saved | None, list[str]]:
    """The newest checkpoint that is whole and of this run, and why newer ones were not."""
    refused = []
    for saved in reversed(checkpoint.steps(path)):
        try:
            about = checkpoint.read_manifest(saved)["about"]
            if not _is_about(about):
                raise ValueError(
                    f"checkpoint {saved.name} is no run's: its manifest says too little"
                )
            if about["config"] != config_digest(config):
                raise ValueError(f"checkpoint {saved.name} is of another configuration")
            return checkpoint.load(saved, expected(about["run"])), refused
        except ValueError as error:
            refused.append(str(error))
    return None, refused


def _is_about(about: dict[str, Any]) -> bool:
    """What `Folder.checkpoint` wrote, by its shape."""
    sizes, run = about.get("sizes"), about.get("run")
    return (
        isinstance(about.get("config"), str)
        and isinstance(run, dict)
        and isinstance(run.get("stopped", {}), dict)
        and isinstance(sizes, dict)
        and sizes.keys() == {METRICS, TIMING}
        and all(type(size) is int and size >= 0 for size in sizes.values())
    )


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_atomically(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def save_weights(path: Path, params: Any) -> Digest:
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    digest = tensors.write(part, freeze.freeze(params))
    part.replace(path)
    return digest


def load_weights(run: Path, about: Mapping[str, Any], like: Any) -> Any:
    """The weights of a run folder, in the structure of `like`; refused if anything differs.

    Args:
        run: the folder.
        about: its `run.json`.
        like: arrays, or their shapes and types.
    """
    try:
        wanted = Digest(**about["files"][WEIGHTS])
    except (KeyError, TypeError):
        raise ValueError(f"{run} has no weights that {RUN} knows of") from None
    return freeze.thaw(like, tensors.read(run / WEIGHTS, freeze.specs(like), wanted))


def read_json(path: Path) -> dict[str, Any]:
    """`run.json` as it stands: of this schema and with a status, the rest unchecked."""
    if not (path / RUN).exists():
        raise FileNotFoundError(f"{path} is no run folder: it has no {RUN}")
    try:
        with tensors.open_regular(path / RUN) as file:
            about = json.loads(file.read(LONGEST))
        schema, _ = about["schema"], about["config"]
        status = {"running", "done", "stopped", "failed"} & {about["status"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} has a damaged {RUN}") from None
    if schema != SCHEMA:
        writer = (
            about["versions"].get("tsallax") if isinstance(about.get("versions"), dict) else "?"
        )
        raise ValueError(
            f"{path} has schema {str(schema)[:20]}, for tsallax {str(writer)[:20]}; "
            f"this is {__version__} and reads {SCHEMA}"
        )
    if not status:
        raise ValueError(f"{path} has a damaged {RUN}: its status is none")
    return about


def read_about(path: Path, allowed: str = "") -> dict[str, Any]:
    """`run.json`, with the configuration as a `Config`.

    Nothing is imported by a name found in a file: an environment `package:Name` must be `allowed`,
    or its package imported already.
    """
    about = read_json(path)
    config = about["config"]
    env = str(config.get("env")) if isinstance(config, dict) else ""
    package = env.partition(":")[0]
    if ":" in env and env != allowed and package not in sys.modules:
        raise ValueError(f"{path} needs {package!r}: name its environment, {env}, to allow that")
    return {**about, "config": from_json(config)}


def plain(value: Any) -> Any:
    """JSON has no infinity: it is written as a word that `float` reads."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
