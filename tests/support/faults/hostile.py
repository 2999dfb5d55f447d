"""Folders from a stranger, given to every command that takes one.

A good folder is copied, up to three of its entries are harmed, and the command is called in this
process, under a limit of memory and of time, beside a tree that must stay as it is. The command
must answer, or end with one line.
"""

import contextlib
import functools
import io
import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from support import tiny
from support.faults import folders, harm, limits
from support.outside import snapshot
from tsallax import cli
from tsallax.experiments import judging
from tsallax.learners import rollout
from tsallax.learners.device import DeviceLearner
from tsallax.training import build, driver, onnx_file

SECONDS = 60.0  # of one command; a good folder takes less than one
MEMORY = 1 << 30  # bytes beyond what the process has mapped when it is warm


class Command(NamedTuple):
    """A command line on a folder, and which good folders there are for it."""

    good: tuple[str, ...]
    words: Callable[[Path, Path], list[str]]  # of the folder, and of another that is its own
    new: tuple[str, ...] = folders.NEW


RUNS = ("stopped", "done")
NEW_RUN = [tiny.ENV, *tiny.flags(steps=80)]
COMMANDS = {
    "report": Command((*RUNS, "results"), lambda run, own: ["report", run, "-o", own / "p.html"]),
    "watch": Command(RUNS, lambda run, own: ["watch", run]),
    "play": Command(
        RUNS, lambda run, own: ["play", run, "--steps", 1, "--fps", 1, "--out", run / "play.gif"]
    ),
    "evaluate": Command(RUNS, lambda run, own: ["evaluate", run, "--episodes", 2]),
    "claims": Command(("results",), lambda run, own: ["claims", run, "--details"]),
    "train --resume": Command(RUNS, lambda run, own: ["train", "--resume", run]),
    "train --init-from": Command(
        RUNS, lambda run, own: ["train", *NEW_RUN, "--init-from", run, "--out", own / "new"]
    ),
    "agents": Command(("agents",), lambda run, own: ["agents"]),
    "tune": Command(
        ("search",), lambda run, own: ["tune", *folders.TUNE, "--out", run], folders.TUNE_NEW
    ),
    "export": Command(RUNS, lambda run, own: ["export", run, "--out", own / "policy.onnx"]),
    "push": Command(("done",), lambda run, own: ["push", run, "me/run"]),
    "pull": Command(("done",), lambda run, own: ["pull", "me/run", "--out", own / "pulled"]),
}


