"""The API for scripts and notebooks: `tsallax.train`, `tsallax.load` and `load_agent`."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, Shaped

from tsallax.networks import Network, Params
from tsallax.report.curves import Curves, as_png, plot_curves
from tsallax.report.progress import Line
from tsallax.spelling import counted, suggest
from tsallax.storage.run_folder import CURVES
from tsallax.training.build import Run, check_memory, make_run
from tsallax.training.config import Config, grid, varied
from tsallax.training.driver import Best, Progress, Silent, make_folder, periods
from tsallax.training.final import best_cell, final_scores, mean_of, mean_text
from tsallax.training.given import field_value
from tsallax.training.initial import Initial, take_initial
from tsallax.training.model import Model
from tsallax.training.own_env import check_copies, given_environment, own_settings
from tsallax.training.presets import with_preset_file
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import load_weights, read_run
from tsallax.training.trained import agent_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Fields that are not `settings`: parameters of `train` by name, and the options of checkpoints.
NAMED = ("env", "network", "save_seconds", "save_steps")
ROWS = 12  # number of settings that a notebook shows
FIELDS = [field.name for field in fields(Config) if field.name not in NAMED]


class StopTraining(Exception):  # noqa: N818 (it is no error)
    """A callback of `train` raises this to end the run after the current period."""


@dataclass(frozen=True, repr=False)
class Result:
    """A finished run.

    `metrics` maps each column of `metrics.csv` to an array (settings, seeds, target periods), in
    the order of `settings` and `seeds`; `evaluations` is (settings, seeds, target periods,
    episodes), NaN for periods without an evaluation.
    """

    config: Config
    settings: list[dict[str, float]]
    seeds: list[int]
    metrics: dict[str, Shaped[np.ndarray, "settings seeds periods"]]
    evaluations: Float[np.ndarray, "settings seeds periods episodes"]
    params: Params
    run: Run
    periods: list[Progress]
    initial: Initial | None = None  # the initial weights, if they come from another run
    kept: Best | None = None  # the best evaluations, and their weights

    def __repr__(self) -> str:
        seeds, settings = counted(len(self.seeds), "seed"), counted(len(self.settings), "setting")
        score, evaluated = (mean_text(np.ravel(x)) for x in (self.final(), self._evaluated()))
        reached = self.periods[-1].period.step  # less than `steps` if a goal or callback ended it
        return (
            f"Result: {self.config.algo} on {self.config.env}, {seeds} x {settings}, "
            f"{reached:,} steps\nfinal return {score}, last evaluation {evaluated}"
        )

    def _repr_html_(self) -> str:
        """HTML for notebooks: each setting with its final return and its last evaluation."""
        names = varied(self.config)
        rows = zip(self.settings, self.final(), self._evaluated(), strict=True)
        cells = [
            [*(f"{setting[n]:g}" for n in names), mean_text(score), mean_text(evaluated.ravel())]
            for setting, score, evaluated in list(rows)[:ROWS]
        ]
        head = "".join(f"<th>{n}</th>" for n in (*names, "final return", "last evaluation"))
        body = "".join(f"<tr>{''.join(f'<td>{x}</td>' for x in row)}</tr>" for row in cells)
        title = escape(repr(self).split("\n")[0].removeprefix("Result: "))
        more = len(self.settings) - ROWS
        rest = f"<p>... and {counted(more, 'more setting')}</p>" if more > 0 else ""
        return f"<p>{title}</p><table><tr>{head}</tr>{body}</table>{rest}"

    def final(self, metric: str = "episode_return") -> Float[np.ndarray, "settings seeds"]:
        """The final score of each run, as `tsallax train` and the report define it."""
        flat = {name: x.reshape(-1, x.shape[-1]) for name, x in self.metrics.items()}
        return final_scores(flat, metric).reshape(len(self.settings), -1)

    def _evaluated(self) -> Float[np.ndarray, "settings seeds episodes"]:
        """The returns of the last evaluation; empty if there was no evaluation."""
        made = np.flatnonzero(np.isfinite(self.evaluations).any((0, 1, 3)))
        return self.evaluations[:, :, made[-1]] if len(made) else self.evaluations[:, :, 0, :0]

    def best(
        self, metric: str = "episode_return", last: int | None = None
    ) -> tuple[dict[str, float], float]:
        """The setting with the largest `metric`, and its value.

        A setting's value is the mean over its seeds of the final score, or over the `last`
        target periods, ignoring NaN. The setting is returned as the numbers that vary.
        """
        values = self.final(metric) if last is None else self.metrics[metric][:, :, -last:]
        scores = np.array([mean_of(x) for x in values])
        i = int(np.argmax(scores))
        return {n: self.settings[i][n] for n in varied(self.config)}, float(scores[i])

    def model(self, setting: int = 0, seed: int = 0) -> Model:
        """The trained policy of one cell, by its indices in `settings` and `seeds`."""
        if not (0 <= setting < len(self.settings) and 0 <= seed < len(self.seeds)):
            raise ValueError(
                f"there are settings 0 to {len(self.settings) - 1} and seeds 0 to "
                f"{len(self.seeds) - 1}, by their places: not {setting} and {seed}"
            )
        return _model(self.run, self.params, setting * len(self.seeds) + seed)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Plots the learning curves as in `curves.png`, and saves them to `path` if it is given."""
        steps = self.metrics["step"][0, 0]
        names = [tuple(f"{n} = {s[n]:g}" for n in varied(self.config)) for s in self.settings]

        def read(column: str) -> Curves:
            return {name: (steps, x) for name, x in zip(names, self.metrics[column], strict=True)}

        figure = plot_curves(read, self.title)
        if path is not None:
            figure.savefig(path, dpi=130)
        return figure

    def save(self, path: str | Path) -> Path:
        """Writes the run folder that `tsallax train` would have written, and returns its path."""
        folder = make_folder(Path(path), self.run)
        try:
            for progress in self.periods:
                folder.add_metrics(progress.period.metrics, progress.evaluation)
            folder.add_failures(self.stopped)
            if self.initial:
                folder.save_initial(*self.initial)
            folder.save_weights(self.params)
            if self.kept and self.kept.params is not None:
                returns, steps = self.kept.returns.tolist(), self.kept.steps.tolist()
                folder.save_best(self.kept.params, returns, steps)
            folder.write(CURVES, as_png(self.plot()))
        except BaseException:
            folder.close("failed")
            raise
        reached = self.periods[-1].last  # false if a callback ended the run
        folder.close("done" if reached else "stopped")
        return folder.path

    @property
    def stopped(self) -> dict[int, str]:
        """The cells whose environment failed, and the error; their metrics are NaN from then on."""
        return self.periods[-1].period.failures

    @property
    def title(self) -> str:
        return f"{self.config.algo} on {self.config.env}, {counted(len(self.seeds), 'seed')}"


