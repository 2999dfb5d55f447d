"""`tsallax tune`: search for settings that work."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from tsallax.cli.common import check_counts, unmarked
from tsallax.cli.config_options import config_options
from tsallax.spelling import counted, duration, install, printable
from tsallax.training.config import Config

if TYPE_CHECKING:
    from tsallax.experiments.tune import Confirmed

SEEDS = 4
Options: Any = config_options(seeds=SEEDS)
NOT_GIVEN = tyro.conf.arg(metavar="PATH", help_behavior_hint=" ")
SHOWN = 5  # number of best trials shown

HELP = """\
usage: tsallax tune ENV [OPTIONS]

Search for hyper-parameters that work on an environment. Options that are given
are fixed; the others that have a range are searched. The best few are trained
again with new seeds, and the best of these is a preset for `tsallax train`.

  tsallax tune CartPole-v1                          40 trials, 8 side by side
  tsallax tune CartPole-v1 --trials 200 --q 2       more of them, at q = 2
  tsallax train CartPole-v1 --preset tunes/CartPole-v1-tal/best.toml

  ENV             an environment: see `tsallax list`
  --algo NAME     see `tsallax list` (default: tal, continuous actions: tal-ac)
  --trials N      total number of trials; run again to continue (default: 40)
  --seeds N       seeds of each trial (default: 4)
  --steps N       environment steps of each seed (default: by the environment)
  --confirm N     how many of the best are trained again (default: 4)
  --space FILE    a TOML file of the options to search and their ranges
  --out PATH      the folder of the search (default: tunes/ENV-ALGO)

All options, with those of `tsallax train`: tsallax tune --help-all"""


def run(
    options: Annotated[Options, tyro.conf.arg(name="")],  # pyright: ignore[reportInvalidTypeForm]
    out: Annotated[Path | None, NOT_GIVEN] = None,
    trials: int = 40,
    width: int = 8,
    confirm: int = 4,
    confirm_seeds: int = 8,
    start: Annotated[tuple[str, ...], tyro.conf.arg(help_behavior_hint=" ")] = (),
    space: Annotated[Path | None, NOT_GIVEN] = None,
    shapes: bool = False,
) -> int:
    """Search for hyper-parameters: several trials, each with all its seeds, train side by side.

    Options that are given are fixed; the others that have a range are searched, starting from the
    values that `tsallax train` would use. The best trials are trained again with new seeds, and the
    best of these becomes a preset. The same command again continues the search.

    Args:
        options: The fields of a configuration, in groups.
        out: The folder of the search; tunes/ENV-ALGO if not given.
        trials: Total number of trials.
        width: Number of trials side by side in one program.
        confirm: Number of the best trials that are trained again with new seeds; 0 for none.
        confirm_seeds: Number of new seeds for each of them.
        start: Values to start from, such as beta=0.9, instead of the preset's.
        space: A TOML file of the options to search and their ranges, instead of the default ones.
        shapes: Search shapes as well, such as the widths of the network. Each shape is compiled.
    """
    check_counts(trials=trials, width=width, confirm_seeds=confirm_seeds)
    if confirm < 0:
        raise ValueError(f"confirm must be 0 or more, not {confirm}")
    try:
        from tsallax.experiments import tune
    except ImportError:
        raise ValueError(f"tune needs another package: {install('tune')}") from None
    from tsallax._jaxlib import use_cache
    from tsallax.experiments.tune_space import make_search
    from tsallax.report.tuning import PICTURE, draw_search
    from tsallax.storage.files import Directory, lock
    from tsallax.training.interrupt import Interrupt

    groups = map(vars, vars(options).values())
    given = Config(**{name: value for group in groups for name, value in group.items()})
    search = make_search(given, start, space, shapes)
    base = search.base
    path = out or Path("tunes") / f"{base.env.replace('/', '-')}-{base.algo}"
    use_cache()
    begin = time.monotonic()
    with Directory(path, create=True) as folder, Interrupt() as interrupt:
        lock(folder)
        study = tune.open_study(folder, search)
        print(
            printable(
                f"{base.algo} on {base.env}: {', '.join(n.rstrip('_') for n in search.space)}"
            )
        )
        if done := len(tune.finished(study)):
            print(f"{printable(path)}: {done} of {counted(trials, 'trial')} done")
        whole = True
        while whole and done < trials:
            batch = tune.ask(study, search, min(width, trials - done))
            whole = tune.run_batch(study, search, batch, lambda: interrupt.asked)
            if whole:
                done, best = len(tune.finished(study)), tune.finished(study)[0]
                took = duration(time.monotonic() - begin)
                print(
                    f"{done} of {trials} trials   {took}   best {best.value or 0:.6g}", flush=True
                )
        if whole and confirm:
            print(f"the best {confirm} again, with {confirm_seeds} other seeds", flush=True)
            whole = tune.confirm(study, search, confirm, confirm_seeds, lambda: interrupt.asked)
        note, found = "", [trial for trial in tune.finished(study) if trial.value is not None]
        again = tune.confirmed(study, confirm_seeds)
        if found:
            chosen = again[0].trial if again else found[0]
            note = _note(chosen, again, base.seeds)
            folder.write(tune.PRESET, tune.preset_text(search, chosen, given, note).encode())
            folder.write(PICTURE, draw_search(study, search, again))
    if found:
        Console().print(_table(list(search.space), [one.trial for one in again], found, again))
        made = (printable(path / name) for name in (tune.PRESET, PICTURE))
        print("{}\nthe preset {}\npicture    {}".format(note, *made))
    if not whole:
        print("stopped: the same command continues")
        return 130
    return 0


def _note(chosen: Any, again: list["Confirmed"], seeds: int) -> str:
    """Describes the result of the chosen trial."""
    words = f"trial {chosen.number}, {chosen.value:.6g} in the search ({counted(seeds, 'seed')})"
    if not again:
        return f"{words}, not confirmed"
    values = again[0].values
    return f"{words}, {values.mean():.6g} with {counted(len(values), 'other seed')}"


def _table(
    names: list[str], chosen: list[Any], found: list[Any], again: list["Confirmed"]
) -> Table:
    """The table of confirmed trials, best first, or else of the best trials of the search."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    means = {one.trial.number: f"{one.values.mean():.6g}" for one in again}
    for name in ("trial", "search", *(["confirmed"] if again else []), *names):
        table.add_column(name.rstrip("_"), justify="right", overflow="fold")
    for trial in chosen or found[:SHOWN]:
        values = [_short(trial.params[name]) for name in names]
        shown = [means[trial.number]] if again else []
        table.add_row(str(trial.number), f"{trial.value:.6g}", *shown, *values)
    return table


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else unmarked(value)
