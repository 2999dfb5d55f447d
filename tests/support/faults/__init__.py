"""Faults on purpose: `make faults` prints the table, `make faults PART=folders` a part of it.

Every function does one kind of harm a given number of times and returns how often it did; it raises
AssertionError at the first one that was not survived. What they share is here.
"""

import contextlib
import dataclasses
import functools
import io
import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from support import host_envs, tiny  # noqa: F401 (one registers)
from tsallax import cli
from tsallax.cli import play
from tsallax.experiments import identities
from tsallax.learners.device import DeviceLearner
from tsallax.training import build
from tsallax.training.config import FIELDS, Config

HERE = Path(__file__).parents[1]
KEPT = ("metrics.csv", "weights.safetensors", "curves.png")
TINY = {**tiny.TINY, "eval_every": 400, "save_seconds": 0.05}
WIDE = {"preset": "paper", "hidden": 8, "seeds": 2, "save_seconds": 0.05, "learner": "parallel",
        "num_envs": 4, "rollout": 10}  # fmt: skip
ACTOR = {"hidden": 8, "batch": 8, "warmup": 20, "buffer": 100, "seeds": 2, "target_period": 40,
         "algo": "tal-ac", "save_seconds": 0.05}  # fmt: skip
HOST = f"host_envs:{tiny.HOST}"


class Learner(NamedTuple):
    """One kind of learner: a run of a second or two, or less with fewer steps."""

    env: str
    fields: dict[str, Any]
    period: int  # steps
    exact: bool = True  # a resumed run ends with the bits of one that was never stopped

    def words(self, **changes: Any) -> list[str]:
        """The arguments of `tsallax train`."""
        found = [self.env]
        for name, value in {**self.fields, **changes}.items():
            several = value if isinstance(value, tuple) else (value,)
            found += [f"--{name.replace('_', '-')}", *map(str, several)]
        return found

    def short(self) -> list[str]:
        """Three periods, each with everything that a run can write."""
        return self.words(steps=3 * self.period, eval_every=2 * self.period, save_seconds=1e-9)

    def check_same(self, out: Path, whole: Path) -> None:
        """What a resumed run has to have in common with a whole one."""
        if self.exact:
            for name in KEPT:
                assert (out / name).read_bytes() == (whole / name).read_bytes(), name
            return
        rows, wanted = (
            np.genfromtxt(at / "metrics.csv", delimiter=",", names=True) for at in (out, whole)
        )
        np.testing.assert_array_equal(rows["step"], wanted["step"])  # each period once
        np.testing.assert_array_equal(rows["seed"], wanted["seed"])
        assert np.isfinite(rows["loss"][rows["step"] > 40]).all()
        assert (rows["diverged"] == -1).all()


LEARNERS = {
    "replay": Learner("CartPole-v1", {**TINY, "steps": 8000, "time_limit": 15}, 40),
    "replay, MinAtar": Learner("MinAtar/Freeway", {**TINY, "steps": 2000, "time_limit": 100}, 40),
    "parallel": Learner(
        "CartPole-v1", {**WIDE, "target_period": 400, "steps": 40_000, "eval_every": 4000}, 400
    ),
    "actor-critic": Learner("Pendulum-v1", {**ACTOR, "steps": 4000, "eval_every": 2000}, 40),
    "replay on the host": Learner(HOST, {**TINY, "steps": 2000}, 40, exact=False),
    "parallel on the host": Learner(
        HOST, {**WIDE, "target_period": 40, "steps": 2000}, 40, exact=False
    ),
}


# --- processes ------------------------------------------------------------------------------------


def command(arguments: list[str], out: Path) -> list[str]:
    return [sys.executable, "-m", "tsallax", "train", *arguments, "--out", str(out)]


def environment(cache: Path) -> dict[str, str]:
    """A user's, with a cache of compiled programs so that a start takes seconds."""
    paths = [HERE, HERE.parents[1] / "src"]
    own = {"JAX_COMPILATION_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(map(str, paths))}
    own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    return {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"} | own


def finish(arguments: list[str], out: Path, cache: Path) -> bytes:
    done = subprocess.run(command(arguments, out), env=environment(cache), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    return done.stdout


# --- in this process ------------------------------------------------------------------------------


class Output(NamedTuple):
    code: int | None  # None: an exception of the parser, which printed its box
    out: str
    error: str


def quick_picture(folder: Path, *_: object) -> bytes:
    """The picture is drawn from the metrics alone, and takes most of a small run's time."""
    return (folder / "metrics.csv").read_bytes()


# What would be traced and compiled again at each call.
COMPILED = [
    (identities, "largest_gaps"),
    (play, "make"),
    (play, "with_unit_actions"),
    (DeviceLearner, "shapes"),
]
NOWHERE = {name: FIELDS[name].default for name in ("init_from", "init_cell", "init_weights")}


class Other(BaseException):
    """The folder is a whole one of another run, which is accepted: it would be built now."""


@contextlib.contextmanager
def in_process(known: Collection[Config] = ()) -> Iterator[None]:
    """Commands that compile once, and build no runs but the `known` ones, if any are given.

    What they do with files is as ever.
    """
    real = build.make_run
    made = functools.cache(lambda *key: real(key[0], devices=key[1], beside=key[2:]))

    def make_once(config, network=None, devices=1, beside=()):
        assert network is None
        alone = dataclasses.replace(
            config, **NOWHERE
        )  # where it starts is no part of what is built
        if known and alone not in known:
            raise Other
        return made(alone, devices, *beside)._replace(config=config)

    frame, nothing = np.zeros((16, 16, 3), np.uint8), lambda *_, **__: None
    with contextlib.ExitStack() as stack:
        for place in ("training.build", "api", "experiments.tune"):
            stack.enter_context(mock.patch(f"tsallax.{place}.make_run", make_once))
        for place, function in {
            "tsallax.report.curves.draw_curves": quick_picture,
            "tsallax.report.video.frame": lambda *_: frame,
            "matplotlib.figure.Figure.savefig": nothing,
        }.items():
            stack.enter_context(mock.patch(place, function))
        for module, name in COMPILED:
            stack.enter_context(
                mock.patch.object(module, name, functools.cache(getattr(module, name)))
            )
        yield


def run(*arguments: object) -> Output:
    """A command in this process, with what it printed."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = cli.main([str(word) for word in arguments])
        except SystemExit:
            code = None
    return Output(code, out.getvalue(), error.getvalue())
