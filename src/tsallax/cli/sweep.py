"""`tsallax sweep`: a user's own study."""

from pathlib import Path
from typing import Annotated

import tyro

from tsallax.cli.sweep_runner import Where, carry_out
from tsallax.experiments.study import read


def run(
    study: Annotated[Path, tyro.conf.Positional],
    out: Path | None = None,
    scale: str = "",
    where: Annotated[Where, tyro.conf.arg(name="")] = Where(),  # noqa: B008
) -> int:
    """Run every setting of a study: environments x algorithms x numbers x seeds.

    A command that was stopped and is run again runs what is missing. The format of the file is in
    docs/reproduction.md.

    Args:
        study: a TOML file.
        out: the folder of its results; if not given, sweeps/NAME.
        scale: the name of a scale in the file, if it has any.
        where: where the runs are executed.
    """
    found = read(study)
    command = f"tsallax sweep {{}}.toml{f' --scale {scale}' if scale else ''}"
    return carry_out([found], scale, out or Path("sweeps") / found.name, where, command)
