"""`tsallax export`: a trained policy as an ONNX file."""

from pathlib import Path
from typing import Annotated

import tyro

from tsallax.cli.common import which_run
from tsallax.spelling import printable


def run(
    folder: Annotated[
        Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]", help_behavior_hint=" ")
    ] = None,
    /,
    out: Path = Path("policy.onnx"),
    cell: int | None = None,
    best: bool = False,
    agent: str = "",
    env: str = "",
) -> int:
    """Write a trained policy as ONNX: from observations to action values and pi.

    Args:
        folder: a run's folder.
        out: the file.
        cell: which of the `cells` of its run.json; if not given, the best one.
        best: use the weights with the best evaluation during training, not the last ones.
        agent: a trained agent that ships with tsallax, instead of RUN; see `tsallax agents`.
        env: the run's own environment, if it is `package:Name`, to allow that import.
    """
    from tsallax.api import load

    path, best = which_run(folder, agent, best)
    difference = load(path, cell, env=env, best=best).to_onnx(out)
    print(f"policy {printable(out)}")
    print(f"checked: onnxruntime's pi differs from ours by at most {difference:.1g}")
    return 0
