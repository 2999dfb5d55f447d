"""The README alone leads from an empty folder to a solved agent, and its numbers are measured."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ROWS = {"CartPole": "CartPole-v1", "LunarLander": "LunarLander-v3", "MountainCar": "MountainCar-v0"}


def commands() -> list[list[str]]:
    """The lines of the first shell block, in words and without their comments."""
    block = re.search(r"^```sh\n(.*?)^```$", README, re.M | re.S)
    assert block is not None
    return [shlex.split(line, comments=True) for line in block[1].splitlines()]


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,.]*\d|\d", text.replace("2M", "2,000,000")))


def measured(name: str) -> str:
    """What the pages of measurements say of an environment of the README's table."""
    if name in ROWS:
        page = (ROOT / "docs" / "what-works.md").read_text()
        (row,) = re.findall(rf"^\| `{ROWS[name]}` .*$", page, re.M)
        return row
    table = (ROOT / "docs" / "parallel.md").read_text().partition("### MinAtar")[2]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    column = rows[0].index(name.removeprefix("MinAtar ").replace(" ", ""))
    return " ".join(row[column] for row in rows if row[0] == "10M" or "authors' DQN" in row[0])


def test_the_table_has_measured_numbers():
    table = re.findall(
        r"^\| ((?:MinAtar )?[A-Z][\w ]+) \| ([\d,]+) \| (.+) \| (.+) \|$", README, re.M
    )
    assert len(table) == 5
    for name, steps, reached, compared in table:
        assert numbers(f"{reached} {compared}") <= numbers(measured(name)), name
        assert steps == "10,000,000" if "MinAtar" in name else steps in measured(name)


@pytest.mark.slow
def test_from_an_empty_folder_to_a_solved_agent_its_video_and_its_report(tmp_path):
    """Every command as it is printed; `pip install .` is run by test_package.py."""
    install, *rest = commands()
    assert install == ["pip", "install", "."]
    assert [words[1] for words in rest] == ["train", "play", "report", "play"]
    printed = []
    own = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for _, *words in rest:
        command = [sys.executable, "-m", "tsallax", *words]
        done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), words
        printed.append(done.stdout)
    run = tmp_path / "runs" / "first"
    about = json.loads((run / "run.json").read_text())
    assert about["status"] == "done"
    assert len(about["best"]["return"]) == 6
    assert min(about["best"]["return"]) >= 475
    assert (run / "curves.png").exists()
    assert [path.suffix in (".mp4", ".gif") for path in run.glob("play.*")] == [True]
    assert printed[2].startswith("1 run, ")  # and nothing that is amiss before it
    page = (tmp_path / "report.html").read_text()
    assert re.search(r'"first/play\.(mp4|gif)","kind":"(video/mp4|image/gif)"', page)
    assert len(list(tmp_path.glob("MinAtar-SpaceInvaders.*"))) == 1