def train(
    env: Any,
    *,
    network: Network | tuple[Any, ...] | str | None = None,
    progress: bool = False,
    callback: Callable[[Progress], Any] | None = None,
    **settings: Any,
) -> Result:
    """Train every seed and every combination of numbers as one program.

    Args:
        env: a name, see `tsallax list`; or an environment of your own: an `Environment` in JAX, a
            Gymnasium environment, a vector of them, or a function that makes one.
        network: its name, or an `(init, apply)` pair of your own; the preset's if not given.
        progress: show progress and the remaining time on one line, in notebooks with a bar.
        callback: called with the `Progress` of each period; the run ends there if it returns False
            or raises `StopTraining`. The next period donates the buffers of the state and the
            parameters that it sees: copy what you keep.
        settings: fields of `tsallax.training.config.Config`; several values of a number are a grid.

    The run is kept in memory until `Result.save`; only `tsallax train` writes checkpoints.
    """
    values = {name: _field(name, value) for name, value in settings.items()}
    given: dict[str, Any] = {name: x for name, x in values.items() if x is not None}
    own = _own_network(network)
    given["network"] = "own" if own else network
    own_env, shown = given_environment(env), None
    if own_env is not None:
        env, given, shown = own_settings(own_env, given)
    config = resolve(with_preset_file(Config(env, **given)), shown)
    check_copies(own_env, config)
    run = make_run(config, own, env=own_env)
    check_memory(run)
    initial = take_initial(run) if config.init_from else None
    seen: list[Progress] = []
    params, failures = None, {}
    show, best = Line(config, len(run.cells)) if progress else Silent(), Best(len(run.cells))
    state = run.learner.start(initial and initial.params)
    for one in periods(run, state, show, best):
        period = one.period
        for cell in period.failures.keys() - failures.keys():
            warnings.warn(f"cell {cell} {period.failures[cell]}", stacklevel=2)
        params, failures = period.params, period.failures
        # The next period donates the buffers of the state and the parameters.
        seen.append(one._replace(period=period._replace(state=None, params=None)))
        if callback and _ends(callback, one):
            break
    if isinstance(show, Line):
        show.end()
    shape = (len(grid(config)), config.seeds)
    metrics = {
        name: np.stack([getattr(p.period.metrics, name) for p in seen], -1).reshape(*shape, -1)
        for name in seen[0].period.metrics._fields
    }
    none = np.full((len(run.cells), config.eval_episodes), np.nan)
    found = [none if p.evaluation is None else p.evaluation for p in seen]
    return Result(
        config,
        grid(config),
        [cell.seed for cell in run.cells[: config.seeds]],
        metrics,
        np.stack(found, 1).reshape(*shape, len(seen), -1),
        jax.tree.map(np.asarray, params),
        run,
        seen,
        initial,
        best,
    )


