"""Damaged files: every reader, one file at a time, and nothing but a line or the right arrays."""

import contextlib
import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from support import runs
from support.faults.harms import harm
from support.outside import snapshot
from support.studies import STUDY
from tsallax.experiments import results, study
from tsallax.experiments.journal import JOURNAL, Journal
from tsallax.storage import checkpoint, tables, tensors
from tsallax.storage.files import Directory
from tsallax.storage.reader import read
from tsallax.storage.tensors import Digest, Spec
from tsallax.training.config import Config
from tsallax.training.given import with_preset_file
from tsallax.training.stored_config import read_run

ARRAYS = {
    "weights": np.arange(64, dtype=np.float32).reshape(8, 8),
    "replay": np.arange(512, dtype=np.uint8),
    "key": np.array([1, 2], np.uint32),
    "flag": np.array(True),
}
EXPECTED = {name: Spec(x.shape, x.dtype) for name, x in ARRAYS.items()}
ABOUT = {"sizes": {"metrics.csv": 10}, "config": "0" * 64, "run": {}}


def hostile(random: np.random.Generator, body: dict) -> bytes:
    """A manifest that lies, with a checksum that agrees."""
    huge = int(10 ** random.integers(5, 300))
    lies = [
        {"schema": 1},
        {"schema": None},
        {"step": int(random.integers(2, 10**9))},
        {"step": "../../../etc"},
        {"step": -1},
        {"arrays": {"size": huge, "sha256": body["arrays"]["sha256"]}},
        {"arrays": {"size": body["arrays"]["size"], "sha256": "0" * 64}},
        {"arrays": {"size": "many", "sha256": 7}},
        {"arrays": []},
        {"arrays": None},
    ]
    return checkpoint._manifest({**body, **lies[random.integers(len(lies))]})


STEP, LATER = "step-000000000001", "step-000000000002"


class Reader:
    """A good folder, the file in it that is harmed, and what reads it.

    A `strict` one reads nothing but the very bytes that were written; of the others a harm may
    leave a file that means something, a table with another number in it.
    """

    def __init__(
        self,
        make: Callable[[Path], object],
        file: str,
        load: Callable[[Path], Any],
        strict: bool = False,
    ):
        self.make, self.file, self.load, self.strict = make, file, load, strict


def make_checkpoints(at: Path) -> None:
    with Directory(at, create=True) as run:
        checkpoint.save(run, 1, ARRAYS, ABOUT)
        checkpoint.save(run, 2, {**ARRAYS, "weights": ARRAYS["weights"] + 1}, ABOUT)


def load_checkpoint(at: Path) -> Any:
    with Directory(at) as run:
        return checkpoint.load(run, STEP, EXPECTED)


def make_weights(at: Path) -> None:
    with Directory(at, create=True) as folder:
        digest = tensors.write(folder, "weights.safetensors", ARRAYS)
    (at / "digest").write_text(json.dumps(digest._asdict()))


def load_weights(at: Path) -> Any:
    wanted = Digest(**json.loads((at / "digest").read_text()))
    with Directory(at) as folder:
        return read(folder, "weights.safetensors", EXPECTED, wanted)


def in_folder(read_: Callable[[Directory], Any]) -> Callable[[Path], Any]:
    def load(at: Path) -> Any:
        with Directory(at) as folder:
            return read_(folder)

    return load


def write_text(name: str, text: str) -> Callable[[Path], object]:
    def make(at: Path) -> None:
        at.mkdir()
        (at / name).write_text(text)

    return make


def make_results(at: Path) -> None:
    labels = {"env": "CartPole-v1", "algo": "tal"}
    runs.write_results(at, [{"labels": labels, "seeds": 2, "level": 10.0}])


PRESET = 'preset = "paper"\nhidden = [8, 8]\nq = 1.5\nsteps = 1000\n'
LINES = "".join(json.dumps({"op_code": 1, "n": n}) + "\n" for n in range(5))
READERS = {
    "arrays of a checkpoint": Reader(
        make_checkpoints, f"checkpoints/{STEP}/{checkpoint.ARRAYS}", load_checkpoint, True
    ),
    "manifest of a checkpoint": Reader(
        make_checkpoints, f"checkpoints/{STEP}/{checkpoint.MANIFEST}", load_checkpoint, True
    ),
    "weights": Reader(make_weights, "weights.safetensors", load_weights, True),
    "run.json": Reader(lambda at: runs.write_run(at, seeds=2), "run.json", read_run),
    "metrics.csv": Reader(
        lambda at: runs.write_run(at, seeds=2), "metrics.csv", in_folder(tables.read_metrics)
    ),
    "timing.csv": Reader(
        write_text("timing.csv", "step,seconds,steps_per_second\n40,1.5,20\n80,3.0,21.5\n"),
        "timing.csv",
        in_folder(tables.read_timing),
    ),
    "about.json of a study": Reader(make_results, "about.json", in_folder(results.read_provenance)),
    "table of a study": Reader(
        make_results, "metrics.csv", lambda at: results.read_table(at / "metrics.csv")
    ),
    "journal of a search": Reader(
        write_text(JOURNAL, LINES), JOURNAL, in_folder(lambda folder: Journal(folder).lines)
    ),
    "study": Reader(
        write_text("small.toml", STUDY),
        "small.toml",
        lambda at: study.settings(study.read(at / "small.toml")),
    ),
    "preset": Reader(
        write_text("own.toml", PRESET),
        "own.toml",
        lambda at: with_preset_file(Config("CartPole-v1", preset=str(at / "own.toml"))),
    ),
}


def damaged_files(name: str, count: int, root: Path, seed: int = 0) -> str:
    """None raises anything but a line, none takes memory beyond its size, none is read wrongly."""
    reader, random = READERS[name], np.random.default_rng([seed, *name.encode()])
    good, at, outside = root / "good", root / "work", root / "outside"
    reader.make(good)
    (outside / "deep").mkdir(parents=True)
    (outside / "file").write_text("keep")
    before, accepted, most = snapshot(outside), 0, 0
    wanted = (good / reader.file).read_bytes()
    tracemalloc.start()
    for _ in range(count):
        shutil.copytree(good, at)
        if reader.strict and random.random() < 0.2:
            told = foreign(random, at / reader.file)
        else:
            told = harm(random, at / reader.file, outside)
        tracemalloc.reset_peak()
        try:
            reader.load(at)
            accepted += 1
            intact = not reader.strict or (at / reader.file).read_bytes() == wanted
            why = "" if intact else "accepted"
        except (ValueError, OSError) as error:
            why = str(error) if "\n" in str(error) else ""
        assert not why, f"{name}, {told}: {why}"
        most = max(most, tracemalloc.get_traced_memory()[1])
        shutil.rmtree(at)
    tracemalloc.stop()
    assert snapshot(outside) == before
    assert most < LARGEST, most
    return f"{count:,}, {accepted:,} still good"


LARGEST = 64 << 20  # bytes, of the largest file that `harms` makes many times over


def foreign(random: np.random.Generator, file: Path) -> str:
    """A whole file of another checkpoint, or a manifest that lies and has the right checksum."""
    if file.name == checkpoint.MANIFEST and random.random() < 0.8:
        file.write_bytes(hostile(random, json.loads(file.read_bytes())["body"]))
        return "a lie"
    other = file.parent.parent / LATER / file.name
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(other, file)
        return "another checkpoint's"
    file.unlink()
    return "gone"
