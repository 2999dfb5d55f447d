"""A new algorithm is two functions, one row and one golden value; everything else follows."""

import jax.numpy as jnp
import numpy as np
import pytest
from tools import build_docs, family, typeset

from support.golden_targets import GOLDEN, NUMBERS, X, check_reduction
from tsallax import tabular
from tsallax.agents import make_agent
from tsallax.experiments import study
from tsallax.networks import mlp
from tsallax.operators import (
    ALGORITHMS,
    Algorithm,
    advantage,
    list_reductions,
    make_hparams,
    one_step,
)
from tsallax.operators.targets import expected_value
from tsallax.policies import make_policy

NAME = "tal-clipped"


def clipped_bonus(x, hp, policy):
    """`beta [Q(s,a) - <pi,Q>]`, where `[.]` is clipped below at l0."""
    return hp.beta * jnp.maximum(advantage(x, policy(x.Q, hp)), hp.clip)


ROW = Algorithm(
    NAME,
    expected_value,
    clipped_bonus,
    "this test",
    {"clip": -0.25},
    reductions=("tal at clip = -inf",),
)
OWN_GOLDEN = 0.1 + 0.9 * 1.92 + 0.8 * max(0.5 - 0.875, -0.25)  # <pi,Q> = 7/8, as for TAL


@pytest.fixture(autouse=True)
def _added(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, NAME, ROW)
    monkeypatch.setitem(GOLDEN, NAME, OWN_GOLDEN)


def test_its_golden_value_and_its_reduction(monkeypatch):
    found = one_step(ROW)(X, make_hparams(NAME, **NUMBERS), make_policy("exact"))
    np.testing.assert_allclose(found, GOLDEN[NAME], rtol=1e-6)
    (edge,) = [edge for edge in list_reductions() if edge.one == NAME]
    check_reduction(edge, monkeypatch)


def test_it_runs_in_a_table_and_has_an_agent():
    found = tabular.solve(tabular.chain(5), NAME, q=2.0, iterations=300)
    assert found.share > 0.99
    assert make_agent(mlp((4,), (2,), hidden=(8,)), ROW).update


def test_the_study_of_all_algorithms_has_it():
    found = study.settings(study.load("algorithms"), "smoke")
    assert [setting.config.algo for setting in found] == list(ALGORITHMS)


def test_the_picture_has_it():
    drawn = family.draw()
    assert f">{NAME}</text>" in drawn
    assert ">clip = -inf</text>" in drawn
    assert family.hidden(family.places()) == 0


def test_its_page_is_generated_and_linked(tmp_path):
    """In the tables, the navigation and the picture; nobody wrote a word about it."""
    build_docs.stage(tmp_path)
    page = (tmp_path / "docs" / "algorithms" / f"{NAME}.md").read_text()
    assert page.startswith(f"# {NAME}\n")
    assert typeset.to_mathml(f"```math\n{typeset.to_latex(ROW.equation)}\n```") in page
    for fact in (
        "Source: this test",
        "bonus at (s, a): `clipped_bonus`",
        "Own defaults: clip = -0.25",
        "At clip = -inf it is [`tal`](tal.md)",
    ):
        assert f"{fact}\n" in page
    assert f"\n    tsallax train CartPole-v1 --algo {NAME}\n" in page
    assert ".png" not in page  # it has no curve yet
    configuration = (tmp_path / "zensical.toml").read_text()
    assert f'{{ "{NAME}" = "algorithms/{NAME}.md" }}' in configuration
    overview = (tmp_path / "docs" / "algorithms.md").read_text()
    value, bonus = map(typeset.inline, ("<pi',Q'>", "beta [Q(s,a) - <pi,Q>]"))
    terms = typeset.to_mathml(f"{value} | {bonus} |")
    assert f"| [`{NAME}`](algorithms/{NAME}.md) | {terms} this test |" in overview
    assert f"| `{NAME}` | clip = -inf | `tal` |" in overview
    assert f"| `{NAME}` | {terms}\n" in (tmp_path / "docs" / "architecture.md").read_text()
    assert f">{NAME}</text>" in (tmp_path / "docs" / "figures" / "family.svg").read_text()


@pytest.mark.slow
def test_the_site_builds_strictly_with_its_page(tmp_path):
    assert build_docs.make_site(tmp_path) == 0
    page = (tmp_path / "site" / "algorithms" / f"{NAME}.html").read_text()
    assert 'href="tal.html"' in page
    assert f'href="algorithms/{NAME}.html"' in (tmp_path / "site" / "algorithms.html").read_text()
