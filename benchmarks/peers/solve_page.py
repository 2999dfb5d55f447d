"""The time to solve as Markdown."""

from math import inf
from statistics import median
from typing import Any

from page import table
from solvers import COLD, SOLVERS
from tasks import TASKS

MARKS = "<!-- solve: begin -->", "<!-- solve: end -->"
ABOUT = (
    "Processor time on one core: the median of the seeds, and the least to the largest in "
    "brackets. The machine of each task is named below its table."
)
Attempts = list[dict[str, Any]]


def times(attempts: Attempts) -> list[float]:
    """Seconds per seed; infinite if the task was not solved."""
    return [a["seconds"] if a["solved"] else inf for a in attempts]


def spread(numbers: list[float], form: str) -> str:
    """The median, least and largest."""
    least, middle, most = (
        f"{n:{form}}" if n < inf else "never" for n in (min(numbers), median(numbers), max(numbers))
    )
    return f"{middle} ({least} to {most})"


def seconds(attempts: Attempts) -> str:
    found = times(attempts)
    if median(found) < inf:
        return spread(found, ",.0f")
    if limit := reached_limit(attempts):
        return f"not within {limit:,.0f}"
    return f"not in its {max(a['steps'] for a in attempts if not a['solved']):,} steps"


def reached_limit(attempts: Attempts) -> float:
    """The time limit that ended one of them; 0 if all took all their steps."""
    ended = (a["limit"] for a in attempts if not a["solved"] and a["seconds"] >= a["limit"])
    return next(ended, 0.0)


def ratio(attempts: Attempts, cold: Attempts) -> str:
    """The ratio of the times, each within a seed; a bound if most fail at the limit."""
    own = {a["seed"]: t for a, t in zip(attempts, times(attempts), strict=True)}
    under = {a["seed"]: t for a, t in zip(cold, times(cold), strict=True) if t < inf}
    found = [own[seed] / t for seed, t in under.items() if seed in own]
    if not found:
        return ""
    if median(found) < inf:
        return spread(found, ".2f")
    limit = reached_limit(attempts)
    return f"over {limit / median(under.values()):.1f}" if limit else ""


def task_table(title: str, found: dict[str, Attempts]) -> list[str]:
    header = ["", "seconds", f"times {COLD}", "solved", "steps, in thousands"]
    rows = []
    for name in (n for s in SOLVERS for n in (s.name, s.again) if n in found):
        attempts = found[name]
        solved = [a for a in attempts if a["solved"]]
        against = ratio(attempts, found.get(COLD, [])) if name != COLD else ""
        steps = f"{median(a['steps'] for a in solved) / 1000:,.0f}" if solved else ""
        won = f"{len(solved)} of {len(attempts)}"
        rows.append([name, seconds(attempts), against, won, steps])
    return ["", f"**{title}**", "", *table(header, rows)]


def solve_section(results: dict[str, Any]) -> str:
    """The generated part of the page."""
    lines = [ABOUT]
    for name, task in TASKS.items():
        if found := results["tasks"].get(name):
            lines += task_table(task.title, found)
            lines += ["", f"*{results['machines'][name]}.*"]
    seen = {name for found in results["tasks"].values() for name in found}
    lines += ["", "Who did what:", ""]
    lines += [
        f"- *{s.name.removesuffix(', nothing kept')}*: {s.how}." for s in SOLVERS if s.name in seen
    ]
    absent = [s.name for s in SOLVERS if s.name not in seen]
    lines += [f"- Not measured: {', '.join(absent)}."] if absent else []
    return "\n".join(lines)
