"""The folder of a run: its configuration, metrics and weights.

The configuration is plain JSON here; `tsallax.training` interprets its fields.
"""

import contextlib
import hashlib
import json
import math
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsallax import __version__
from tsallax.storage import checkpoint, tensors
from tsallax.storage.files import BusyError, Directory, lock
from tsallax.storage.tables import METRICS, TIMING, append_rows
from tsallax.storage.tensors import Spec

SCHEMA, READABLE = 3, (2, 3)
LONGEST = 1 << 24  # most bytes of a run.json
STATUS = ("running", "done", "stopped", "failed")
RUN, CURVES = "run.json", "curves.png"
WEIGHTS, BEST, INITIAL = "weights.safetensors", "best.safetensors", "initial.safetensors"


class About(NamedTuple):
    """The contents of a `run.json` with a schema that this version reads."""

    schema: int
    status: str
    config: dict[str, Any]
    everything: dict[str, Any]


class RunFolder:
    """Writes the folder during the run. `run.json` has the status `done` only once all is written.

    Only one process can have it open; the system releases the lock of a process that died.

    Args:
        path: the folder; new or empty, unless it is to be resumed.
        config: the configuration as JSON.
        cells: seed and numbers of each cell.
        columns: the names of the metrics.
        varied: the numbers that differ between the cells.
        resume: continue in a folder of the same, unfinished run.
    """

    def __init__(
        self,
        path: Path,
        config: Mapping[str, Any],
        cells: Sequence[Mapping[str, Any]],
        columns: Sequence[str],
        varied: Sequence[str],
        resume: bool = False,
    ):
        if not resume:
            check_free(path)
        self.path, self.config, self.cells = path, plain(config), cells
        self.columns, self.varied = tuple(columns), tuple(varied)
        self.folder = Directory(path, create=True)
        self.about: dict[str, Any] = {}
        try:
            lock(self.folder)
            if resume and status(path, self.config) == "done":
                raise BusyError(f"{path} was just finished by another process")
            self.about = self._first_words(resume)
            self._write_about()
            if not resume:
                self.restart()
        except BaseException:
            self.folder.close()
            raise

    def _first_words(self, resume: bool) -> dict[str, Any]:
        packages = ("jax", "jaxlib", "numpy", "optax")
        about = {
            "schema": SCHEMA,
            "status": "running",
            "config": self.config,
            "cells": list(self.cells),
            "command": sys.argv,
            "versions": {
                "tsallax": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in packages},
            },
        }
        if resume:  # the last and best weights from before the stop are still in the folder
            old = read_about(self.path).everything
            kept = ("files", "best", "extended", "initial")
            about |= {name: old[name] for name in kept if name in old}
        return about

    def restart(self) -> None:
        """Start with empty tables."""
        for name in (METRICS, TIMING):
            self.folder.remove(name)
        append_rows(self.folder, METRICS, [["seed", *self.varied, *self.columns, "eval_return"]])
        append_rows(self.folder, TIMING, [["step", "seconds", "steps_per_second"]])

    def add_metrics(self, metrics: Sequence[Any], evaluation: np.ndarray | None) -> None:
        """Add one row per cell, in tidy form for `pandas.read_csv`."""
        rows = []
        for i, cell in enumerate(self.cells):
            values = [str(np.asarray(x)[i]) for x in metrics]
            score = "" if evaluation is None else repr(float(evaluation[i].mean()))
            rows.append([cell["seed"], *(cell[n] for n in self.varied), *values, score])
        append_rows(self.folder, METRICS, rows)

    def add_timing(self, step: int, seconds: float, speed: float) -> None:
        """Kept separate from the metrics, which are bitwise equal when a run is repeated."""
        append_rows(self.folder, TIMING, [[step, f"{seconds:.3f}", f"{speed:.1f}"]])

    def add_failures(self, failures: Mapping[int, str]) -> None:
        """Record the cells whose environment failed, and the errors, in `run.json`."""
        if failures:
            self.about["stopped"] = {str(cell): why for cell, why in failures.items()}
            self._write_about()

    def save_checkpoint(
        self, step: int, arrays: Mapping[str, np.ndarray], notes: Mapping[str, Any]
    ) -> None:
        """Save the complete state, so that the run can be resumed from here."""
        sizes = {name: self.folder.size(name) for name in (METRICS, TIMING)}
        self.folder.sync(*sizes)
        about = {"run": dict(notes), "sizes": sizes, "config": digest_of(self.config)}
        checkpoint.save(self.folder, step, arrays, about)

    def last_checkpoint(
        self, expected: Callable[[dict[str, Any]], Mapping[str, Spec]]
    ) -> tuple[checkpoint.Saved | None, list[str]]:
        """The newest intact checkpoint of this run, and why newer ones were refused.

        The tables are truncated to their state at that time, and refused checkpoints deleted.
        """
        saved, refused = checkpoint.newest(self.folder, digests_of(self.about), expected)
        if saved is None:
            self.restart()
        else:
            self._rewind(saved.about["sizes"])
        return saved, refused

    def _rewind(self, sizes: Mapping[str, int]) -> None:
        for name in (METRICS, TIMING):
            if self.folder.size(name) < sizes[name]:
                raise ValueError(f"{name} is shorter than the checkpoint says it was")
            self.folder.truncate(name, sizes[name])

    def save_weights(self, params: Any) -> None:
        """Save the weights, and their digest in `run.json`."""
        self._save(WEIGHTS, params)

    def save_best(self, params: Any, returns: Sequence[float], steps: Sequence[int]) -> None:
        """Save the weights of each cell's best evaluation, with its return and step."""
        self._save(BEST, params)
        self.about["best"] = {"return": list(returns), "step": list(steps)}
        self._write_about()

    def save_initial(self, params: Any, source: Mapping[str, Any]) -> None:
        """Save the weights that the run starts from, and their source."""
        self._save(INITIAL, params)
        self.about["initial"] = dict(source)
        self._write_about()

    def _save(self, name: str, params: Any) -> None:
        digest = tensors.write(self.folder, name, tensors.flatten(params))
        self.about["files"] = {**self.about.get("files", {}), name: digest._asdict()}

    def write(self, name: str, data: bytes) -> None:
        """Write another file into the folder, such as a picture."""
        self.folder.write(name, data)

    def close(self, status: str, keep: Callable[[], int] = lambda: -1) -> None:
        """Record how the run ended.

        If it is done, `keep` then may save its last state, and returns the step: only that
        checkpoint is kept. A run that is not done must not have it, as it would resume at the end.
        """
        try:
            self.about["status"] = status
            if status == "done":
                self.folder.sync(*(n for n in (METRICS, TIMING) if self.folder.has(n)))
            self._write_about()
            if status == "done":
                self.folder.sync()
                kept = keep()
                with contextlib.suppress(OSError):  # no longer needed, and harmless
                    checkpoint.drop_before(self.folder, kept)
        finally:
            self.folder.close()

    def _write_about(self) -> None:
        write_about(self.folder, self.about)


