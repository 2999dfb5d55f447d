"""The claims on the evidence of a folder of results, as a table for people."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tsallax.experiments.claims import CLAIMS, Claim, Evidence, Finding
from tsallax.experiments.results import ABOUT, Curve, read_table
from tsallax.training.folder import METRICS


class Judged(NamedTuple):
    claim: Claim
    findings: list[Finding]


def read_results(folder: Path) -> tuple[dict[str, list[Curve]], list[dict]]:
    """The tables of a folder by study, and how they came to be; of one scale only."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    found = sorted(path.parent for path in folder.glob(f"**/{METRICS}") if _about(path).exists())
    if not found:
        raise ValueError(f"{folder} has no results: `tsallax reproduce` makes them")
    abouts = [json.loads(_about(path / METRICS).read_text()) for path in found]
    scales = sorted({about["scale"] for about in abouts})
    if len(scales) > 1:
        raise ValueError(
            f"{folder} mixes the scales {', '.join(scales)}, which say different things: "
            f"name one, as in {folder / scales[0]}"
        )
    return {path.name: read_table(path / METRICS) for path in found}, abouts


def _about(table: Path) -> Path:
    return table.parent / ABOUT


def judge(tables: Mapping[str, Sequence[Curve]]) -> list[Judged]:
    evidence = Evidence(tables)
    return [Judged(claim, list(claim.judge(evidence))) for claim in CLAIMS]


def markdown(judged: Sequence[Judged]) -> str:
    """A row for each claim and reading."""

    def lines() -> Iterator[str]:
        yield "| claim | reading | verdict | what was measured |"
        yield "|---|---|---|---|"
        for claim, findings in judged:
            for i, found in enumerate(findings):
                name = f"**{claim.name}** ({claim.figure}) {claim.text}" if not i else ""
                words = found.missing or "; ".join(f"{c.text} ({c.verdict})" for c in found.checks)
                yield f"| {name} | {found.reading} | **{found.verdict}** | {words} |"

    return "\n".join(lines())


def put(page: Path, name: str, text: str) -> None:
    """Between the marks of this name in a page."""
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    before, first, rest = page.read_text().partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"{page} has no place for this: {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
