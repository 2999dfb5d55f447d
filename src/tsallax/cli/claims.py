"""`tsallax claims`: the paper's claims C1 to C14, with a verdict on each."""

import os
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from tsallax.cli.errors import one_line
from tsallax.experiments.verdicts import HOLDS, NOT
from tsallax.report.judged import judge, measured, put, read_results, summary
from tsallax.report.scores import study_sections
from tsallax.training.cache import use_cache

COLOURS = {HOLDS: "green", NOT: "red"}


@one_line
def run(
    results: Annotated[Path, tyro.conf.Positional] = Path("results/quick"),
    write: Path | None = None,
) -> None:
    """Judge the paper's claims by the results of `tsallax reproduce`.

    Scores are on the scale from random actions (0) to solved (1). A verdict of *holds* or *does
    not* needs p <= 0.05; with few seeds it is *cannot say*.

    Args:
        results: a folder of one scale, such as results/quick.
        write: a page with places for the claims and for the figures, such as
            docs/reproduction.md.
    """
    use_cache()  # C13 and C14 are compiled
    tables, abouts = read_results(results)
    judged = judge(tables)
    if write is not None:
        folder = os.path.relpath(results, write.parent).replace(os.sep, "/")
        put(write, "claims", summary(judged))
        put(write, "figures", study_sections(tables, abouts, judged, folder))
    table = Table(title=f"The claims at scale {abouts[0]['scale']!r}", title_justify="left")
    for column in ("claim", "reading", "verdict", "what was measured"):
        table.add_column(column)
    for claim, findings in judged:
        for i, found in enumerate(findings):
            name = f"{claim.name} {claim.text}" if not i else ""
            colour = COLOURS.get(found.verdict, "dim")
            table.add_row(
                name, found.reading, f"[{colour}]{found.verdict}[/]", measured(found, "\n")
            )
        table.add_section()
    Console().print(table)
