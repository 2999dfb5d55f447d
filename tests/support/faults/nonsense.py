"""Nonsense that is typed: command lines, studies, settings that no machine has room for."""

import dataclasses
import signal
from pathlib import Path
from unittest import mock

import numpy as np

from support.faults import Output, run
from support.faults.folders import CONTROL, Hang, _hang
from support.studies import STUDY
from tsallax.training.config import Config

WORDS = ["", "nan", "inf", "-1", "0", "1e400", "tal", "../x", "\x00", "☃", "None", "[]", "1 2", "--",
         "\x1b[31m", "[/x]"]  # fmt: skip
CHOICES = ["auto", "gym", "atari", "sb3", "paper", "exact", "host", "True", "parallel", "tal-ac"]
ENVS = ["CartPole-v1", "MinAtar/Breakout", "Pendulum-v1", "Nothing-v0", "", "a:b", "x/../../y"]
FIELDS = [field.name for field in dataclasses.fields(Config) if field.name != "env"]
SECONDS = 60  # of one command, on however busy a machine


class Accepted(BaseException):
    """The command line was good: training would start."""


def random_flags(random: np.random.Generator) -> list[str]:
    """A command line that a tired, a careless or a hostile user might type."""
    arguments = [str(random.choice(ENVS))]
    for name in random.choice(FIELDS, random.integers(0, 5), replace=False):
        value = {
            0: lambda: str(random.choice(WORDS)),
            1: lambda: str(int(random.integers(-5, 10**6))),
            2: lambda: f"{random.normal() * 10.0 ** random.integers(-5, 40):g}",
            3: lambda: str(random.choice(CHOICES)),
        }[int(random.integers(4))]()
        arguments += [f"--{name.replace('_', '-')}", value]
    if random.random() < 0.1:
        arguments += [str(random.choice(["--nonsense", "-x", "--seeds", "more"]))]
    return arguments


def random_study(random: np.random.Generator) -> str:
    """A study some of whose lines are gone, twice, elsewhere, or say something else."""
    lines = STUDY.strip().splitlines()
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(len(lines)))
        name = str(random.choice([*FIELDS, "title", "rows", "scales", "primary", "match", "only"]))
        value = random.choice([*TOML, f"{random.normal() * 10.0 ** random.integers(-5, 40):g}"])
        key = lines[at].partition(" = ")[0]
        change = [
            lines[:at] + lines[at + 1 :],
            [*lines, lines[at]],
            [*lines[:at], f"{key} = {value}", *lines[at + 1 :]],
            [*lines[:at], f"{name} = {value}", *lines[at:]],
            [*lines, str(random.choice(HEADS)), f"{name} = {value}"],
        ]
        lines = change[random.integers(len(change))] or [""]
    return "\n".join(lines)


TOML = ["[]", "[[]]", "{}", "true", "'tal'", "'\\u001b[31m'", "'../x'", "nan", "-1", "1e400", "1979-05-27",
        "[1.5, 'a']", "[1, 2, 3]", "'all'", "['*']", "9" * 30, "[" * 90 + "]" * 90]  # fmt: skip
HEADS = ["[[runs]]", "[runs]", "[[scales.quick]]", "[scales.'../x']", "[common]", "[scales.quick.only]"]


def one_line_or_good(*arguments: object) -> bool:
    """Whether a command was accepted; if not, it said so in one line, or in the parser's box."""
    old = signal.signal(signal.SIGALRM, _hang)
    signal.alarm(SECONDS)
    try:
        found = run(*arguments)
    except Accepted:
        return True
    except (Hang, Exception) as error:
        raise AssertionError(f"{arguments}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
    check(found, arguments)
    return found.code == 0


def check(found: Output, arguments: tuple[object, ...]) -> None:
    assert found.code in (None, 0, 2), arguments
    assert found.code != 2 or found.error.count("\n") == 1, (arguments, found.error)
    assert "Traceback" not in found.error, arguments
    assert found.code is None or not CONTROL.search(found.out + found.error), (arguments, found)


def fuzzed_commands(count: int, root: Path, seed: int = 0) -> str:
    """Each is accepted or ends with one clear line (the parser's own box included)."""
    random, accepted = np.random.default_rng(seed), 0
    with mock.patch("tsallax.training.build.make_run", side_effect=Accepted):
        for _ in range(count):
            accepted += one_line_or_good("train", *random_flags(random), "--out", root / "out")
            assert not (root / "out").exists()
    return f"{count:,}, {accepted:,} good"


def fuzzed_studies(count: int, root: Path, seed: int = 0) -> str:
    """The same of `tsallax sweep` with a study that was edited at random."""
    random, accepted, path = np.random.default_rng(seed), 0, root / "small.toml"
    for _ in range(count):
        path.write_text(random_study(random))
        accepted += one_line_or_good("sweep", path, "--out", root / "out", "--draw-only")
        assert {found.name for found in root.iterdir()} <= {"small.toml", "out"}
    return f"{count:,}, {accepted:,} good"


HUGE = [
    ["--seeds", 10**9],
    ["--seeds", 10**30],
    [*(word for name in ("q", "alpha", "beta", "gamma") for word in (
        f"--{name}", *(i / 301 for i in range(1, 301))))],
    ["--hidden", *[8] * 100_000],
    ["--hidden", 10**9],
    ["--steps", 10**18],
    ["--buffer", 10**12],
    ["--batch", 10**9],
    ["--target-period", 10**9],
    ["--updates", 10**9],
    ["--eval-every", 40, "--eval-episodes", 10**9],
    ["--head", "quantile", "--quantiles", 10**9],
    ["--learner", "parallel", "--num-envs", 10**9],
    ["--learner", "parallel", "--rollout", 10**9],
    ["--learner", "parallel", "--epochs", 10**9],
    ["--learner", "parallel", "--minibatches", 10**9],
    ["--alpha", "1e39"],
    ["--stack", 10**9],
]  # fmt: skip


def enormous_settings(root: Path) -> str:
    """Refused at once, in one line, before anything is built from them."""
    refused = 0
    for words in HUGE:
        with mock.patch("tsallax.training.driver.train_into", side_effect=Accepted):
            out = ["--out", root / "out", "--preset", "paper"]
            good = one_line_or_good("train", "CartPole-v1", *words, *out)
        assert not good, words[:4]
        refused += 1
    axis = f"[{', '.join(str(i / 1001) for i in range(1, 1001))}]"
    lines = [f"{name} = {axis}" for name in ("q", "alpha", "beta", "gamma")]
    (root / "huge.toml").write_text("\n".join(["[[runs]]", "env = 'CartPole-v1'", *lines]))
    assert not one_line_or_good("sweep", root / "huge.toml", "--out", root / "out")
    assert not (root / "out").exists()
    return str(refused + 1)
