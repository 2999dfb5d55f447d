"""`tsallax train`: train one algorithm, many seeds and numbers side by side."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from tsallax.cli.config_options import config_options
from tsallax.cli.display import Display, rows_of, title
from tsallax.spelling import counted, duration, printable
from tsallax.training.config import Config

Log = Literal["tensorboard", "wandb"]
Options: Any = config_options()
GRACE = 2.0  # seconds in which a second Ctrl-C lets a run close its files
NOT_GIVEN = tyro.conf.arg(metavar="PATH", help_behavior_hint=" ")

HELP = """\
usage: tsallax train ENV [OPTIONS]

Train an agent: every seed and every combination of numbers side by side.

  tsallax train CartPole-v1 --stop-at 475           until it is solved
  tsallax train CartPole-v1 --q 1.5 2 3 --seeds 5   15 agents in one program
  tsallax train --resume runs/RUN                   from its last checkpoint

  ENV             an environment: see `tsallax list`, or any of Gymnasium's
  --algo NAME     see `tsallax list` (default: tal, continuous actions: tal-ac)
  --q Q ...       entropic index: 1 softmax, 2 sparsemax (default), inf greedy
  --seeds N       how many, trained side by side (default: 1)
  --steps N       environment steps of each seed (default: by the environment)
  --stop-at R     end when each seed has reached this return in an evaluation
  --preset NAME   tuned by experiment, or the paper's tables (default: tuned)
  --out PATH      the run's folder (default: runs/ENV-ALGO-TIME)
  --resume RUN    resume a run that was stopped; extend one with more --steps
  --log NAME ...  live logs as well: tensorboard, wandb

Several values of an option make a grid. All options: tsallax train --help-all"""


def run(
    options: Annotated[Options, tyro.conf.arg(name="")],  # pyright: ignore[reportInvalidTypeForm]
    out: Annotated[Path | None, NOT_GIVEN] = None,
    resume: Annotated[Path | None, NOT_GIVEN] = None,
    devices: int = 1,
    log: Annotated[tuple[Log, ...], tyro.conf.arg(help_behavior_hint=" ")] = (),
) -> int:
    """Train an agent: every seed and every combination of numbers side by side.

    Where a default depends on the observations, it is given for gym (vectors), minatar and atari
    (images). `tsallax list` shows the defaults of single environments.

    Args:
        options: The fields of a configuration, in groups.
        out: The run's folder; runs/ENV-ALGO-TIME if not given.
        resume: A folder whose run continues from its last checkpoint, with its own configuration,
            or is extended to more --steps; ENV is needed only if it is `package:Name`, to allow
            that import.
        devices: Number of devices of this host among which the runs are divided.
        log: Write live logs as well, for TensorBoard or Weights & Biases.
    """
    from tsallax._jaxlib import use_cache
    from tsallax.storage.files import Directory
    from tsallax.storage.run_folder import CURVES, check_free, extend, status
    from tsallax.storage.tables import METRICS
    from tsallax.training.build import check_memory, make_run
    from tsallax.training.config import to_json
    from tsallax.training.driver import train_into
    from tsallax.training.final import (
        best_in_words,
        evaluation_in_words,
        folder_scores,
        in_words,
    )
    from tsallax.training.initial import take_initial
    from tsallax.training.interrupt import Interrupt

    groups = map(vars, vars(options).values())
    given = Config(**{name: value for group in groups for name, value in group.items()})
    config, path = _which(given, out, resume)
    found = status(path, to_json(config))
    if found == "done":
        print(f"{printable(path)} is done: there is nothing to resume; more --steps extend it")
        return 0
    if log:
        from tsallax.cli.logs import check_logs

        check_logs(log)
    use_cache()
    built = make_run(config, devices=devices)
    check_memory(built)
    if resume and found is None:
        extend(path, to_json(config), built.learner.layout)
    elif found is None:  # refuse the run before anything is shown
        check_free(path)
        if config.init_from:
            take_initial(built)
    begin, what = time.monotonic(), printable(f"{config.algo} on {config.env}")

    def picture(folder: Path) -> bytes:
        from tsallax.report.curves import draw_curves

        return draw_curves(folder, f"{what}, {counted(config.seeds, 'seed')}")

    with (
        Display(
            title(config),
            built.labels,
            config.steps,
            rows=rows_of(config),
            early=config.stop_at is not None,
        ) as show,
        Interrupt(show.stopping, GRACE) as interrupt,
    ):
        watcher = show
        if log:
            from tsallax.cli.logs import Logged

            watcher = Logged(show, log, path, config, built.labels)
        end = train_into(built, path, watcher, lambda: interrupt.asked, picture)
    show.print_table()
    took = duration(time.monotonic() - begin)
    with Directory(path) as folder:
        print(f"{what}: {end.status} after {took}, {in_words(folder_scores(folder))}")
    if end.evaluation is not None:
        print(f"evaluation: {evaluation_in_words(config.env, end.evaluation)}")
    if end.best is not None:
        print(f"best weights (--best): {best_in_words(config.env, end.best)}")
    print(f"metrics {printable(path / METRICS)}\ncurves  {printable(path / CURVES)}")
    if end.status == "stopped":
        print(f"to resume: tsallax train --resume {printable(path)}")
    return 0 if end.status == "done" else 130


def _which(config: Config, out: Path | None, resume: Path | None) -> tuple[Config, Path]:
    """The resolved configuration and the folder of the requested run."""
    from tsallax.training.extend import extended
    from tsallax.training.presets import with_preset_file
    from tsallax.training.resolve import resolve
    from tsallax.training.stored_config import read_run

    if resume is not None:
        if out is not None:
            raise ValueError("a resumed run has its own folder: give no other")
        return extended(*read_run(resume, config.env), config), resume
    asked, config = config.env, resolve(with_preset_file(config))
    if config.env != asked:
        print(f"{asked} is called {config.env} now")
    name = f"{config.env.replace('/', '-')}-{config.algo}-{time.strftime('%Y%m%d-%H%M%S')}"
    return config, out or Path("runs") / name
