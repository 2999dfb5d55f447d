"""The verdicts on the claims as Markdown tables, from a folder of results."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tsallax.experiments.evidence import Evidence
from tsallax.experiments.judging import NOT_RUN, Finding, Judged, remark
from tsallax.experiments.readings import COLUMNS
from tsallax.experiments.results import ABOUT, METRICS, Curve, read_provenance, read_table
from tsallax.experiments.verdicts import HOLDS, LEVEL, NOT, OPEN
from tsallax.spelling import counted
from tsallax.storage.files import Directory, read_named

FIGURES = tuple(f"fig{i}" for i in range(1, 8))
HEADINGS = {
    "paper": "as in the text", "literal": "policy `literal`", "printed": "policy `printed`",
    "exact": "policy `exact`", "sb3": "choices `sb3`", "zoo": "choices `zoo`",
    "weight 1": "weight 1", "parallel": "learner `parallel`",
}  # fmt: skip
LARGEST = 1 << 24  # most bytes of a page
ERROR = (
    f"The probability that any claim from C1 to C12 gets a false verdict is at most {LEVEL:g}: "
    "the verdicts of the primary readings are corrected for one another and for every look at a "
    "growing number of seeds. Other readings are exploratory and corrected for their looks alone."
)


class Results(NamedTuple):
    """The table of one study at one scale."""

    study: str
    scale: str
    folder: Path
    curves: list[Curve]
    about: dict[str, Any]  # its provenance


def read_results(folder: Path) -> list[Results]:
    """Read every table in a folder of one scale, or of several."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    found = {}
    for path in sorted(folder.glob(f"**/{METRICS}")):
        if not (path.parent / ABOUT).exists():
            continue
        with Directory(path.parent) as own:
            about = read_provenance(own)
        key = path.parent.name, about["scale"]
        if key in found:
            raise ValueError(
                f"{path.parent} and {found[key].folder} both hold {key[0]} at scale {key[1]!r}"
            )
        found[key] = Results(*key, path.parent, read_table(path), about)
    if not found:
        raise ValueError(f"{folder} has no results: `tsallax reproduce` makes them")
    return list(found.values())


def evidence_of(results: Sequence[Results]) -> Evidence:
    tables: dict[str, dict[str, list[Curve]]] = {}
    rates: dict[str, dict[str, float]] = {}
    for own in results:
        tables.setdefault(own.scale, {})[own.study] = own.curves
        steps, hours = (own.about[name] for name in ("environment steps", "core hours"))
        rates.setdefault(own.scale, {})[own.study] = hours / max(steps, 1)
    return Evidence(tables, rates)


def summary(judged: Sequence[Judged]) -> str:
    """One line per claim: the verdict on its primary reading."""
    rows = [
        f"| **{claim.name}** {claim.text} | {_verdict(found)} | {found.reading} | {where(found)} |"
        for claim, found in ((one.claim, one.primary) for one in judged)
    ]
    head = ["| claim | verdict | primary reading | scale, seeds |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, "", ERROR])


def details(judged: Sequence[Judged], figure: str) -> str:
    """The measurements for the claims about a figure; empty if there are none.

    They are for the primary reading of each claim, and every other one that has a verdict.
    """
    findings = [
        (claim, found)
        for claim, all_readings in judged
        if figure in claim.figure.split(", ")
        for found in all_readings
        if found.reason != NOT_RUN
    ]
    shown = [(claim, f) for claim, f in findings if f.primary or f.verdict != OPEN]
    rows = [
        f"| {claim.name} | {found.reading} | {where(found)} | {_verdict(found, kind=True)} "
        f"| {'; '.join(measurements(found))} |"
        for claim, found in shown
    ]
    head = [
        "| claim | reading | scale, seeds | verdict | what was measured |",
        "|---|---|---|---|---|",
    ]
    lines = [*head, *rows] if rows else []
    if more := len(findings) - len(shown):
        lines += ["", f"{counted(more, 'further reading')}: **{OPEN}**."]
    return "\n".join(lines)


def figures_by_readings(judged: Sequence[Judged]) -> str:
    """Which reading reproduces which figure: one row per figure, one column per reading.

    A cell has the verdict on each claim about the figure; it is empty if none was run.
    """
    rows = [
        f"| {figure} | " + " | ".join(_cell(judged, figure, column) for column in COLUMNS) + " |"
        for figure in FIGURES
    ]
    head = f"| | {' | '.join(HEADINGS[column] for column in COLUMNS)} |"
    return "\n".join([head, "|---" * (len(COLUMNS) + 1) + "|", *rows])


def _cell(judged: Sequence[Judged], figure: str, column: str) -> str:
    found = {
        one.claim.name: [
            f.verdict for f in one.findings if f.column == column and f.reason != NOT_RUN
        ]
        for one in judged
        if figure in one.claim.figure.split(", ")
    }
    return "<br>".join(f"{claim} {_all(words)}" for claim, words in found.items() if words)


def _all(verdicts: Sequence[str]) -> str:
    """The joint verdict on several readings: all of them must hold."""
    return NOT if NOT in verdicts else HOLDS if set(verdicts) == {HOLDS} else OPEN


def where(found: Finding) -> str:
    """The scale of a finding, and the number of seeds of its smallest sample."""
    if found.measured is None:
        return found.scale
    seeds = found.measured.seeds
    return f"{found.scale}, {seeds} seed{'s' if seeds != 1 else ''}"


def measurements(found: Finding) -> Iterator[str]:
    """The measurement for each sentence, and the p-values of all of them together."""
    yield from found.lines
    if found.measured and not found.reason:
        p, corrected = found.p, found.corrected
        yield (
            f"together p = {p.holds:.2g} for, {p.fails:.2g} against; "
            f"corrected {corrected.holds:.2g} and {corrected.fails:.2g}"
        )


def notes(found: Finding, kind: bool = False) -> list[str]:
    """The notes on a verdict, optionally with its kind, primary or exploratory."""
    kinds = ["primary" if found.primary else "exploratory"] if kind and found.measured else []
    return [*kinds, *filter(None, [remark(found)])]


def _verdict(found: Finding, kind: bool = False) -> str:
    more = "; ".join(notes(found, kind))
    return f"**{found.verdict}**" + (f" ({more})" if more else "")


def put(page: Path, name: str, text: str) -> None:
    """Replace the text between the marks of this name in a page."""
    begin, end = (f"<!-- {name}: {word} -->" for word in ("begin", "end"))
    before, first, rest = read_named(page, LARGEST).partition(begin)
    _, last, after = rest.partition(end)
    if not (first and last):
        raise ValueError(f"{page} has no place for this: {begin} and {end}")
    with Directory(page.parent) as folder:
        folder.write(page.name, f"{before}{begin}\n\n{text}\n\n{end}{after}".encode())
