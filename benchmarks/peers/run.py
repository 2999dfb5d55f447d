"""tsallax and its peers on the same work, in one run; wants a quiet machine.

    make bench-peers

Everyone is a process of its own, pinned to its cores. All are set up, then take short turns, one
at a time, in an order drawn anew for each round; a ratio is taken within a round. What is found
goes to results/peers.json, and from there into docs/performance.md.
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
from works import WORKS

RESULTS = HERE.parent / "results/peers.json"
PAGE, FIGURE = ROOT / "docs/performance.md", ROOT / "docs/figures/peers.png"
SHORT = {"pong": 5_000}  # replay in a quick run


def main(
    works: str = ",".join((*WORKS, "launch")),
    cores: str = ",".join(SETTINGS),
    repeats: int = 5,
    seconds: float = 4.0,
    quick: bool = False,
    draw_only: bool = False,
) -> None:
    """Measure, print, and write the page and the picture.

    Args:
        works: of gym, breakout, seaquest, pong; launch is `tsallax train` to its first step.
        cores: of one, two, and seeds, which compares 8 seeds on one core and on two.
        repeats: rounds.
        seconds: of a turn, about; a compiled program has its own shortest turn.
        quick: one round of short turns, to try it; the page and its numbers stay.
        draw_only: no measuring: the page and the picture from the numbers of the last run.
    """
    target = PEERS / "quick.json" if quick else RESULTS
    known = json.loads(target.read_text()) if target.exists() else {"works": {}}
    if not draw_only:
        wanted = chosen(works, (*WORKS, "launch")), chosen(cores, SETTINGS)
        if quick:
            repeats, seconds = 1, 1.0
        known["about"] = about(repeats, seconds)
        measure(known, *wanted, repeats, seconds, quick, target)
    if not any(known["works"].values()):
        raise SystemExit("no race was measured: there is nothing to draw")
    text = markdown(known)
    print(text)
    from picture import picture

    picture(known, PEERS / "quick.png" if quick else FIGURE)
    if not quick:
        put(PAGE, text)


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
    """Into `known`, and to disk after each race: what else is there stays."""
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


def about(repeats: int, seconds: float) -> str:
    """One line: machine and versions."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((x.partition(": ")[2] for x in lines if x.startswith("model name")), "unknown")
    pins = {
        name: version
        for path in sorted(HERE.glob("*.txt"))
        for name, _, version in (line.partition("==") for line in path.read_text().split())
    }
    names = ("stable-baselines3", "sb3-contrib", "sbx-rl", "rejax", "torch", "jax")
    versions = ", ".join(f"{name} {pins[name]}" for name in names)
    return (
        f"{len(os.sched_getaffinity(0))} cores ({model}), Python {platform.python_version()}, "
        f"{versions}. Turns of about {seconds:g} s, {repeats} rounds: the median, and the least "
        "to the largest in brackets."
    )


if __name__ == "__main__":
    tyro.cli(main)
