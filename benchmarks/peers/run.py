"""tsallax and its peers on the same work, in one run; needs an otherwise idle machine.

    make bench-peers

Each contender is a separate process, pinned to its cores. All are set up, then take short turns,
one at a time, in a random order for each round; ratios are taken within a round. The results are
written to results/peers.json, and from there into docs/performance.md.
"""

import json
import os
import platform
from pathlib import Path
from typing import Any

import tyro
from contenders import SETTINGS
from launch import launch
from page import markdown, put
from race import HERE, PEERS, ROOT, race, say
from solve import Checkouts, solve
from solve_page import MARKS as SOLVE_MARKS
from solve_page import solve_section
from tasks import TASKS
from works import WORKS

RESULTS = HERE.parent / "results/peers.json"
PAGE, FIGURE = ROOT / "docs/performance.md", ROOT / "docs/figures/peers.png"
SHORT = {"pong": 5_000}  # replay in a quick run
QUICK_LIMIT = 60.0  # seconds to solve a task in a quick run
PARTS = (*WORKS, "launch", "solve")


def main(
    works: str = ",".join((*WORKS, "launch")),
    cores: str = ",".join(SETTINGS),
    repeats: int = 5,
    seconds: float = 4.0,
    quick: bool = False,
    draw_only: bool = False,
    tasks: str = ",".join(TASKS),
    limit: float | None = None,
    cleanrl: Path | None = None,
    purejaxql: Path | None = None,
) -> None:
    """Measure, print, and write the page and the picture.

    Args:
        works: of gym, breakout, seaquest, pong; launch is `tsallax train` to its first step; solve
            is the time until a task is solved, which takes hours and is measured if named.
        cores: of one, two, and seeds, which compares 8 seeds on one core and on two.
        repeats: rounds; for solve the seeds 0, 1, ...
        seconds: of a turn, about; a compiled program has its own shortest turn.
        quick: one round of short turns, to try it; the page and its numbers stay.
        draw_only: no measuring: the page and the picture from the numbers of the last run.
        tasks: of solve: cartpole, acrobot, lunarlander, breakout.
        limit: of processor time in seconds to solve a task, instead of its own.
        cleanrl: for solve, a checkout of github.com/vwxyzjn/cleanrl; left out if not given.
        purejaxql: for solve, a checkout of github.com/mttga/purejaxql; left out if not given.
    """
    target = PEERS / "quick.json" if quick else RESULTS
    known = json.loads(target.read_text()) if target.exists() else {"works": {}}
    if not draw_only:
        wanted = chosen(works, PARTS), chosen(cores, SETTINGS)
        to_solve = chosen(tasks, tuple(TASKS)) if "solve" in wanted[0] else []
        if quick:
            repeats, seconds = 1, 1.0
        if set(wanted[0]) - {"solve"}:
            known["about"] = about(repeats, seconds)
        measure(known, *wanted, repeats, seconds, quick, target)
        checkouts: Checkouts = {"cleanrl": cleanrl, "purejaxql": purejaxql}
        for task in to_solve:
            most = QUICK_LIMIT if quick else limit
            measure_solving(known, task, repeats, checkouts, most, target)
    if not any(known["works"].values()) and not known.get("solve"):
        raise SystemExit("nothing was measured: there is nothing to draw")
    if any(known["works"].values()):
        from picture import picture

        print(text := markdown(known))
        picture(known, PEERS / "quick.png" if quick else FIGURE)
        if not quick:
            put(PAGE, text)
    if known.get("solve"):
        print(text := solve_section(known["solve"]))
        if not quick:
            put(PAGE, text, SOLVE_MARKS)


def chosen(words: str, known: tuple[str, ...]) -> list[str]:
    found = words.split(",")
    if odd := set(found) - set(known):
        raise SystemExit(f"there is no {', '.join(sorted(odd))}: one of {', '.join(known)}")
    return found


def measure(
    known: dict[str, Any],
    works: list[str],
    settings: list[str],
    repeats: int,
    seconds: float,
    quick: bool,
    target: Path,
) -> None:
    """Measure into `known`, and write it to disk after each race; other results are kept."""
    cores = tuple(sorted(os.sched_getaffinity(0)))
    target.parent.mkdir(parents=True, exist_ok=True)
    for work in works:
        for setting in settings if work in WORKS else ():
            if setting != "one" and len(cores) < 2:
                say(f"{work}, {setting}: needs two cores")
                continue
            buffer = SHORT.get(work) if quick else None
            found = race(work, setting, cores, repeats, seconds, buffer)
            known["works"].setdefault(work, {})[setting] = found
            target.write_text(json.dumps(known, indent=1) + "\n")
        if work == "launch":
            known["launch"] = launch(cores[:2], repeats)
            target.write_text(json.dumps(known, indent=1) + "\n")


def measure_solving(
    known: dict[str, Any],
    task: str,
    repeats: int,
    checkouts: Checkouts,
    limit: float | None,
    target: Path,
) -> None:
    """Measure into `known`, and write it to disk after each attempt; other tasks are kept."""
    part = known.setdefault("solve", {"tasks": {}, "machines": {}})

    def keep(found: dict[str, Any]) -> None:
        part["tasks"][task], part["machines"][task] = found, machine()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(known, indent=1) + "\n")

    core = min(os.sched_getaffinity(0))
    solve(task, core, repeats, checkouts, keep, limit)


def about(repeats: int, seconds: float) -> str:
    """One line: machine, versions and turns."""
    return (
        f"{machine()}. Turns of about {seconds:g} s, {repeats} rounds: the median, and the least "
        "to the largest in brackets."
    )


def machine() -> str:
    """Describes the machine, with the versions of the packages."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((x.partition(": ")[2] for x in lines if x.startswith("model name")), "unknown")
    pins = {
        name: version
        for path in sorted(HERE.glob("*.txt"))
        for name, _, version in (line.partition("==") for line in path.read_text().split())
    }
    names = ("stable-baselines3", "sb3-contrib", "sbx-rl", "rejax", "torch", "jax")
    versions = ", ".join(f"{name} {pins[name]}" for name in names)
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores ({model}), Python {platform.python_version()}, {versions}"


if __name__ == "__main__":
    tyro.cli(main)
