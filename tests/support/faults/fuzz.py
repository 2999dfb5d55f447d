"""Nonsense on the command line and in study files; valid settings that are enormous."""

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from support.faults import harm, limits
from support.studies import STUDY
from tsallax import cli
from tsallax.training.config import Config

SECONDS, MEMORY = 30.0, 1 << 30
WORDS = (
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
)
NAMES = ("auto", "gym", "atari", "sb3", "paper", "exact", "host", "True", "parallel", "tal-ac")
ENVS = ("CartPole-v1", "MinAtar/Breakout", "Pendulum-v1", "Nothing-v0", "", "a:b", "x/../../y")
ENORMOUS = ("1000000000", "1e9", "99999999999999999999", "2147483647", "1e30", "1e-60")
OTHERS = {
    "evaluate": ("episodes", "seed", "greedy", "best", "agent", "env"),
    "play": ("out", "cell", "episodes", "seed", "steps", "fps", "terminal", "agent", "env"),
    "export": ("out", "cell", "best", "agent", "env"),
    "watch": ("every", "once", "env"),
    "report": ("out", "clips"),
    "claims": ("details", "write"),
    "push": ("private", "env"),
    "pull": ("out", "revision", "env"),
    "sweep": ("out", "scale", "workers", "width", "seeds", "executor", "address", "gpus"),
    "reproduce": ("out", "scale", "workers", "width", "seeds", "gpus"),
    "agents": ("nonsense",),
    "list": ("nonsense",),
}


def value(random: harm.Random) -> str:
    """What a tired, a careless or a hostile user might type."""
    match random.integers(5):
        case 0:
            return str(random.choice(WORDS))
        case 1:
            return str(int(random.integers(-5, 10**6)))
        case 2:
            return f"{random.normal() * 10.0 ** random.integers(-5, 12):g}"
        case 3:
            return str(random.choice(ENORMOUS))
        case _:
            return str(random.choice(NAMES))


def train_words(random: harm.Random) -> list[str]:
    fields = [f.name.replace("_", "-") for f in dataclasses.fields(Config) if f.name != "env"]
    words = ["train", str(random.choice(ENVS))]
    for name in random.choice(fields, random.integers(0, 5), replace=False):
        words += [f"--{name}", value(random)]
    if random.random() < 0.1:
        words += [str(random.choice(["--nonsense", "-x", "--seeds", "more"]))]
    return [*words, "--out", "out"]


def other_words(random: harm.Random) -> list[str]:
    name = str(random.choice(list(OTHERS)))
    words = [name, *(value(random) for _ in range(random.integers(3)))]
    for option in random.choice(OTHERS[name], random.integers(len(OTHERS[name])), replace=False):
        words += [f"--{option}", *(value(random) for _ in range(random.integers(2)))]
    return words


class AcceptedError(BaseException):
    """It was good: something would be trained, fetched or drawn."""


@contextlib.contextmanager
def nothing_runs() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in (
            "tsallax.training.build.make_run",
            "tsallax.cli.hub.make_client",
            "tsallax.cli.sweep_runner.executor",
            "tsallax.cli.sweep_runner.write",
            "tsallax.cli.claims.judge",
        ):
            stack.enter_context(mock.patch(name, side_effect=AcceptedError))
        yield


def call(words: list[str]) -> bool:
    """Whether it was good; else it must have ended in one clear line, or in the parser's box."""
    said, parsed = io.StringIO(), True
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            with limits.seconds(SECONDS):
                code = cli.main(words)
        except SystemExit as stop:
            code, parsed = stop.code, False
        except AcceptedError:
            return True
    if code == 0:
        return True
    text = said.getvalue()
    assert code in (1, 2), f"exit code {code}"
    assert not parsed or text.count("\n") == 1, f"not one line: {text!r}"
    assert "Traceback" not in text
    assert all(line.isprintable() for line in text.splitlines()), f"{text!r}"
    return False


def commands(count: int, root: Path, seed: int = 0) -> str:
    """Command lines: one in four of `train`, whose parser takes most of the time."""
    random, good = np.random.default_rng(seed), 0
    with contextlib.chdir(root), nothing_runs(), limits.memory(MEMORY):
        for i in range(count):
            words = train_words(random) if i % 4 == 0 else other_words(random)
            try:
                good += call(words)
            except BaseException as error:
                raise AssertionError(f"command {i} of seed {seed}: {words}") from error
            assert words[0] != "train" or not Path("out").exists(), words
    return f"{count:,}, {good:,} good"


def studies(count: int, root: Path, seed: int = 0) -> str:
    """Study files, given to the command that would run them."""
    random, good = np.random.default_rng(seed), 0
    path = root / "small.toml"
    scales = STUDY + '\n[[scales.quick]]\nmatch = ["CartPole-*"]\nsteps = 160\nonly = { q = [3] }\n'
    with contextlib.chdir(root), nothing_runs(), limits.memory(MEMORY):
        for i in range(count):
            text = (STUDY, scales)[random.integers(2)]
            path.write_text(text)
            if random.random() < 0.7:
                path.write_text(other_study(random, text))
            else:
                harm.damage(random, path)
            option = ["--scale", "quick"] if random.random() < 0.3 else []
            try:
                good += call(["sweep", str(path), *option])
            except BaseException as error:
                raise AssertionError(
                    f"study {i} of seed {seed}: {path.read_bytes()[:3000]!r}"
                ) from error
    return f"{count:,}, {good:,} good"


def other_study(random: harm.Random, text: str) -> str:
    """A line of it has another value or name, is there twice, or is gone."""
    import json

    lines = text.strip().splitlines()
    y = int(random.integers(len(lines)))
    name, equals, _ = lines[y].partition(" = ")
    match random.integers(5):
        case 0 if equals:
            grid = ", ".join(str(random.normal()) for _ in range(int(random.integers(1, 3000))))
            lines[y] = f"{name} = [{grid}]"
        case 1 if equals:
            lines[y] = f"{name} = {random.choice(ENORMOUS)}"
        case 2:
            lines.insert(y, lines[random.integers(len(lines))])
        case 3:
            del lines[y]
        case _ if equals:
            lines[y] = f"{name} = {json.dumps(harm.hostile_value(random))}"
        case _:
            lines[y] = str(harm.hostile_value(random))[:200].encode(errors="replace").decode()
    return "\n".join(lines) + "\n"
