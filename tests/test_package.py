"""What would be published is complete, and works in an empty environment outside of the repo."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from functools import cache
from pathlib import Path

import pytest

from support import tiny
from tsallax import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: object, cwd: Path) -> str:
    """What a command prints, without anything of this environment's Python."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def sources() -> set[str]:
    """The files of the library, as they stand in the wheel."""
    files = (path for path in (ROOT / "src" / "tsallax").rglob("*") if path.is_file())
    return {path.relative_to(ROOT / "src").as_posix() for path in files if path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """Wheel and sdist, by their suffixes; the wheel is built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, ROOT, cwd=out)
    return {path.suffix: path for path in out.iterdir()}


@pytest.mark.slow
def test_wheel_and_sdist_hold_every_file(built):
    assert built[".whl"].name == f"tsallax-{__version__}-py3-none-any.whl"
    assert built[".gz"].name == f"tsallax-{__version__}.tar.gz"
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = set(wheel.namelist())
    own = {name for name in names if not name.startswith(f"tsallax-{__version__}.dist-info/")}
    assert own == sources()
    assert f"tsallax-{__version__}.dist-info/licenses/LICENSE" in names
    with tarfile.open(built[".gz"]) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"} <= inside
    assert {f"src/{name}" for name in sources()} <= inside


@pytest.mark.slow
def test_the_wheel_trains_in_an_empty_environment(built, tmp_path):
    """With what it declares to need and nothing else: the list of packages is its own."""
    venv.create(tmp_path / "env", with_pip=True)
    bin_ = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    pinned = ["-c", ROOT / "constraints.txt"]
    run(bin_ / "python", "-m", "pip", "install", *quiet, *pinned, built[".whl"], cwd=tmp_path)
    assert run(bin_ / "tsallax", "--version", cwd=tmp_path) == f"tsallax {__version__}\n"
    words = [*tiny.flags(), "--out", "run"]
    assert ": done after" in run(bin_ / "tsallax", "train", tiny.ENV, *words, cwd=tmp_path)
    assert "video run/play.gif\n" in run(bin_ / "tsallax", "play", "run", cwd=tmp_path)
    assert "1 run, " in run(bin_ / "tsallax", "report", "run", cwd=tmp_path)
    where = run(bin_ / "python", "-c", "import tsallax; print(tsallax.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)


def test_what_is_declared():
    """The typed marker has its classifier; each supported Python has one, as in the workflow."""
    classifiers = PROJECT["classifiers"]
    assert "Typing :: Typed" in classifiers
    assert (ROOT / "src" / "tsallax" / "py.typed").exists()
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert f"python: {pythons}".replace("'", '"') in workflow
    assert PROJECT["requires-python"] == f">={pythons[0]}"


def test_one_version():
    for name, line in {
        "CITATION.cff": f"version: {__version__}",
        "README.md": f"  version = {{{__version__}}},",
    }.items():
        assert f"\n{line}\n" in (ROOT / name).read_text()
    newest = re.search(r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert __version__ in newest.groups()  # `[Unreleased] - 0.1.0` until it has its date
