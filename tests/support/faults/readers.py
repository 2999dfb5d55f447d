"""Damaged files, given to everything that reads one.

What has a checksum is never accepted. The others are read as far as they make sense, or refused
in one line. Memory is limited.
"""

import contextlib
import functools
import io
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from support.faults import folders, harm, limits
from support.outside import snapshot
from support.studies import STUDY
from tsallax.cli import one_line
from tsallax.experiments import results, study
from tsallax.storage import checkpoint, reader, tables, tensors
from tsallax.storage.files import Directory
from tsallax.storage.tensors import Digest, Spec

MEMORY = 256 << 20  # bytes beyond what the process has mapped
SECONDS = 30.0
ARRAYS = {
    "weights": np.arange(64, dtype=np.float32).reshape(8, 8),
    "replay": np.arange(512, dtype=np.uint8),
    "key": np.array([1, 2], np.uint32),
    "flag": np.array(True),
}
EXPECTED = {name: Spec(x.shape, x.dtype) for name, x in ARRAYS.items()}
ABOUT = {"sizes": {"metrics.csv": 10, "timing.csv": 10}, "config": "0" * 64, "run": {}}
STEP = "checkpoints/step-000000000001"
PRESET = "hidden = [8, 8]\nalpha = 0.03\nq = [1.5, 2.0]\n"
SPACE = "alpha = { low = 0.01, high = 1.0, log = true }\nbeta = { low = 0.0, high = 1.0 }\n"


class Reader(NamedTuple):
    """Files, and what reads them.

    Args:
        files: those that are damaged.
        make: puts good ones into a folder.
        read: reads them there.
        sealed: whether a checksum guards every byte.
    """

    files: tuple[str, ...]
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    sealed: bool = False


def make_checkpoint(root: Path) -> None:
    with Directory(root) as run:
        checkpoint.save(run, 1, ARRAYS, ABOUT)


def read_checkpoint(root: Path) -> None:
    """As a run that is resumed does it: what is refused is deleted."""
    with Directory(root) as run:
        saved, refused = checkpoint.newest(run, {ABOUT["config"]}, lambda notes: EXPECTED)
    if saved is None:
        raise ValueError(*refused)


def make_weights(root: Path) -> None:
    with Directory(root) as run:
        tensors.write(run, "weights.safetensors", ARRAYS)


@functools.cache
def digest_of(good: bytes) -> Digest:
    import hashlib

    return Digest(len(good), hashlib.sha256(good).hexdigest())


WHOLE: dict[str, bytes] = {}  # the good weights, whose digest `run.json` would have


def read_weights(root: Path) -> None:
    with Directory(root) as run:
        good = WHOLE["weights.safetensors"]
        reader.read(run, "weights.safetensors", EXPECTED, digest_of(good))


def lies(random: harm.Random, body: dict[str, Any]) -> bytes:
    """A manifest that lies, with a checksum that agrees."""
    huge = int(10 ** random.integers(5, 300))
    found = [
        {"schema": 1},
        {"step": int(random.integers(2, 10**9))},
        {"step": "../../../etc"},
        {"arrays": {"size": huge, "sha256": body["arrays"]["sha256"]}},
        {"arrays": {"size": body["arrays"]["size"], "sha256": "0" * 64}},
        {str(random.choice(list(body))): harm.hostile_value(random)},
    ]
    return checkpoint._manifest({**body, **found[random.integers(len(found))]})


def in_folder(read: Callable[..., Any], *rest: Any) -> Callable[[Path], Any]:
    def call(root: Path) -> Any:
        with Directory(root) as folder:
            return read(folder, *rest)

    return call


def copy_of(make: Callable[[Path], Any], *names: str) -> Callable[[Path], None]:
    """Some files of a folder that is made elsewhere."""

    def copy(root: Path) -> None:
        make(root / "made")
        for name in names:
            source = root / "made" / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, root / Path(name).name)
        shutil.rmtree(root / "made")

    return copy


def text(name: str, words: str) -> Callable[[Path], Any]:
    return lambda root: (root / name).write_text(words)


def read_run(root: Path) -> Any:
    from tsallax.training.stored_config import read_run

    return read_run(root)


def read_study(root: Path) -> Any:
    return study.settings(study.read(root / "small.toml"))


def read_preset(root: Path) -> Any:
    from tsallax.training.config import Config
    from tsallax.training.presets import with_preset_file
    from tsallax.training.resolve import resolve

    return resolve(with_preset_file(Config("CartPole-v1", preset=str(root / "best.toml"))))


