"""Runs and results as one self-contained HTML file.

The style and the scripts are inserted into the frame, `page.html`. The data is embedded as JSON,
and the scripts show it as text and SVG. The Content-Security-Policy in the frame allows only these
scripts and this style: no other script, no request, no markup made of strings.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from itertools import chain
from typing import Any

from tsallax import __version__
from tsallax.experiments.evidence import Evidence
from tsallax.experiments.judging import NOT_RUN, judge
from tsallax.experiments.study import names as paper_studies
from tsallax.report.claims_table import measurements, notes
from tsallax.report.curves import PALETTE
from tsallax.report.page.gather import Found, Results, Run, text
from tsallax.report.page.summary import SHOWN, of_table, settings_of, summarise

MADE = ("title", "scale", "written", "done", "jobs", "environment steps", "core hours", "machine")
ENDS = {"running": "unfinished", "stopped": "stopped early", "failed": "failed"}


def html(found: Found) -> str:
    """The page as HTML."""
    files = ("page.html", "page.css", "draw.js", "page.js", "sections.js")
    here = resources.files("tsallax.report.page")
    frame, style, *scripts = ((here / name).read_text("utf-8") for name in files)
    script = "\n".join(scripts)
    parts = {
        "style": style,
        "script": script,
        "style-hash": _digest(style),
        "script-hash": _digest(script),
        "data": as_json(content(found)),
    }
    before, *rest = frame.split("{{")
    pieces = (piece.partition("}}") for piece in rest)
    return before + "".join(parts[name] + after for name, _, after in pieces)


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def as_json(value: Any) -> str:
    """JSON in plain ASCII, without anything that HTML interprets as markup."""
    words = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return words.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content(found: Found) -> dict[str, Any]:
    """The data that the page shows."""
    if not any(run.cells for run in found.runs) and not found.results:
        where = "; ".join(f"{name}: {what}" for name, what in troubles(found)[:3])
        raise ValueError(f"nothing to report: {where}"[:400])
    settings, twice = settings_of(found.runs)
    sets = [("runs", "all runs", settings)] if settings else []
    for own in found.results:
        title = f"{own.name}: {text(own.about['title'])}"
        sets.append((own.name, title, of_table(own.curves)))
    total = sum(len(own) for *_, own in sets)
    return {
        "version": __version__,
        "palette": PALETTE,
        "metrics": list(SHOWN.items()),
        "sets": [{"name": n, "title": t, **summarise(own, total)} for n, t, own in sets],
        "problems": [*troubles(found), *twice],
        "claims": claims(found.results),
        "clips": [clip._asdict() for clip in found.clips],
        "studies": [
            [own.name, *(text(own.about.get(field)) for field in MADE)] for own in found.results
        ],
        "made": MADE,
        **configurations(found.runs),
    }


def troubles(found: Found) -> list[tuple[str, str]]:
    """Everything that is incomplete or damaged, run by run."""
    of_runs = [(run.name, what) for run in found.runs for what in _faults(run)]
    of_studies = [(own.name, what) for own in found.results for what in _missing(own.about)]
    return [*found.problems, *of_runs, *of_studies]


def _faults(run: Run) -> list[str]:
    if run.status == "done":
        return run.notes
    last = max((int(cell.steps[-1]) for cell in run.cells), default=0)
    return [f"{ENDS[run.status]} at step {last:,} of {run.asked:,}", *run.notes]


def _missing(about: dict[str, Any]) -> list[str]:
    failed, unfinished = about.get("failed"), about.get("unfinished")
    found = []
    if isinstance(failed, dict):
        found += [f"{text(name)} failed: {text(why)}" for name, why in failed.items()]
    if unfinished and isinstance(unfinished, list):
        first = ", ".join(text(name) for name in unfinished[:3])
        more = ", ..." if len(unfinished) > 3 else ""
        found.append(f"{len(unfinished)} runs unfinished: {first}{more}")
    return found


def claims(results: Sequence[Results]) -> list[dict[str, Any]]:
    """One table per scale that has runs of the paper's figures.

    Random play is the same at every scale: its runs count for all of them.
    """
    scales: dict[str, dict[str, Any]] = {}
    for own in results:
        study = text(own.about["study"])
        if study in paper_studies():
            scales.setdefault(text(own.about["scale"]), {})[study] = own.curves
    random = [curve for tables in scales.values() for curve in tables.get("random", ())]
    return [
        {
            "scale": scale,
            "rows": [
                {
                    "claim": claim.name,
                    "text": f"{claim.text} ({claim.figure})",
                    "reading": one.reading,
                    "verdict": one.verdict,
                    "missing": " ".join(one.lines) if one.reason == NOT_RUN else "",
                    "checks": [*notes(one, kind=True), *measurements(one)],
                }
                for claim, findings in judge(Evidence({scale: {**tables, "random": random}}))
                for one in findings
            ],
        }
        for scale, tables in scales.items()
    ]


def configurations(runs: Sequence[Run]) -> dict[str, Any]:
    """The options common to all runs, those that differ, and one row per run."""
    names = list(dict.fromkeys(chain.from_iterable(run.fields for run in runs)))
    values = {name: [run.fields.get(name, "") for run in runs] for name in names}
    differ = [name for name in names if len(set(values[name])) > 1]
    return {
        "common": [(name, values[name][0]) for name in names if name not in differ],
        "differ": [
            (name, [(v, values[name].count(v)) for v in dict.fromkeys(values[name])])
            for name in differ
        ],
        "runs": [
            {
                "name": run.name,
                "status": ENDS.get(run.status, run.status),
                "notes": run.notes,
                "seeds": len(run.cells),
                "values": [run.fields.get(name, "") for name in differ],
            }
            for run in runs
        ],
    }
