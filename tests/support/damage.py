"""More harm for faults.py: damaged files, nonsense on the command line, poison."""

import contextlib
import dataclasses
import io
import json
import os
import shutil
import time
import tracemalloc
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest

from support import poison
from support.configs import paper
from tsallax import cli
from tsallax.storage import checkpoint
from tsallax.storage.files import Directory
from tsallax.storage.tensors import Spec
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.driver import make_folder

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


def harm(random: np.random.Generator, path: Path, other: Path) -> None:
    """One damage, at random."""
    names = (checkpoint.ARRAYS, checkpoint.MANIFEST)
    file = path / names[random.integers(2)]
    good = file.read_bytes()
    match random.integers(9):
        case 0 | 1 | 2:
            bits = np.unpackbits(np.frombuffer(good, np.uint8))
            at = random.choice(len(bits), random.integers(1, 9), replace=False)
            bits[at] ^= 1
            file.write_bytes(np.packbits(bits).tobytes())
        case 3:
            file.write_bytes(good[: random.integers(len(good))])
        case 4:
            file.write_bytes(good + random.bytes(random.integers(1, 100)))
        case 5:
            file.write_bytes(random.bytes(random.integers(200)))
        case 6:
            shutil.copy(other / file.name, file)
        case 7:
            body = json.loads((path / checkpoint.MANIFEST).read_bytes())["body"]
            (path / checkpoint.MANIFEST).write_bytes(hostile(random, body))
        case 8:
            file.unlink()
            special = random.integers(4)
            if special == 0:
                file.symlink_to(other / file.name)
            elif special == 1:
                os.mkfifo(file)
            elif special == 2:
                file.mkdir()


def damaged_checkpoints(count: int, root: Path, seed: int = 0) -> str:
    """None is accepted, none raises anything but a line, none takes memory beyond its size."""
    random = np.random.default_rng(seed)
    with Directory(root) as run:
        checkpoint.save(run, 1, ARRAYS, ABOUT)
        checkpoint.save(run, 2, {**ARRAYS, "weights": ARRAYS["weights"] + 1}, ABOUT)
    good, other = sorted((root / checkpoint.FOLDER).iterdir())
    path = root / "work" / checkpoint.FOLDER / good.name
    most = 0
    tracemalloc.start()
    for _ in range(count):
        shutil.copytree(good, path)
        harm(random, path, other)
        tracemalloc.reset_peak()
        with (
            Directory(root / "work") as run,
            pytest.raises(ValueError, match=r"\A[^\n]*\Z"),  # one line
        ):
            checkpoint.load(run, good.name, EXPECTED)
        most = max(most, tracemalloc.get_traced_memory()[1])
        shutil.rmtree(path)
    tracemalloc.stop()
    assert most < 2_000_000, most  # the manifest's own limit is 1 MB, read twice
    return f"{count:,}"


WORDS = [
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "tal",
    "../x",
    "\x00",
    "☃",
    "None",
    "[]",
    "1 2",
    "--",
]


def random_flags(random: np.random.Generator) -> list[str]:
    """A command line that a tired, a careless or a hostile user might type."""
    fields = [f.name.replace("_", "-") for f in dataclasses.fields(Config) if f.name != "env"]
    envs = ["CartPole-v1", "MinAtar/Breakout", "Acrobot-v1", "Nothing-v0", "", "a:b", "x/../../y"]
    arguments = [str(random.choice(envs))]
    for name in random.choice(fields, random.integers(0, 5), replace=False):
        kind = random.integers(4)
        value = {
            0: str(random.choice(WORDS)),
            1: str(int(random.integers(-5, 10**6))),
            2: f"{random.normal() * 10.0 ** random.integers(-5, 12):g}",
            3: str(
                random.choice(["auto", "gym", "atari", "sb3", "paper", "exact", "host", "True"])
            ),
        }[int(kind)]
        arguments += [f"--{name}", value]
    if random.random() < 0.1:
        arguments += [str(random.choice(["--nonsense", "-x", "--seeds", "more"]))]
    return arguments


class Accepted(BaseException):
    """The command line was good: training would start."""


def fuzzed_commands(count: int, root: Path, seed: int = 0) -> str:
    """Each is accepted or ends with one clear line (the parser's own box included)."""
    random, accepted = np.random.default_rng(seed), 0
    with mock.patch("tsallax.training.build.make_run", side_effect=Accepted):
        for _ in range(count):
            arguments = ["train", *random_flags(random), "--out", str(root / "out")]
            error, parsed, good = io.StringIO(), True, False
            with contextlib.redirect_stderr(error), contextlib.redirect_stdout(error):
                try:
                    code = cli.main(arguments)
                except SystemExit as stop:
                    code, parsed = stop.code, False
                except Accepted:
                    good = True
            accepted += good
            assert good or code == 2, arguments
            assert good or not parsed or error.getvalue().count("\n") == 1, arguments
            assert "Traceback" not in error.getvalue(), arguments
            assert not (root / "out").exists(), arguments
    return f"{count:,}, {accepted:,} good"


def poisoned_seed(root: Path) -> str:
    """A NaN reward in one seed of eight: found at its step, the other seven to the bit."""
    del root
    clean, bad = poison.outcome(seeds=8), poison.outcome(poison=33, seeds=8)
    found = np.flatnonzero(bad[1].diverged >= 0)
    assert found.tolist() == [poison.SICK]
    assert bad[1].diverged[poison.SICK] == 33
    poison.same_but_for_the_sick(clean, bad)
    return "step 33, 7 of 7"


def save_costs(root: Path) -> str:
    """Seconds of one checkpoint: the gym preset, and a full MinAtar replay of 1e5."""
    found = []
    for env in ("CartPole-v1", "MinAtar/Breakout"):
        config = paper(env, steps=200_000)
        run = make_run(config)
        state = run.learner.start()
        folder = make_folder(root / env.replace("/", "-"), run)
        jax.block_until_ready(state.agent)
        times = []
        for step in range(1, 6):
            begin = time.monotonic()
            folder.save_checkpoint(step, *run.learner.save(state))
            times.append(time.monotonic() - begin)
        found.append(float(np.median(times)))
    share = 100 * found[0] / 60
    return f"{found[0]:.2f} s ({share:.2f} % of 60), {found[1]:.2f} s"
