"""What the documentation says is so: links, names, tables, and the code it shows."""

import contextlib
import functools
import importlib
import io
import re
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from tsallax import envs
from tsallax.operators import ALGORITHMS
from tsallax.types import HParams

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@functools.cache
def text(name: str) -> str:
    return (ROOT / name).read_text()


def anchors(page: Path) -> set[str]:
    """Headings as the links to them are written: small letters, no punctuation, hyphens."""
    prose = FENCE.sub("", page.read_text())
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def broken_links(page: Path, markdown: str) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", markdown)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def resolve(dotted: str) -> object:
    """The object of that name; the longest importable part of it is the module."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[cut:], found)
    raise ModuleNotFoundError(dotted)


def dotted_names(markdown: str) -> list[str]:
    return re.findall(r"`(tsallax(?:\.\w+)+)`", markdown)


class Example(NamedTuple):
    name: str
    source: str
    output: str | None  # the text block right after it: what it prints
    modules: dict[str, str]  # blocks before it on its page that begin with `# name.py`


def examples() -> list[Example]:
    found = []
    for page in PAGES:
        blocks, modules = list(FENCE.finditer(page.read_text())), {}
        for i, block in enumerate(blocks):
            if block[1] != "python":
                continue
            after = blocks[i + 1] if i + 1 < len(blocks) else None
            near = (
                after
                and after[1] == "text"
                and not page.read_text()[block.end() : after.start()].strip()
            )
            name = f"{page.relative_to(ROOT)}:{i}"
            found.append(Example(name, block[2], after[2] if near else None, dict(modules)))
            if heading := re.match(r"# (\w+\.py)\n", block[2]):
                modules[heading[1]] = block[2]
    return found


@every_page
def test_links_lead_somewhere(page):
    assert broken_links(page, page.read_text()) == []


def test_a_broken_link_is_seen():
    page = ROOT / "README.md"
    assert broken_links(page, "[a](docs/nowhere.md) [b](README.md#nowhere) [c](#tsallax)") == [
        "docs/nowhere.md",
        "README.md#nowhere",
    ]


@every_page
def test_names_exist(page):
    for name in dotted_names(page.read_text()):
        resolve(name)


def test_a_wrong_name_is_seen():
    assert dotted_names("`tsallax.policies.greedy`, `x.y`") == ["tsallax.policies.greedy"]
    for wrong in ("tsallax.policies.greddy", "tsallax.nowhere.greedy", "tsallax.types.HParams.qq"):
        with pytest.raises(AttributeError):
            resolve(wrong)


def test_every_equation_has_its_row():
    numbers = re.findall(r"^\| \((\d+)\) \|", text("docs/equations.md"), re.MULTILINE)
    assert [int(n) for n in numbers] == list(range(1, 31))
    assert len(set(dotted_names(text("docs/equations.md")))) > 30


def test_the_functions_of_the_paper_stand_in_the_equations_or_in_the_errata():
    named = {*dotted_names(text("docs/equations.md")), *dotted_names(text("docs/errata.md"))}
    compared = {"pal", "pal-atari", "sal", "cvi-mellowmax"}  # what the paper takes from elsewhere
    others = {"no_bonus", "advantage_bonus_v"}  # not in a display of the paper
    papers = [
        row
        for row in ALGORITHMS.values()
        if row.name in compared or re.match(r"eq\.|section|table", row.source)
    ]
    assert len(papers) >= 14
    for row in papers:
        for function in {row.value.__name__, row.bonus.__name__} - others:
            assert f"tsallax.operators.targets.{function}" in named


def test_every_number_is_explained_with_its_default():
    section = text("docs/notation.md").partition("## The numbers\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", section, re.MULTILINE)
    assert [(name, float(value)) for name, value in rows] == list(HParams._field_defaults.items())


@pytest.fixture
def own_tables():
    """What an example registers is known to this example alone."""
    import gymnasium

    tables = (ALGORITHMS, envs.CONSTRUCTORS, gymnasium.registry)
    with contextlib.ExitStack() as stack:
        for table in tables:
            stack.enter_context(mock.patch.dict(table))
        yield


def takes_long(example) -> bool:
    """Whether it trains, or repeats what it does over seeds."""
    return ".train(" in example.source or "for seed in range" in example.source


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(x, id=x.name, marks=[pytest.mark.slow] if takes_long(x) else [])
        for x in examples()
    ],
)
def test_examples_run_and_print_what_is_shown(example, own_tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, source in example.modules.items():
        (tmp_path / name).write_text(source)
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)  # afterwards as well
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.source, "example", "exec"), {"__name__": "example"})
    if example.output is not None:
        assert printed.getvalue() == example.output
