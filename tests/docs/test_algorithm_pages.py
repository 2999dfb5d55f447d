"""What is generated from the rows: tables, pages, navigation, the picture of the family."""

import re
import shlex
from pathlib import Path
from unittest import mock

import pytest
from tools import algorithm_docs, build_docs, family
from tools.typeset import to_latex

from tsallax import cli
from tsallax.operators import ALGORITHMS, get_algorithm, list_reductions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

every_algorithm = pytest.mark.parametrize("row", ALGORITHMS.values(), ids=lambda row: row.name)


def page(name: str) -> str:
    return (DOCS / "algorithms" / f"{name}.md").read_text()


def commands(markdown: str) -> list[str]:
    return re.findall(r"^    (tsallax train .*?)(?:  #.*)?$", markdown, re.MULTILINE)


def block(path: str, name: str) -> str:
    markdown = (DOCS / path).read_text()
    return markdown.partition(f"<!-- {name}: begin -->\n")[2].partition(f"<!-- {name}: end -->")[0]


def test_every_algorithm_has_its_page_and_no_other():
    assert {path.stem for path in (DOCS / "algorithms").glob("*.md")} == set(ALGORITHMS)


def test_the_files_are_up_to_date():
    """If not: `python tools/build_docs.py --write-tables`."""
    for path, markdown in build_docs.read_pages().items():
        assert (ROOT / path).read_text() == markdown, path
    assert family.FIGURE.read_text() == family.draw()


def test_a_file_that_is_not_up_to_date_is_seen(monkeypatch):
    tal = get_algorithm("tal")
    monkeypatch.setitem(ALGORITHMS, "tal", tal._replace(source="elsewhere"))
    for path in ("docs/algorithms.md", "docs/algorithms/tal.md"):
        markdown = (ROOT / path).read_text()
        changed = algorithm_docs.filled(path, markdown)
        assert changed != markdown
        assert "elsewhere" in changed
        assert changed.splitlines()[0] == markdown.splitlines()[0]  # what is written stays
    monkeypatch.setitem(ALGORITHMS, "tal", tal._replace(reductions=()))
    assert family.FIGURE.read_text() != family.draw()


@every_algorithm
def test_a_page_states_the_row(row):
    stated = block(f"algorithms/{row.name}.md", "equation")
    assert stated.startswith(f"\n```math\n{to_latex(row.equation)}\n```\n")
    assert f"\n- Source: {row.source}\n" in stated
    for function in (row.value, row.bonus):
        assert f"`tsallax.operators.targets.{function.__name__}`" in stated
    for name, value in row.defaults.items():
        assert re.search(rf"^- Own defaults: .*\b{name} = {value:g}", stated, re.MULTILINE)
    assert stated.count("\n- At ") == len(row.reductions)
    assert re.findall("^## (.+)$", page(row.name), re.MULTILINE) in (
        [],  # nobody wrote about it yet
        ["Deviations", "When to use it"],
    )
    assert f"](../figures/algorithms/{row.name}.png)" in page(row.name)


@every_algorithm
def test_a_page_shows_commands_that_train_it(row):
    shown = commands(page(row.name))
    assert f"tsallax train CartPole-v1 --algo {row.name}" in shown
    for command in shown:
        with mock.patch("tsallax.training.build.make_run", side_effect=ValueError("asked")) as make:
            assert cli.main(shlex.split(command)[1:]) == 2
        assert make.call_args.args[0].algo == row.name


def test_the_tables_have_every_row():
    for path, name in (("algorithms.md", "overview"), ("architecture.md", "terms")):
        names = re.findall(r"^\| \[?`([\w-]+)`", block(path, name), re.MULTILINE)
        assert names == list(ALGORITHMS)
    tal = r"$`\langle \pi',Q'\rangle`$ | $`\beta(Q(s,a) - \langle \pi,Q\rangle)`$ |"
    overview = block("algorithms.md", "overview")
    assert f"| [`tal`](algorithms/tal.md) | {tal} eq. 11, m = 1 |" in overview
    assert r"| `dqn` | $`\max Q'`$ | $`0`$ |" in block("architecture.md", "terms")


def test_the_table_of_reductions_is_that_of_the_rows():
    rows = re.findall(
        r"^\| `(.+)` \| (.+) \| `(.+)` \|$", block("algorithms.md", "reductions"), re.MULTILINE
    )
    assert rows == [(edge.one, edge.at, edge.other) for edge in list_reductions()]


def test_the_picture_has_a_box_for_every_algorithm_and_hides_no_arrow():
    drawn = [name for names in family.boxes().values() for name in names]
    assert sorted(drawn) == sorted(ALGORITHMS)
    assert family.boxes()["sal"] == ["sal", "sal-printed"]  # the same reductions: one box
    places = family.places()
    assert set(places) == set(family.boxes())
    assert len(set(places.values())) == len(places)
    assert family.hidden(places) == 0
    assert family.hidden({**places, "cvi": (3, 2), "mdqn": (3, 2)}) > 0


def test_the_navigation_is_in_the_order_of_the_table():
    lines = algorithm_docs.navigation(build_docs.read_pages()).splitlines()
    assert lines[0] == '    { "DQN" = "algorithms/dqn.md" },'
    assert [re.findall(r"algorithms/(.+)\.md", line) for line in lines] == [
        [name] for name in ALGORITHMS
    ]


def test_a_title_is_short():
    assert algorithm_docs.title_of("# TAL: Tsallis advantage learning\n\nx") == "TAL"
    assert algorithm_docs.title_of("# SAL as printed\n") == "SAL as printed"
