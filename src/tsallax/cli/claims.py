"""`tsallax claims`: the paper's claims C1 to C14, with a verdict on each."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from tsallax._jaxlib import use_cache
from tsallax.cli.common import unmarked
from tsallax.experiments.judging import NOT_RUN, Finding, Judged, judge
from tsallax.experiments.verdicts import HOLDS, NOT
from tsallax.report.claims_table import (
    ERROR,
    evidence_of,
    figures_by_readings,
    measurements,
    notes,
    put,
    read_results,
    summary,
    where,
)
from tsallax.report.scores import study_sections

COLOURS = {HOLDS: "green", NOT: "red"}
WIDE = 250  # columns of output that is not on a terminal: one line per claim


def run(
    results: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="[RESULTS]")] = Path(
        "results"
    ),
    details: bool = False,
    write: Path | None = None,
) -> None:
    """Judge the paper's claims by the results of `tsallax reproduce`.

    One line per claim: its verdict under the reading that the text suggests. Scores are on the
    scale from random actions (0) to solved (1). If there are several scales, every reading is
    judged at the longest one that has it.

    Args:
        results: a folder of results of one scale or of several.
        details: show every reading of every claim, with its measurements.
        write: a page with places for the claims, the readings and the figures, such as
            docs/reproduction.md.
    """
    use_cache()  # C13 and C14 are compiled
    found = read_results(results)
    judged = judge(evidence_of(found))
    if write is not None:
        put(write, "claims", summary(judged))
        put(write, "readings", figures_by_readings(judged))
        put(write, "figures", study_sections(found, judged, write.parent))
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=WIDE)
    console.print(_summary(judged))
    console.print(ERROR, highlight=False)
    if details:
        console.print(_details(judged))


def _summary(judged: Sequence[Judged]) -> Table:
    table = Table(title="The claims under their primary readings", title_justify="left")
    for column in ("claim", "verdict", "primary reading", "scale, seeds"):
        table.add_column(column)
    for one in judged:
        found = one.primary
        table.add_row(
            f"{one.claim.name} {one.claim.text}",
            _verdict(found),
            unmarked(found.reading),
            unmarked(where(found)),
        )
    return table


def _details(judged: Sequence[Judged]) -> Table:
    table = Table(title="All readings", title_justify="left")
    for column in ("claim", "reading", "scale, seeds", "verdict", "what was measured"):
        table.add_column(column)
    for claim, findings in judged:
        run = [found for found in findings if found.reason != NOT_RUN]
        for found in run:
            measured = "\n".join(map(unmarked, measurements(found)))
            place, verdict = unmarked(where(found)), _verdict(found, kind=True)
            table.add_row(claim.name, unmarked(found.reading), place, verdict, measured)
        if len(run) < len(findings):
            unseen = f"{len(findings) - len(run)} of {len(findings)} readings"
            table.add_row(claim.name, unseen, "", f"[dim]{NOT_RUN}[/]", "")
        table.add_section()
    return table


def _verdict(found: Finding, kind: bool = False) -> str:
    more = unmarked("; ".join(notes(found, kind)))
    colour = COLOURS.get(found.verdict, "dim")
    return f"[{colour}]{found.verdict}[/]" + (f": {more}" if more else "")
