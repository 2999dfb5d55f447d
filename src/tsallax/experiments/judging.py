"""The verdict on every reading of every claim, from the tables of results."""

from collections.abc import Sequence
from typing import NamedTuple

from tsallax.experiments.claims import CLAIMS, Claim, primary_readings
from tsallax.experiments.evidence import Evidence, Measured, Missing, NotRun
from tsallax.experiments.exact_tests import LEARNED, PValues
from tsallax.experiments.readings import Reading
from tsallax.experiments.verdicts import (
    FAMILY,
    FAR,
    FEWEST_SEEDS,
    GROUP,
    HOLDS,
    MOST_SEEDS,
    NOT,
    OPEN,
    conjunction,
    correct_for_claims,
    correction,
    decide,
    depends_on_one_run,
    scale,
    seeds_to_decide,
    share,
)

NOT_RUN = "not run"
LONGER = 5  # times the steps of the scale `quick` are the paper's on CartPole, Acrobot, LunarLander
UNDECIDED = PValues(1.0, 1.0)


class Finding(NamedTuple):
    """A claim under one reading: the measurements, and the verdict."""

    reading: str
    verdict: str = OPEN
    reason: str = ""  # why nothing could be tested, if so
    scale: str = ""
    measured: Measured | None = None
    p: PValues = UNDECIDED  # of the whole reading, before corrections
    corrected: PValues = UNDECIDED
    primary: bool = False
    column: str = ""
    lines: tuple[str, ...] = ()  # the measurements, in words


class Judged(NamedTuple):
    claim: Claim
    findings: list[Finding]

    @property
    def primary(self) -> Finding:
        """The finding that decides the claim; for an identity, the only one."""
        return next((f for f in self.findings if f.primary), self.findings[0])


def judge(evidence: Evidence, claims: Sequence[Claim] | None = None) -> list[Judged]:
    """Judge every claim, or those given; primary readings are corrected for the other claims.

    All claims with readings share the level, whether they have been run or not, so that no verdict
    depends on which others have been.
    """
    claims = CLAIMS if claims is None else claims
    primary = primary_readings()
    examined = [
        [examine(r, evidence, r.name == primary[claim.name]) for r in claim.readings]
        for claim in claims
    ]
    own = [finding.corrected for found in examined for finding in found if finding.primary]
    family = iter(correct_for_claims([*own, *[UNDECIDED] * (FAMILY - len(own))]))
    judged = []
    for claim, found in zip(claims, examined, strict=True):
        final = [f._replace(corrected=next(family)) if f.primary else f for f in found]
        decided = [f._replace(verdict=decide(f.corrected)) for f in final]
        judged.append(Judged(claim, decided or [_identity(claim)]))
    return judged


def examine(reading: Reading, evidence: Evidence, primary: bool) -> Finding:
    """The finding of a reading at the longest scale that has it, corrected for its looks."""
    name, found = longest(reading, evidence)
    finding = Finding(reading.name, scale=name, primary=primary, column=reading.column)
    if isinstance(found, NotRun):
        return finding._replace(reason=NOT_RUN, lines=(str(found),))
    if isinstance(found, Missing):
        return finding._replace(reason=str(found))
    parts = [sentence.p_values() for sentence in found.sentences]
    p = conjunction(parts)
    reason = _too_little(found)
    lines = [
        f"{sentence.measured} (p = {part.holds:.2g} for, {part.fails:.2g} against)"
        for sentence, part in zip(found.sentences, parts, strict=True)
    ]
    return finding._replace(
        measured=found,
        p=p,
        reason=reason,
        corrected=UNDECIDED if reason else scale(p, 1 / share(found.seeds, primary)),
        lines=(*lines, *found.notes),
    )


def longest(reading: Reading, evidence: Evidence) -> tuple[str, Measured | Missing]:
    """The scale with the longest runs of a reading, among those with enough seeds if there are any.

    The choice depends on the numbers of steps and of seeds that did not diverge, not on scores.
    """
    measured, missing = [], []
    for at in evidence.scales:
        try:
            measured.append((at.name, reading.measure(at)))
        except Missing as why:
            missing.append((at.name, why))
    if measured:
        return max(measured, key=lambda m: (m[1].seeds >= FEWEST_SEEDS, m[1].steps, m[1].seeds))
    # A scale that has the runs is more specific about what is missing than one that does not.
    told = [(name, why) for name, why in missing if not isinstance(why, NotRun)]
    return (*told, *missing, ("", NotRun("no results")))[0]


def _too_little(found: Measured) -> str:
    """Why these runs do not suffice for a verdict; empty if they do."""
    name, score = found.best
    if found.seeds < FEWEST_SEEDS:
        hours = (FEWEST_SEEDS - found.seeds) * found.hours if score > LEARNED else 0.0
        return f"too few seeds: {found.seeds}, and {FEWEST_SEEDS} are needed{_hours(hours)}"
    if score <= LEARNED:
        seeds, hours = 2 * GROUP, 2 * GROUP * LONGER * found.hours
        cost = f"; {seeds} seeds of {LONGER * found.steps:,} steps take {hours:.2g} core hours"
        short = f"too short: the best, {name}, has come {score:.2f} of the way to solved"
        return short + (cost if hours else "")
    return ""


def _hours(more: float) -> str:
    number = f"{more:,.0f}" if more >= 100 else f"{more:.2g}"
    return f", {number} core hours more" if more else ""


def _needed(found: Measured, primary: bool) -> str:
    """The number of seeds, and the additional core hours, that a verdict would need."""
    seeds = seeds_to_decide(found.sentences, primary, found.seeds)
    if seeds is None:
        return f"more than {FAR} seeds needed"
    planned = "" if seeds <= MOST_SEEDS else f", of which {MOST_SEEDS} are planned"
    return f"about {seeds} seeds needed{planned}{_hours((seeds - found.seeds) * found.hours)}"


def _identity(claim: Claim) -> Finding:
    assert claim.identity is not None
    found = claim.identity()
    verdict = HOLDS if all(identity.holds for identity in found) else NOT
    lines = tuple(f"{identity.text}: within {identity.gap:.0e}" for identity in found)
    return Finding("tabular MDPs, float64", verdict, lines=lines)


def remark(finding: Finding) -> str:
    """A remark on a verdict: why there is none, or what it depends on."""
    found = finding.measured
    if finding.reason or found is None:
        return finding.reason
    if finding.verdict == OPEN:
        return f"not significant; {_needed(found, finding.primary)}"
    factor = correction(found.seeds, finding.primary)
    return "depends on one run" if depends_on_one_run(found.sentences, factor) else ""
