"""`tsallax reproduce`: the paper's figures, and our own studies."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from tsallax.cli.sweep_runner import Where, carry_out
from tsallax.experiments.study import load, names


def run(
    studies: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="STUDIES")],
    scale: Literal["smoke", "quick", "long", "full"] = "quick",
    out: Path = Path("results"),
    where: Annotated[Where, tyro.conf.arg(name="")] = Where(),  # noqa: B008
) -> int:
    """Reproduce figures of the paper: fig1 to fig10, our own studies by their names, or all.

    The same command again runs what is missing. Figures share the runs they have in common.

    Args:
        studies: their names, or `all`.
        scale: a test, hours, the paper's steps, or its steps and seeds.
        out: the folder of the results.
        where: where the runs are executed.
    """
    wanted = names() if studies == ("all",) else list(studies)
    if not wanted:
        raise ValueError(f"which one? all, {', '.join(names())}")
    command = f"tsallax reproduce {{}} --scale {scale}"
    return carry_out([load(name) for name in wanted], scale, out, where, command)
