"""`tsallax tune`: search for settings that work."""

import time
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from tsallax.cli import check_counts, printable
from tsallax.cli.config_options import config_options
from tsallax.cli.display import duration
from tsallax.training.config import Config

Options: Any = config_options()
SHOWN = 5  # of the best trials


def run(
    options: Annotated[Options, tyro.conf.arg(name="")],  # pyright: ignore[reportInvalidTypeForm]
    out: Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint=" ")] = None,
    trials: int = 40,
    width: int = 4,
    start: Annotated[tuple[str, ...], tyro.conf.arg(help_behavior_hint=" ")] = (),
) -> int:
    """Search for settings: several trials, each with all its seeds, as one program after another.

    Options that are given are fixed; the others that have a range are searched, starting from the
    values that `tsallax train` would use. The same command again continues the search.

    Args:
        options: The fields of a configuration, in groups.
        out: The folder of the search; tunes/ENV-ALGO if not given.
        trials: How many settings are tried in all.
        width: How many are tried side by side.
        start: Values to start from, such as beta=0.9, in the place of the preset's.
    """
    check_counts(trials=trials, width=width)
    try:
        from tsallax.experiments import tune
    except ImportError:
        raise ValueError("tune needs another package: pip install 'tsallax[tune]'") from None
    from tsallax._jaxlib import use_cache
    from tsallax.storage.files import Directory, lock
    from tsallax.training.driver import Interrupt

    groups = map(vars, vars(options).values())
    given = Config(**{name: value for group in groups for name, value in group.items()})
    search = tune.make_search(given, start)
    base = search.base
    path = out or Path("tunes") / f"{base.env.replace('/', '-')}-{base.algo}"
    use_cache()
    begin, console = time.monotonic(), Console()
    with Directory(path, create=True) as folder, Interrupt() as interrupt:
        lock(folder)
        study = tune.open_study(folder, search)
        print(printable(f"{base.algo} on {base.env}: {', '.join(search.space)}"))
        if done := len(tune.finished(study)):
            print(f"{path}: {done} of {trials} trials are done")
        while done < trials and not interrupt.asked:
            batch = tune.ask(study, search, min(width, trials - done))
            whole = tune.run_batch(
                study, search, batch, lambda progress: None, lambda: interrupt.asked
            )
            if not whole:
                break
            best = tune.finished(study)[0]
            done = len(tune.finished(study))
            took = duration(time.monotonic() - begin)
            print(f"{done} of {trials} trials   {took}   best {best.value or 0:.6g}", flush=True)
        found = [trial for trial in tune.finished(study) if trial.value is not None]
        if found:
            text = tune.preset_text(search, found[0], given)
            folder.write(tune.PRESET, text.encode())
    if found:
        console.print(_table(list(search.space), found[:SHOWN]))
        print(f"the best as a preset: {path / tune.PRESET}")
    if done < trials:
        print("stopped: the same command continues")
        return 130
    return 0


def _table(names: list[str], trials: list[Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("trial", "value", *names):
        table.add_column(name, justify="right")
    for trial in trials:
        values = [f"{trial.params[name]:.3g}" for name in names]
        table.add_row(str(trial.number), f"{trial.value:.6g}", *values)
    return table
