"""The pages of the algorithms say what the table says, and the picture of them what is so."""

import math
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import tyro
from tools import family

from test_operators import X
from tsallax.operators import ALGORITHMS, get_algorithm, make_hparams, targets
from tsallax.policies import make_policy
from tsallax.training.config import Config, resolve

DOCS = Path(__file__).parents[1] / "docs"
OVERVIEW = (DOCS / "algorithms.md").read_text()

every_algorithm = pytest.mark.parametrize("row", ALGORITHMS.values(), ids=lambda row: row.name)


def page(name: str) -> str:
    return (DOCS / "algorithms" / f"{name}.md").read_text()


def commands(markdown: str) -> list[str]:
    return re.findall(r"^    (tsallax train .*?)(?:  #.*)?$", markdown, re.MULTILINE)


def section(title: str) -> str:
    return OVERVIEW.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_algorithm_has_its_page_and_no_other():
    assert {path.stem for path in (DOCS / "algorithms").glob("*.md")} == set(ALGORITHMS)


@every_algorithm
def test_a_page_states_the_equation_of_the_table(row):
    first_block = re.search(r"^    (.+)$", page(row.name), re.MULTILINE)
    assert first_block is not None
    assert first_block[1] == row.equation
    assert re.search(rf"^\*Source:\* {re.escape(row.source)}\b", page(row.name), re.MULTILINE)
    assert f"`tsallax.operators.targets.{row.target.__name__}`" in page(row.name)
    assert re.findall("^## (.+)$", page(row.name), re.MULTILINE) == [
        "Deviations",
        "When to use it",
    ]
    assert f"](../figures/algorithms/{row.name}.png)" in page(row.name)


@every_algorithm
def test_a_page_shows_commands_that_train_it(row):
    shown = commands(page(row.name))
    assert shown
    for command in shown:
        config = tyro.cli(Config, args=shlex.split(command)[2:])
        assert resolve(config).algo == row.name


def test_the_overview_is_the_table():
    def cell(text: str) -> str:
        return f" `{text}` |" if text else " |"

    want = [
        f"| [`{r.name}`](algorithms/{r.name}.md) |{cell(r.value)}{cell(r.bonus)} {r.source} |"
        for r in ALGORITHMS.values()
    ]
    assert re.findall(r"^\| \[`.*$", OVERVIEW, re.MULTILINE) == want


def target(name: str, numbers: dict[str, float]) -> float:
    hp = make_hparams(name, **{"alpha": 1.0, "beta": 0.8, **numbers})
    return float(get_algorithm(name).target(X, hp, make_policy("exact")))


@pytest.mark.parametrize("edge", family.REDUCTIONS, ids=lambda edge: f"{edge.one}-{edge.other}")
def test_an_arrow_of_the_picture_is_so(edge, monkeypatch):
    if edge.one == "sal":  # its b is 1 where the draw is
        monkeypatch.setattr(targets, "beta_draw", lambda key, a, b: 2 / 9)
    one, other = target(edge.one, edge.numbers), target(edge.other, edge.others)
    np.testing.assert_allclose(one, other, rtol=1e-5)
    if edge.numbers:  # without its numbers the two are not the same: the arrow says something
        own = {k: v for k, v in edge.numbers.items() if k == "delta"}
        assert not math.isclose(target(edge.one, own), other, rel_tol=1e-3)


def test_the_picture_and_its_table_are_the_data():
    rows = re.findall(r"^\| `(.+)` \| (.+) \| `(.+)` \|$", section("Which reduces to which"), re.M)
    assert rows == [(edge.one, edge.label, edge.other) for edge in family.REDUCTIONS]
    assert family.FIGURE.read_text() == family.draw()
    drawn = {*family.PLACES, *sum(family.VARIANTS.values(), ())}
    assert drawn == set(ALGORITHMS)
