"""The README alone leads from an empty folder to a solved agent, and its numbers are measured."""

import json
import os
import re
import shlex
import shutil
import subprocess
import venv
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


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> dict[str, str]:
    """The variables of a new environment, into which the first command installs the library.

    In a copy of the files that a clone has: building leaves folders beside the sources. The tested
    versions are named by a variable, so that the command stays as it is printed.
    """
    copy, env = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("env")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no clone: which files it would have is not known")
    for name in filter(re.compile(r"src/|[^/]+$").match, listed.stdout.splitlines()):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    venv.create(env, with_pip=True)
    own = {
        name: x for name, x in os.environ.items() if not name.startswith(("PYTHON", "JAX_", "XLA"))
    }
    own |= {"PATH": f"{env / 'bin'}{os.pathsep}{own['PATH']}", "VIRTUAL_ENV": str(env)}
    own |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_QUIET": "1"}
    own |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "XDG_CACHE_HOME": str(env / "cache")}
    install, *_ = commands()
    assert install == ["pip", "install", "."]
    subprocess.run(install, cwd=copy, env=own, check=True)
    return own


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
def test_from_an_empty_folder_to_a_solved_agent_its_video_and_its_report(fresh, tmp_path):
    """Every command as it is printed, by a shell, with what the README has installed."""
    block = re.search(r"^```sh\n(.*?)^```$", README, re.M | re.S)
    assert block is not None
    lines = block[1].splitlines()[1:]
    assert [words[:2] for words in commands()[1:]] == [
        ["tsallax", word] for word in ("train", "play", "report", "play")
    ]
    printed = []
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env=fresh, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, ""), line
        printed.append(done.stdout)
        if "train" in line:
            assert "best weights (--best): " in done.stdout
            assert ", 6 of 6 solved (475 or more)" in done.stdout
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
