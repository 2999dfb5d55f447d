"""Writes the results as Markdown into the page of the docs."""

from pathlib import Path
from statistics import median
from typing import Any

from contenders import CONTENDERS, CROWDS, DQN, TAL, Contender
from works import WORKS

MARKS = BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
CORES = {"one": "one core", "two": "two cores"}


def spread(numbers: list[float], form: str) -> str:
    """The median, least and largest."""
    return f"{median(numbers):{form}} ({min(numbers):{form}} to {max(numbers):{form}})"


def ratios(over: dict[str, Any], under: dict[str, Any]) -> list[float]:
    """The ratios of the rates, each within a round."""
    return [a / b for a, b in zip(over["rates"], under["rates"], strict=True)]


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def row_of(one: Contender, found: dict[str, Any], work: str, wants: bool) -> list[str]:
    own = found[one.name]
    against = [
        spread(ratios(found[name], own), ".2f") if name in one.against and name in found else ""
        for name in (TAL, DQN)
    ]
    wanted = [f"{name.split()[1]} {x:.2f}" for w, name, x in one.wanted if w == work and wants]
    numbers = (f"{own['megabytes']:,}", f"{own['compile']:.1f}", f"{own['first_update']:.1f}")
    return [one.name, spread(own["rates"], ",.0f"), *against, "".join(wanted), *numbers]


def race_table(work: str, setting: str, found: dict[str, Any]) -> list[str]:
    header = ["", "steps per second", "TAL / it", "DQN / it", "wanted, at least"]
    header += ["MB", "compiling, s", "first update, s"]
    rows = [row_of(c, found, work, setting == "one") for c in CONTENDERS if c.name in found]
    return ["", f"**{WORKS[work].title}, {CORES[setting]}**", "", *table(header, rows)]


def crowd_table(results: dict[str, Any]) -> list[str]:
    rows = []
    for work, settings in results["works"].items():
        found = settings.get("seeds", {})
        if not all(name in found for name in CROWDS):
            continue
        one, split = (found[name] for name in CROWDS)
        rates = [spread(x["rates"], ",.0f") for x in (one, split)]
        size = f"{one['megabytes']:,}, {split['megabytes']:,}"
        rows.append([WORKS[work].title, *rates, spread(ratios(split, one), ".2f"), "1.90", size])
    if not rows:
        return []
    header = ["", *CROWDS, "ratio", "wanted, at least", "MB"]
    return [
        "",
        "**Several seeds of TAL**, steps per second of all together",
        "",
        *table(header, rows),
    ]


def launch_table(launch: dict[str, dict[str, list[float]]]) -> list[str]:
    header = [
        "`tsallax train CartPole-v1 --preset paper`, s",
        "empty compile cache",
        "full compile cache",
    ]
    rows = [
        [f"from the start to the first {event}", *(spread(x, ".1f") for x in found.values())]
        for event, found in launch.items()
    ]
    return ["", *table(header, [*rows, ["wanted, to the first step", "under 10", "under 4"]])]


def markdown(results: dict[str, Any]) -> str:
    """The generated part of the page."""
    works = [work for work in WORKS if work in results["works"]]
    results = {**results, "works": {work: results["works"][work] for work in works}}
    lines = [results["about"], "", "![Steps per second of everyone](figures/peers.png)"]
    for work, settings in results["works"].items():
        for setting in CORES:
            if settings.get(setting):
                lines += race_table(work, setting, settings[setting])
    lines += crowd_table(results)
    if results.get("launch"):
        lines += launch_table(results["launch"])
    lines += ["", "What is not the same work:", ""]
    seen = {name for work in results["works"].values() for s in work.values() for name in s}
    lines += [f"- *{c.name}*: {c.differs}." for c in CONTENDERS if c.differs and c.name in seen]
    return "\n".join(lines)


def put(page: Path, text: str, marks: tuple[str, str] = MARKS) -> None:
    """Replace the text between the two marks; the rest of the page is unchanged."""
    before, begin, rest = page.read_text().partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise ValueError(f"{page.name} has no {marks[0]} followed by {marks[1]}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