def read_space(root: Path) -> Any:
    from tsallax.experiments.tune_space import make_search
    from tsallax.training.config import Config

    return make_search(Config("CartPole-v1"), file=root / "space.toml")


def read_journal(root: Path) -> Any:
    from tsallax.experiments import tune
    from tsallax.experiments.tune_space import make_search
    from tsallax.training.config import Config

    search = make_search(Config("CartPole-v1", steps=160))
    with Directory(root) as folder:
        return tune.open_study(folder, search)


def make_journal(root: Path) -> None:
    from tsallax.experiments import tune
    from tsallax.experiments.tune_space import make_search
    from tsallax.training.config import Config

    search = make_search(Config("CartPole-v1", steps=160))
    with Directory(root, create=True) as folder:
        found = tune.open_study(folder, search)
        for value, trial in enumerate(tune.ask(found, search, 3)):
            trial.report(float(value), 1)
            found.tell(trial, float(value))


RUN = folders.make_run_folder
QUICK = "quick/fig2/"
READERS = {
    "checkpoint": Reader(
        (f"{STEP}/state.safetensors", f"{STEP}/manifest.json"),
        make_checkpoint,
        read_checkpoint,
        sealed=True,
    ),
    "weights": Reader(("weights.safetensors",), make_weights, read_weights, sealed=True),
    "run.json": Reader(("run.json",), copy_of(RUN, "run.json"), read_run),
    "metrics": Reader(
        ("metrics.csv",), copy_of(RUN, "metrics.csv"), in_folder(tables.read_metrics)
    ),
    "timing": Reader(("timing.csv",), copy_of(RUN, "timing.csv"), in_folder(tables.read_timing)),
    "table of results": Reader(
        ("metrics.csv",),
        copy_of(folders.make_results, f"{QUICK}metrics.csv"),
        lambda root: results.read_table(root / "metrics.csv"),
    ),
    "about.json": Reader(
        ("about.json",),
        copy_of(folders.make_results, f"{QUICK}about.json"),
        in_folder(results.read_provenance),
    ),
    "study": Reader(("small.toml",), text("small.toml", STUDY), read_study),
    "preset": Reader(("best.toml",), text("best.toml", PRESET), read_preset),
    "space": Reader(("space.toml",), text("space.toml", SPACE), read_space),
    "journal": Reader(("journal.jsonl",), make_journal, read_journal),
}


def damaged(name: str, count: int, root: Path, seed: int = 0) -> str:
    """So many damaged files for one reader."""
    own, random = READERS[name], np.random.default_rng([seed, *name.encode()])
    place, outside = root / "place", root / "outside"
    place.mkdir()
    (outside / "deep").mkdir(parents=True)
    (outside / "file").write_text(harm.SECRET)
    before = snapshot(outside)
    with contextlib.redirect_stdout(io.StringIO()):
        own.make(place)
    good = {file: (place / file).read_bytes() for file in own.files}
    WHOLE.update(good)
    own.read(place)
    accepted = 0
    with limits.memory(MEMORY):
        for i in range(count):
            file = own.files[random.integers(len(own.files))]
            how = spoil(random, place / file, good[file], outside)
            try:
                with limits.seconds(SECONDS):
                    own.read(place)
                changed = not harm.is_plain(place / file) or (
                    (place / file).read_bytes() != good[file]
                )
                assert not (own.sealed and changed), "it was accepted"
                accepted += 1
            except (ValueError, OSError) as error:
                said = one_line(error)
                assert said.isprintable()
                assert harm.SECRET not in said
            except BaseException as error:
                raise AssertionError(f"{name}, case {i} of seed {seed}: {file}: {how}") from error
            for each in itertools.chain([file], own.files):  # a reader may mend what it reads
                harm.remove(place / each)
                (place / each).parent.mkdir(parents=True, exist_ok=True)
                (place / each).write_bytes(good[each])
        assert snapshot(outside) == before
    return f"{count:,}, {accepted:,} made sense" if accepted else f"{count:,}, all refused"


def spoil(random: harm.Random, path: Path, good: bytes, outside: Path) -> str:
    if random.random() < 0.15:
        return harm.replace(random, path, outside)
    if path.name == checkpoint.MANIFEST and random.random() < 0.5:
        path.write_bytes(lies(random, json.loads(good)["body"]))
        return "a lie"
    return harm.damage(random, path)
