"""The claims on the evidence of a folder of results, as a table for people."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tsallax.experiments.claims import CLAIMS, Claim, Evidence, Finding
from tsallax.experiments.results import ABOUT, Curve, read_table
from tsallax.training.folder import METRICS

NOT_RUN = "not run"


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


def summary(judged: Sequence[Judged]) -> str:
    """A row for each claim: its readings by verdict."""
    lines = ["| claim | of | verdict: under which reading |", "|---|---|---|"]
    for claim, findings in judged:
        readings: dict[str, list[str]] = {}
        for found in findings:
            readings.setdefault(_word(found), []).append(found.reading)
        unseen = len(readings.pop(NOT_RUN, []))
        words = [f"**{word}**: {'; '.join(own)}" for word, own in readings.items()]
        if unseen:
            words.append(f"**{NOT_RUN}**: {unseen} of {len(findings)} readings")
        lines.append(f"| **{claim.name}** {claim.text} | {claim.figure} | {'<br>'.join(words)} |")
    return "\n".join(lines)


def details(judged: Sequence[Judged], study: str) -> str:
    """What was measured for the claims that rest on a study; nothing if none does."""
    lines = [
        f"| {claim.name} | {found.reading} | **{found.verdict}** | {measured(found, '; ')} |"
        for claim, findings in judged
        if study in claim.figure.split(", ")
        for found in findings
        if _word(found) != NOT_RUN
    ]
    head = ["| claim | reading | verdict | what was measured |", "|---|---|---|---|"]
    return "\n".join([*head, *lines] if lines else [])


def measured(found: Finding, between: str) -> str:
    return found.missing or between.join(f"{c.text} ({c.verdict})" for c in found.checks)


def _word(found: Finding) -> str:
    return NOT_RUN if found.missing.startswith("no runs") else found.verdict


def put(page: Path, name: str, text: str) -> None:
    """Between the marks of this name in a page."""
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    before, first, rest = page.read_text().partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"{page} has no place for this: {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