def _own_network(given: Any) -> Network | None:
    """A user's own `(init, apply)` pair as a `Network`; None for a name."""
    return None if given is None or isinstance(given, str) else Network(*given)


def _ends(callback: Callable[[Progress], Any], progress: Progress) -> bool:
    try:
        answer = callback(progress)
    except StopTraining:
        return True
    return isinstance(answer, bool | np.bool_) and not answer


def load(
    path: str | Path,
    cell: int | None = None,
    network: Network | tuple[Any, ...] | None = None,
    env: Any = "",
    best: bool = False,
) -> Model:
    """Load the trained policy of a run folder.

    Args:
        path: the run folder.
        cell: the index into the `cells` of its run.json; by default the one with the best final
            return.
        network: the `(init, apply)` pair that the run was trained with, if it was your own.
        env: the run's environment, if it is `package:Name` and not imported yet, or the object
            that was given to `train` instead of a name.
        best: load the weights with the best evaluation during training, not the last ones.
    """
    path = Path(path)
    own_env = given_environment(env)
    config, about = read_run(path, env if own_env is None else "")
    run = make_run(config, _own_network(network), env=own_env)
    params = load_weights(path, about, run.learner.params(), best)
    if cell is None:
        cell = best_cell(path)
    if not 0 <= cell < len(run.cells):
        raise ValueError(f"{path} has cells 0 to {len(run.cells) - 1}, not {cell}")
    return _model(run, params, cell)


def load_agent(name: str) -> Model:
    """Load a trained agent that ships with tsallax, by its environment; see `tsallax agents`."""
    return load(agent_folder(name), best=True)


def _model(run: Run, params: Params, cell: int) -> Model:
    own, hp = jax.tree.map(lambda x: x[cell], (params, run.hp))
    names = [f"{n} = {run.cells[cell].numbers[n]:g}" for n in varied(run.config)]
    words = [f"seed {run.cells[cell].seed}", *names]
    title = f"{run.config.algo} on {run.config.env}, {', '.join(words)}"
    more = {"action_box": run.action_box, "title": title, "config": run.config}
    return Model(run.agent, own, hp, run.observation, **more)


def _field(name: str, value: Any) -> Any:
    if name not in FIELDS:
        raise ValueError(f"unknown setting {name!r}; {suggest(name, FIELDS)}")
    return field_value(name, value)