def write_about(folder: Directory, about: Mapping[str, Any]) -> None:
    folder.write(RUN, (json.dumps(plain(about), indent=2) + "\n").encode())


def check_free(path: Path) -> None:
    """Refuse an existing path, unless it is a folder without files except a partial `run.json`."""
    free = path.is_dir() and {found.name for found in path.iterdir()} <= {f"{RUN}.part"}
    if path.exists() and not free:
        raise FileExistsError(f"{path} is not empty: choose another folder, or remove it")


def digest_of(config: Mapping[str, Any]) -> str:
    """A hash of a configuration that does not depend on the order of its fields."""
    return hashlib.sha256(json.dumps(plain(config), sort_keys=True).encode()).hexdigest()


def digests_of(about: Mapping[str, Any]) -> set[str]:
    """The digests of a run's configuration, and of the shorter ones that it extends."""
    earlier = about.get("extended", [])
    earlier = earlier if isinstance(earlier, list) else []
    known = {str(one.get("config")) for one in earlier if isinstance(one, dict)}
    return {digest_of(about["config"]), *known}


def extend(
    path: Path,
    config: Mapping[str, Any],
    expected: Callable[[dict[str, Any]], Mapping[str, Spec]],
) -> None:
    """Extend the run of a folder to a longer one, which then resumes from its last checkpoint."""
    with Directory(path) as folder:
        lock(folder)
        about = read_about(path).everything
        saved, _ = checkpoint.newest(folder, digests_of(about), expected)
        if saved is None or about["schema"] != SCHEMA:
            raise ValueError(f"{path} has no state to continue from: it cannot be extended")
        earlier = {"steps": about["config"]["steps"], "config": digest_of(about["config"])}
        about |= {"config": plain(config), "status": "stopped"}
        about["extended"] = [*about.get("extended", []), earlier]
        write_about(folder, about)


def status(path: Path, config: Mapping[str, Any]) -> str | None:
    """The status of this run if the folder holds it, else None."""
    try:
        about = read_about(path)
    except (ValueError, OSError):
        return None
    same = about.schema == SCHEMA and digest_of(about.config) == digest_of(config)
    return about.status if same else None


def read_about(path: Path) -> About:
    """Read `run.json`; only its schema, status, versions and reasons of stops are checked."""
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}")
    with Directory(path) as folder:
        if not folder.has(RUN):
            below = next(iter(sorted(path.glob(f"*/{RUN}"))), None)
            hint = f", but {below.parent} is one" if below else ""
            raise FileNotFoundError(f"{path} is not a run's folder: it has no {RUN}{hint}")
        try:
            about = json.loads(folder.read(RUN, LONGEST), object_pairs_hook=_without_duplicates)
            schema, config, state = about["schema"], about["config"], about["status"]
            if not isinstance(config, dict) or state not in STATUS or type(schema) is not int:
                raise ValueError
            if schema in READABLE:  # else its fields may be others
                texts = [*about.get("versions", {}).values(), *about.get("stopped", {}).values()]
                if not all(isinstance(text, str) for text in texts):
                    raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{path} has a damaged {RUN}") from None
    if schema not in READABLE:
        versions = about.get("versions")
        writer = versions.get("tsallax") if isinstance(versions, dict) else "?"
        raise ValueError(
            f"{path} has schema {str(schema)[:20]}, for tsallax {str(writer)[:20]}; "
            f"this is {__version__} and reads {', '.join(map(str, READABLE))}"
        )
    return About(schema, state, config, about)


def _without_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found = list(pairs)
    if len({name for name, _ in found}) < len(found):
        raise ValueError
    return dict(found)


def plain(value: Any) -> Any:
    """Converts to plain JSON, with infinity and NaN as strings that `float` reads."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