class Accepted(BaseException):
    """A run of other settings than the good one's would be trained now."""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def call(words: list[Any]) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with limits.seconds(SECONDS):
                code = cli.main([str(word) for word in words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Accepted:
            code = 0
    return Outcome(code, out.getvalue(), err.getvalue())


def check(found: Outcome) -> None:
    """One line or an answer; nothing that a terminal would obey, nothing from outside."""
    assert found.code in (0, 2), f"exit code {found.code}"
    assert found.code == 0 or found.err.count("\n") == 1, "not one line"
    assert found.code == 0 or found.err.startswith("tsallax: "), "not ours"
    said = found.out + found.err
    assert "Traceback" not in said
    assert harm.SECRET not in said, "a secret"
    control = {c for c in said if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"}
    assert not control, f"control characters {control!r}"


@contextlib.contextmanager
def quick() -> Iterator[None]:
    """What does not depend on the folder is done once: programs, parsing, what an agent does."""
    real_make, real_train, real_parse = build.make_run, driver.train_into, cli.parse
    real_moments, good = rollout.moments, folders.config()
    played: list[Any] = []

    @functools.lru_cache(64)
    def make_once(*args: Any, **more: Any) -> build.Run:
        return real_make(*args, **more)

    def make(*args: Any, beside: Any = (), **more: Any) -> build.Run:
        return make_once(*args, beside=tuple(beside), **more)

    def train(run: build.Run, *rest: Any, **more: Any) -> driver.Ending:
        if run.config != good:
            raise Accepted
        return real_train(run, *rest, **more)

    def moments(*args: Any, **more: Any) -> Any:
        played.extend([] if played else real_moments(*args, **more))
        return iter(played)

    parse_once = functools.lru_cache(64)(real_parse)
    picture = lambda *_, **__: b"picture"  # noqa: E731
    with contextlib.ExitStack() as stack:
        for name, new in (
            ("tsallax.cli.parse", lambda name, words: parse_once(name, tuple(words))),
            ("tsallax.training.build.make_run", make),
            ("tsallax.experiments.tune.make_run", make),
            ("tsallax.learners.device.DeviceLearner.shapes", once_each(DeviceLearner.shapes)),
            ("tsallax.training.driver.train_into", train),
            ("tsallax.report.curves.draw_curves", picture),
            ("tsallax.report.tuning.draw_search", picture),
            ("tsallax.cli.play.moments", moments),
            ("tsallax.training.onnx_file.checked_policy", once(onnx_file.checked_policy)),
            ("tsallax.experiments.judging._identity", once_each(judging._identity)),
        ):
            stack.enter_context(mock.patch(name, new))
        yield


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The first answer, whatever is asked."""
    answers: list[Any] = []

    def call(*args: Any, **more: Any) -> Any:
        if not answers:
            answers.append(function(*args, **more))
        return answers[0]

    return call


def once_each(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same answer to the same object."""
    answers: dict[int, Any] = {}

    def call(one: Any) -> Any:
        if id(one) not in answers:
            answers[id(one)] = one, function(one)  # kept, so that no other has its number
        return answers[id(one)][1]

    return call


class Place:
    """Good folders, a tree that nothing may touch, and room for one case."""

    def __init__(self, root: Path):
        self.root, self.good = root, root / "good"
        self.outside, self.case = root / "outside", root / "case"
        (self.outside / "deep").mkdir(parents=True)
        for path in (self.outside / "file", self.outside / "deep" / "file"):
            path.write_text(harm.SECRET)
        self.before = snapshot(self.outside)

    def make(self, name: str) -> Path:
        """A good folder, which is made when it is first needed."""
        path = self.good / name
        if not path.exists():
            self.good.mkdir(exist_ok=True)
            match name:
                case "stopped":
                    folders.make_run_folder(path)
                case "done":
                    folders.make_done_folder(path, self.make("stopped"))
                case "results":
                    folders.make_results(path)
                case "search":
                    folders.make_search(path)
                case "agents":
                    folders.make_agents(path)
        return path

    def fresh(self, good: str) -> tuple[Path, Path]:
        """A copy of a good folder, and an empty one, which is the current one."""
        harm.remove(self.case)
        run, own = self.case / "run", self.case / "own"
        own.mkdir(parents=True)
        shutil.copytree(self.make(good), run)
        os.chdir(own)
        return run, own

    def check(self) -> None:
        assert snapshot(self.outside) == self.before, "something outside was touched"
        found = {path.name for path in self.case.iterdir()}
        assert found <= {"run", "own"}, f"beside the folder: {found}"
        own = {path.name for path in (self.case / "own").iterdir()}
        assert own <= {"p.html", "policy.onnx", "pulled"}, f"in the current folder: {own}"


def spoil(random: harm.Random, run: Path, outside: Path, new: tuple[str, ...]) -> list[str]:
    """Harm up to three entries, or the folder itself; say what was done."""
    if random.random() < 0.01:
        return [f"the folder itself: {harm.replace(random, run, outside)}"]
    done = []
    for _ in range(random.integers(1, 4)):
        there = [path for path in sorted(run.rglob("*")) if not path.is_symlink()]
        if random.random() < 0.25 or not there:
            path = run / new[random.integers(len(new))]
            if not path.parent.is_dir() or path.parent.is_symlink():
                continue
        else:
            path = there[random.integers(len(there))]
        if harm.is_plain(path) and random.random() < 0.6:
            how = harm.damage(random, path)
        else:
            how = harm.replace(random, path, outside)
        done.append(f"{path.relative_to(run)}: {how}")
    return done


def attack(name: str, count: int, root: Path, seed: int = 0) -> str:
    """So many hostile folders for a command; the first that is not survived is an error."""
    command, place = COMMANDS[name], Place(root)
    random = np.random.default_rng([seed, *name.encode()])
    with contextlib.chdir(root), quick(), stubs(name, place):
        for good in command.good:  # compiled before memory is limited
            run, own = place.fresh(good)
            found = call(command.words(run, own))
            assert found.code == 0, found
            check(found)
        answered = 0
        with limits.memory(MEMORY):
            for i in range(count):
                run, own = place.fresh(command.good[random.integers(len(command.good))])
                done = spoil(random, run, place.outside, command.new)
                try:
                    found = call(command.words(run, own))
                    check(found)
                    place.check()
                except BaseException as error:
                    raise AssertionError(f"{name}, case {i} of seed {seed}: {done}") from error
                answered += found.code == 0
    return f"{count:,}, {answered:,} answered"


@contextlib.contextmanager
def stubs(name: str, place: Place) -> Iterator[None]:
    """The Hub is a folder, and so are the agents that come with the package."""
    hub = folders.FolderHub(place.case / "run")
    with contextlib.ExitStack() as stack:
        for where, new in (
            ("tsallax.cli.hub.make_client", lambda: hub),
            ("tsallax.cli.hub.files_of", hub.files_of),
            ("tsallax.cli.hub.download", hub.download),
        ):
            stack.enter_context(mock.patch(where, new))
        if name == "agents":
            place.make("agents")
            root = place.case / "run"
            stack.enter_context(mock.patch("tsallax.training.trained.ROOT", root))
        yield
