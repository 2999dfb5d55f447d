"""A search for settings: batches of trials, each batch one compiled program.

A trial is one value for every option of the space, trained with every seed. Optuna proposes them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import optuna
from jaxtyping import Float
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from tsallax.experiments.journal import Journal
from tsallax.spelling import suggest
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import plain
from tsallax.training.build import check_memory, make_run
from tsallax.training.config import FIELDS, NUMBERS, ONLY, Config, to_json
from tsallax.training.driver import Progress, Silent, periods
from tsallax.training.given import with_preset_file
from tsallax.training.initial import start_from, take_initial
from tsallax.training.options import Range
from tsallax.training.resolve import resolve

PRESET = "best.toml"
RANDOM = 8  # trials before the sampler learns from them
Space = dict[str, Range]


class Search(NamedTuple):
    """What is searched: the settings to start from, and a range for each option of the space."""

    base: Config  # resolved
    space: Space

    def start(self) -> dict[str, float]:
        """The values of the first trial."""
        return {name: _one(getattr(self.base, name)) for name in self.space}

    def config(self, values: Mapping[str, float]) -> Config:
        own = {n: (x,) if n in NUMBERS else x for n, x in values.items()}
        return resolve(replace(self.base, **own))


def make_search(given: Config, start: Sequence[str] = ()) -> Search:
    """Every option that has a range, belongs to the learner and was not given.

    `start` has values to start from, such as `beta=0.9`, in the place of the preset's.
    """
    wanted = with_preset_file(replace(given, **_parse(start)))
    base = resolve(wanted)
    if not wanted.eval_every:
        base = resolve(replace(base, eval_every=-(-base.steps // 10)))
    foreign = ONLY["replay" if base.learner == "parallel" else "parallel"]
    ranges = {n: f.metadata["tune"] for n, f in FIELDS.items() if f.metadata["tune"]}
    fixed = [n for n in ranges if getattr(given, n) is not None or n in foreign]
    space = {n: _widen(x, getattr(base, n)) for n, x in ranges.items() if n not in fixed}
    if not space:
        raise ValueError("there is nothing to search: every option that has a range was given")
    return Search(base, space)


def _parse(words: Sequence[str]) -> dict[str, Any]:
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        if name not in FIELDS or FIELDS[name].metadata["tune"] is None:
            known = [n for n, field in FIELDS.items() if field.metadata["tune"]]
            raise ValueError(f"start: {name!r} is not searched; {suggest(name, known)}")
        try:
            found[name] = (float(text),) if name in NUMBERS else float(text)
        except ValueError:
            raise ValueError(f"start: {word!r} is not NAME=NUMBER") from None
    return found


def _one(value: Any) -> float:
    values = np.atleast_1d(value)
    if len(values) > 1:
        raise ValueError("a search starts from one value of each number, not from a grid")
    return float(values[0])


def _widen(found: Range, start: Any) -> Range:
    """The range, with the value that the search starts from."""
    value = _one(start)
    return Range(min(found.low, value), max(found.high, value), found.log and value > 0)


def open_study(folder: Directory, search: Search) -> optuna.Study:
    """The study of a folder, new or as it was; trials that were running are proposed again."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        storage = optuna.storages.JournalStorage(Journal(folder))
        study = optuna.create_study(
            storage=storage, study_name="tune", direction="maximize", load_if_exists=True
        )
        trials = study.get_trials(deepcopy=False)
    except (KeyError, TypeError, AssertionError, AttributeError):
        raise ValueError(f"{folder.path} has a damaged journal") from None
    about = plain({"config": to_json(search.base), "space": search.space})
    if study.user_attrs.get("search", about) != about:
        raise ValueError(f"{folder.path} holds another search: choose another folder")
    if not trials:
        study.set_user_attr("search", about)
        study.enqueue_trial(search.start())
    for trial in trials:
        if trial.state == TrialState.RUNNING:
            study.tell(trial.number, state=TrialState.FAIL)
            study.enqueue_trial(trial.params)
    return study


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The trials with a value, and those that were pruned, best first."""
    known = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    return sorted(known, key=lambda trial: (trial.value is None, -(trial.value or 0.0)))


def ask(study: optuna.Study, search: Search, count: int) -> list[Trial]:
    """A batch. Those that are not evaluated yet count as bad ones (the constant liar)."""
    begun = len(study.get_trials(deepcopy=False))
    study.sampler = optuna.samplers.TPESampler(
        seed=search.base.first_seed + begun, n_startup_trials=RANDOM, constant_liar=True
    )
    spread: dict[str, BaseDistribution] = {
        n: FloatDistribution(x.low, x.high, log=x.log) for n, x in search.space.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return [study.ask(spread) for _ in range(count)]


def run_batch(
    study: optuna.Study,
    search: Search,
    trials: list[Trial],
    watch: Callable[[Progress], None],
    asked: Callable[[], bool] = lambda: False,
) -> bool:
    """Train a batch, and tell the study what each trial was worth; False if it was stopped.

    It ends early when the pruner has given up every trial, or when every cell has the return to
    stop at.
    """
    first, *others = (search.config(trial.params) for trial in trials)
    run = make_run(first, beside=others)
    check_memory(run)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=RANDOM)
    pruned, score, seen = np.zeros(len(trials), bool), np.full(len(trials), np.nan), Reached(run)
    for progress in periods(run, start_from(run, take_initial(run)), Silent()):
        watch(progress)
        if progress.evaluation is not None:
            returns = progress.evaluation.mean(-1)
            seen.add(progress.period.step, returns)
            score = np.nan_to_num(returns, nan=-1e9).reshape(len(trials), -1).mean(-1)
            for i, trial in enumerate(trials):
                trial.report(float(score[i]), progress.period.step)
                record = study.get_trials(deepcopy=False)[trial.number]
                pruned[i] |= pruner.prune(study, record)
        if asked():
            return False
        if pruned.all() and not progress.last:
            for trial in trials:
                study.tell(trial, state=TrialState.PRUNED)
            return True
    values = score if first.stop_at is None else -seen.cost().reshape(len(trials), -1).mean(-1)
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, float(value))
    return True


class Reached:
    """When each cell first had the return to stop at, and how far the others were from it."""

    def __init__(self, run: Any):
        self.goal, self.steps = run.config.stop_at, run.config.steps
        self.best, self.when = np.full(len(run.cells), -np.inf), np.full(len(run.cells), -1)

    def add(self, step: int, returns: Float[np.ndarray, "cells"]) -> None:
        self.best = np.fmax(self.best, returns)
        if self.goal is not None:
            self.when = np.where((self.when < 0) & (self.best >= self.goal), step, self.when)

    def cost(self) -> Float[np.ndarray, "cells"]:
        """The step; for a cell that never had it, between one and two times all steps."""
        short = np.maximum(self.goal - self.best, 0)
        return np.where(self.when >= 0, self.when, self.steps * (2 - 1 / (1 + short)))


def preset_text(search: Search, trial: FrozenTrial, given: Config) -> str:
    """The options of a trial as a preset file: a flat table in TOML."""
    names = [n for n in FIELDS if n not in ("env", "preset") and FIELDS[n].default is None]
    kept = {n: getattr(given, n) for n in names if getattr(given, n) is not None}
    base = {n: getattr(search.base, n) for n in ("preset", "learner", "steps")}
    found = {**base, **kept, **trial.params}
    lines = [f"{name} = {_toml(value)}" for name, value in found.items()]
    what = f"# {search.base.algo} on {search.base.env}: trial {trial.number}, {trial.value:.6g}\n"
    return what + "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else f'"{value}"'
    return repr(value)
