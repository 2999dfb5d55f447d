"""Equations: from plain letters to LaTeX, and from LaTeX to what a browser draws."""

from xml.etree import ElementTree

import pytest
from tools import build_docs
from tools.typeset import inline, to_latex, to_mathml

from tsallax.operators import ALGORITHMS


@pytest.mark.parametrize(
    ("plain", "latex"),
    [
        ("beta (Q(s,a) - <pi,Q>)", r"\beta(Q(s,a) - \langle \pi,Q\rangle)"),
        ("<pi', Q' - alpha ln_q pi'>", r"\langle \pi', Q' - \alpha \ln_q \pi'\rangle"),
        ("1{Q - Q_l >= c (max Q - Q_l)}", r"1\{ Q - Q_l \ge c (\max Q - Q_l)\}"),
        ("b ~ Beta(2,7) + 7/9", r"b \sim \mathrm{Beta}(2,7) + 7/9"),
        ("psi~ = sum_{j<=i} z_(j) < kq", r"\tilde\psi = \sum_{j\le i} z_{(j)} < kq"),
        ("[1 + (q-1) x]+^(1/(q-1))", r"[1 + (q-1) x]_+^{1/(q-1)}"),
        ("V* = sqrt(2 pi) e^0.03 <= inf", r"V^* = \sqrt{2 \pi} e^{0.03} \le \infty"),
        ("W mellowmax", r"W \,\mathrm{mellowmax}"),
    ],
)
def test_plain_letters_become_latex(plain, latex):
    assert to_latex(plain) == latex


def test_a_bracket_that_is_not_closed_is_refused():
    with pytest.raises(ValueError, match="not closed"):
        to_latex("x^(1 + 2")


def drawn(html: str) -> list[str]:
    """The letters of each equation."""
    parts = [part.partition("</math>")[0] for part in html.split("<math")[1:]]
    return ["".join(ElementTree.fromstring(f"<math{part}</math>").itertext()) for part in parts]


def test_latex_becomes_mathml_within_lines_and_in_blocks():
    assert drawn(to_mathml(r"Here $`\alpha k`$ and $`a/b`$.")) == ["\u03b1k", "a/b"]
    made = to_mathml("before\n\n```math\nx_1\n```\n\nafter")
    assert made.startswith('before\n\n<div class="equation"><math')
    assert 'display="block"' in made
    assert made.endswith("</div>\n\nafter")
    code = "```sh\necho $HOME `x` $\n```"
    assert to_mathml(code) == code


@pytest.mark.parametrize("row", ALGORITHMS.values(), ids=lambda row: row.name)
def test_every_equation_of_the_table_is_drawn(row):
    """Nothing is left of the notation: no command, no brace, no ampersand."""
    (letters,) = drawn(to_mathml(inline(row.equation)))
    assert letters.startswith("r+\u03b3")
    assert not set(letters) & set("\\{}&_^$") - ({"{", "}"} if "{" in row.equation else set())


def test_every_equation_of_the_pages_is_drawn():
    """An environment or a command that the converter does not know stays as it is."""
    for path, markdown in build_docs.read_pages().items():
        made = to_mathml(markdown)
        assert "```math" not in made, path
        assert "$`" not in made, path
        for letters in drawn(made):
            assert not set(letters) & set("\\&^$"), (path, letters)
