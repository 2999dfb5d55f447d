"""A search for settings: batches of trials, each batch one compiled program per shape.

A trial is one value for every option of the space, trained with every seed. Optuna proposes trials.
The best are trained again with new seeds before one of them is chosen.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import optuna
from jaxtyping import Float
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from tsallax.experiments.journal import JOURNAL, Journal
from tsallax.experiments.tune_space import Search, Space, as_field
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import plain
from tsallax.training.build import Run, check_memory, make_run, program_of
from tsallax.training.config import FIELDS, Config, in_effect, to_json
from tsallax.training.driver import Silent, periods
from tsallax.training.final import SHARE
from tsallax.training.initial import take_initial
from tsallax.training.options import Choices, Range
from tsallax.training.presets import OPEN
from tsallax.training.resolve import resolve

PRESET = "best.toml"
RANDOM = 8  # number of random trials before the sampler uses a model
PRESENT = ("algorithm", "network", "environment")  # groups of options that make a trial what it is
CONFIRMED = "confirmed"  # the study's attribute for confirmations
Asked = Callable[[], bool]


def open_study(folder: Directory, search: Search) -> optuna.Study:
    """Open the study of a folder, new or existing; interrupted trials are proposed again."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    journal = Journal(folder)
    try:
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(journal),
            study_name="tune",
            direction="maximize",
            load_if_exists=True,
        )
        trials = study.get_trials(deepcopy=False)
        whole = _is_whole(study, trials, search)
    except Exception:  # Optuna does not validate what it reads
        raise ValueError(f"{folder.path} has a damaged {JOURNAL}") from None
    if not whole:
        raise ValueError(f"{folder.path} has a damaged {JOURNAL}")
    about = _about(search)
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


def _about(search: Search) -> dict[str, Any]:
    return plain({"config": to_json(search.base), "space": search.space})


def _is_whole(study: optuna.Study, trials: Sequence[FrozenTrial], search: Search) -> bool:
    """Returns whether a journal is valid for this search, in the parts used here."""
    if study.user_attrs.get("search", _about(search)) != _about(search):
        return True  # it is another search's, which is reported as such
    rows = study.user_attrs.get(CONFIRMED, {}).values()
    return all(_is_sound(trial, search.space) for trial in trials) and all(
        len(row) and _are_numbers(row) for row in rows
    )


def _is_sound(trial: FrozenTrial, space: Space) -> bool:
    fixed = trial.system_attrs.get("fixed_params", {})
    ended = trial.state in (TrialState.COMPLETE, TrialState.PRUNED)
    return (
        all(_lies_in(space[n], x) for values in (trial.params, fixed) for n, x in values.items())
        and (not ended or trial.params.keys() == space.keys())
        and _are_numbers([*trial.intermediate_values, *trial.intermediate_values.values()])
        and _are_numbers([] if trial.value is None else [trial.value])
        and (trial.state != TrialState.COMPLETE or trial.value is not None)
    )


