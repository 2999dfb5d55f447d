"""Imports go downward only, and no file outgrows its room: docs/architecture.md."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tsallax"
FILES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 300

GROUND = {"spelling", "_jaxlib", "_process"}  # stand on nothing, serve all
UNSEEN = {"__init__", "__main__", "_jaxlib", "_process"}  # not rooms of docs/architecture.md
BESIDE = {"networks", "replay", "envs", "storage"}
BELOW: dict[str, set[str]] = {
    "types": set(),
    "stats": set(),
    **{room: {"types"} for room in BESIDE},
    "policies": {"types"},
    "export": {"types", "policies", "networks"},
    "operators": {"types", "policies"},
    "tabular": {"types", "policies", "operators"},
    "agents": {"types", "policies", "operators"} | BESIDE - {"storage"},
    "learners": {"types", "policies", "operators", "agents"} | BESIDE,
}
_under = {
    "types",
    "stats",
    "policies",
    "operators",
    "tabular",
    "agents",
    "learners",
    "export",
} | BESIDE
for _room in ("training", "experiments", "report", "api", "cli", "__main__"):
    BELOW[_room] = set(_under)
    _under.add(_room)
BELOW["__init__"] = _under  # the public names, imported when they are used; no room imports it


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(source: str, package: tuple[str, ...]) -> set[str]:
    """The rooms a file of `package` imports, wherever the import stands in it."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            start = ".".join((*base, *([node.module] if node.module else [])))
            names += [f"{start}.{alias.name}" for alias in node.names]
    parts = [(*name.split("."), "__init__") for name in names]
    # `from tsallax import x`: a room, or else one of the package's public names.
    return {
        p[1] if len(p) > 3 or p[1] in BELOW or p[1] in GROUND else "__init__"
        for p in parts
        if p[0] == "tsallax" and p[1] != "__version__"
    }


def unwelcome(room: str, source: str, package: tuple[str, ...] = ("tsallax",)) -> set[str]:
    if room in GROUND:
        return imported_rooms(source, package) - {room}
    return imported_rooms(source, package) - BELOW[room] - GROUND - {room}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_downward(path):
    room = room_of(path)
    assert room in BELOW or room in GROUND, f"give the room {room!r} its place in this table"
    package = path.relative_to(SOURCE.parent).parent.parts
    assert not unwelcome(room, path.read_text(), package)


@pytest.mark.parametrize(
    ("room", "source", "wrong"),
    [
        ("policies", "from tsallax.operators.table import ALGORITHMS", {"operators"}),
        ("policies", "def f():\n    import tsallax.tabular", {"tabular"}),
        ("policies", "from tsallax import types, operators", {"operators"}),
        ("policies", "from tsallax import make_hparams", {"__init__"}),
        ("tabular", "from tsallax import agents", {"agents"}),
        ("envs", "from tsallax.policies import greedy", {"policies"}),
        ("storage", "from tsallax.training.config import Config", {"training"}),
        ("storage", "from tsallax.learners import Learner", {"learners"}),
        ("agents", "from tsallax.storage.tensors import flatten", {"storage"}),
        ("agents", "from tsallax.learners import Learner", {"learners"}),
        ("learners", "from tsallax.tabular import iterate", {"tabular"}),
        ("learners", "from tsallax.training.config import Config", {"training"}),
        ("learners", "from tsallax.storage import tensors\nfrom tsallax.envs import make", set()),
        ("spelling", "from tsallax.types import HParams", {"types"}),
        ("types", "from .cli import main", {"cli"}),
        ("stats", "from tsallax.types import HParams", {"types"}),
        ("agents", "from tsallax.stats import iqm", {"stats"}),
        ("report", "from tsallax.stats import iqm", set()),
        ("types", "from tsallax.attic import box", {"attic"}),
        ("cli", "import jax\nfrom tsallax import __version__, report, spelling", set()),
        ("training", "from tsallax.envs import make", set()),
    ],
)
def test_the_arrows_are_seen(room, source, wrong):
    assert unwelcome(room, source) == wrong


def test_a_relative_import_is_followed():
    assert imported_rooms("from ..operators import table", ("tsallax", "policies")) == {"operators"}
    assert imported_rooms("from .closed import greedy", ("tsallax", "policies")) == {"policies"}


# Compiled programs are kept beside the runs; texts and scripts of pages come with the package.
# The explorer is opened in a browser. Standard streams that are closed are opened to nowhere.
OPEN_FILES = {"storage", "experiments", "report", "api", "_jaxlib.py"}
OPEN_FILES |= {"cli/explore.py", "cli/output.py"}
OPENERS = {"open", "mkdir", "read_bytes", "read_text", "rmdir", "rmtree", "savefig", "touch"}
OPENERS |= {"truncate", "unlink", "write_bytes", "write_text"}


def openers(source: str) -> set[str]:
    """What opens, writes or removes files, by the name it is called by."""
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = {c.attr if isinstance(c, ast.Attribute) else getattr(c, "id", "") for c in calls}
    return names & OPENERS


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_storage_opens_the_files_of_a_run(path):
    if not {room_of(path), str(path.relative_to(SOURCE))} & OPEN_FILES:
        assert not openers(path.read_text())


def test_an_open_file_is_seen():
    assert openers("with path.open() as file:\n    shutil.rmtree(file.read())") == {
        "open",
        "rmtree",
    }
    assert openers("def f():\n    return open('x')") == {"open"}


def test_files_stay_small():
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}


def test_the_page_says_which_rooms_there_are():
    page = (ROOT / "docs" / "architecture.md").read_text().partition("| room |")[2]
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("\n\n")[0], re.MULTILINE)
    assert set(rows) == {room_of(path) for path in FILES} - UNSEEN
    assert set(rows) == (set(BELOW) | GROUND) - UNSEEN