def _lies_in(where: Range | Choices, value: Any) -> bool:
    if isinstance(where, Choices):
        return value in where.values
    return _are_numbers([value]) and where.low <= value <= where.high


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(type(x) in (int, float) and math.isfinite(x) for x in values)


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The complete and pruned trials, best first."""
    known = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    return sorted(known, key=lambda trial: (trial.value is None, -(trial.value or 0.0)))


def ask(study: optuna.Study, search: Search, count: int) -> list[Trial]:
    """Ask for a batch of trials. Pending trials count as bad ones (the constant liar)."""
    begun = len(study.get_trials(deepcopy=False))
    study.sampler = optuna.samplers.TPESampler(
        seed=search.base.first_seed + begun, n_startup_trials=RANDOM, constant_liar=True
    )
    spread: dict[str, BaseDistribution] = {
        n: CategoricalDistribution(x.values)
        if isinstance(x, Choices)
        else FloatDistribution(x.low, x.high, log=x.log)
        for n, x in search.space.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return [study.ask(spread) for _ in range(count)]


class Worth:
    """The objective value of each cell, from the evaluations during its training."""

    def __init__(self, run: Run):
        self.goal, self.steps = run.config.stop_at, run.config.steps
        self.best, self.when = np.full(len(run.cells), -np.inf), np.full(len(run.cells), -1)
        self.seen: list[tuple[int, np.ndarray]] = []  # step, and returns of the cells

    def add(self, step: int, returns: Float[np.ndarray, "cells"]) -> None:
        self.seen.append((step, np.nan_to_num(returns, nan=-1e9)))
        self.best = np.fmax(self.best, returns)
        if self.goal is not None:
            self.when = np.where((self.when < 0) & (self.best >= self.goal), step, self.when)

    def value(self) -> Float[np.ndarray, "cells"]:
        """The mean return of the evaluations in the last fifth; with a goal, minus the cost."""
        if self.goal is not None:
            return -self.cost()
        last = [returns for step, returns in self.seen if step > (1 - SHARE) * self.steps]
        return np.mean(last or [self.seen[-1][1]], 0)

    def cost(self) -> Float[np.ndarray, "cells"]:
        """The step at which the goal was reached; if it never was, one to two times all steps."""
        short = np.maximum(self.goal - self.best, 0)
        return np.where(self.when >= 0, self.when, self.steps * (2 - 1 / (1 + short)))


def run_batch(
    study: optuna.Study, search: Search, trials: Sequence[Trial], asked: Asked = lambda: False
) -> bool:
    """Train a batch, and tell the study the value of each trial; returns False if it was stopped.

    Trials that can be one program are trained side by side. It ends early when all of them are
    pruned, or when every cell has reached `stop_at`.
    """
    programs: dict[Any, list[Trial]] = {}
    for trial in trials:
        programs.setdefault(program_of(search.config(trial.params)), []).append(trial)
    return all(_run_program(study, search, alike, asked) for alike in programs.values())


def _run_program(study: optuna.Study, search: Search, trials: list[Trial], asked: Asked) -> bool:
    pruner = optuna.pruners.MedianPruner(n_startup_trials=RANDOM)
    pruned = np.zeros(len(trials), bool)

    def report(number: int, scores: Float[np.ndarray, "trials seeds"]) -> bool:
        for i, trial in enumerate(trials):
            trial.report(float(scores[i].mean()), number)
            record = study.get_trials(deepcopy=False)[trial.number]
            pruned[i] |= pruner.prune(study, record)
        return bool(pruned.all())

    values = _train([search.config(trial.params) for trial in trials], report, asked)
    if values is None:
        return False
    for i, trial in enumerate(trials):
        if len(values):
            study.tell(trial, float(values[i].mean()))
        else:
            study.tell(trial, state=TrialState.PRUNED)
    return True


def _train(
    configs: Sequence[Config], report: Callable[[int, Any], bool], asked: Asked
) -> Float[np.ndarray, "configs seeds"] | None:
    """The values of each configuration and seed: empty if all are pruned, None if stopped."""
    run = make_run(configs[0], beside=configs[1:])
    check_memory(run)
    worth, count = Worth(run), len(configs)
    params = take_initial(run).params if run.config.init_from else None
    for progress in periods(run, run.learner.start(params), Silent()):
        if asked():
            return None
        if progress.evaluation is not None:
            worth.add(progress.period.step, progress.evaluation.mean(-1))
            done = report(len(worth.seen), worth.seen[-1][1].reshape(count, -1))
            if done and not progress.last:
                return np.empty((0, 0))
    return worth.value().reshape(count, -1)


class Confirmed(NamedTuple):
    """A trial that was trained again with new seeds."""

    trial: FrozenTrial
    values: Float[np.ndarray, "seeds"]

    @property
    def error(self) -> float:
        """Standard error of the mean; of one seed it is not known, and not drawn."""
        many = len(self.values) > 1
        return float(self.values.std(ddof=1) / np.sqrt(len(self.values))) if many else np.nan


def confirm(
    study: optuna.Study, search: Search, count: int, seeds: int, asked: Asked = lambda: False
) -> bool:
    """Train the best trials again, with new seeds; returns False if it was stopped."""
    known = {one.trial.number for one in confirmed(study, seeds)}
    best = [t for t in finished(study) if t.value is not None][:count]
    fresh = {"first_seed": search.base.first_seed + search.base.seeds, "seeds": seeds}
    programs: dict[Any, list[tuple[int, Config]]] = {}
    for trial in best:
        config = replace(search.config(trial.params), **fresh)
        if trial.number not in known:
            programs.setdefault(program_of(config), []).append((trial.number, config))
    for alike in programs.values():
        numbers, configs = zip(*alike, strict=True)
        values = _train(configs, lambda *_: False, asked)
        if values is None:
            return False
        rows = {
            f"{number} x {seeds}": row.tolist() for number, row in zip(numbers, values, strict=True)
        }
        study.set_user_attr(CONFIRMED, {**study.user_attrs.get(CONFIRMED, {}), **rows})
    return True


def confirmed(study: optuna.Study, seeds: int) -> list[Confirmed]:
    """The trials that were confirmed with this number of seeds, best first."""
    rows = study.user_attrs.get(CONFIRMED, {})
    trials = {f"{trial.number} x {seeds}": trial for trial in finished(study)}
    found = [Confirmed(trials[name], np.array(x)) for name, x in rows.items() if name in trials]
    return sorted(found, key=lambda one: -one.values.mean())


def preset_text(search: Search, trial: FrozenTrial, given: Config, note: str) -> str:
    """The options of a trial as a preset file: a flat table in TOML.

    It has the options that were given or searched, and those that would not follow from these: the
    values that the search started from, and defaults that depend on whether an option is given.
    """
    names = [n for n in OPEN if n != "preset"]
    kept = {n: getattr(given, n) for n in names if getattr(given, n) is not None}
    base = {n: getattr(search.base, n) for n in ("algo", "preset", "learner", "steps")}
    searched = {name: as_field(name, x) for name, x in trial.params.items()}
    table: dict[str, Any] = {**base, **kept, **searched}
    wanted, found = search.config(trial.params), resolve(Config(search.base.env, **table))
    table |= {
        n: in_effect(wanted, n)
        for n in names
        if FIELDS[n].metadata["group"] in PRESENT and getattr(wanted, n) != getattr(found, n)
    }
    lines = [f"{name} = {_toml(value)}" for name, value in table.items()]
    return f"# {search.base.algo} on {search.base.env}: {note}\n" + "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], float):
        return _toml(value[0])
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else f'"{value}"'
    return repr(value)
