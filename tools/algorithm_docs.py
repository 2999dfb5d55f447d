"""The generated documentation of the algorithms, from the rows of the table.

A Markdown file has generated text between marks,

    <!-- NAME: begin -->
    ...
    <!-- NAME: end -->

and `filled` replaces it by the block of that name. The site is built from filled pages, so it is
never out of date; `python tools/build_docs.py --write-tables` also writes them back to `docs/`, so
that the files are complete on GitHub as well, and a test compares the two.

A row without a page in `docs/algorithms` gets `TEMPLATE`.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tools.typeset import inline, to_latex

from tsallax.operators import ALGORITHMS, Algorithm, equation_of, list_reductions
from tsallax.types import Bonus, Value

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "docs/algorithms"
CURVES = "docs/figures/algorithms"
BLOCK = re.compile(r"<!-- (\w+): begin -->\n.*?<!-- \1: end -->", re.DOTALL)
TEMPLATE = """\
# {name}

<!-- equation: begin -->
<!-- equation: end -->

<!-- training: begin -->
<!-- training: end -->
"""
CAPTION = """\
*CartPole with the paper's settings (`--preset paper`) but a network of 128 - 128, not with the
defaults of the command above: mean and one standard deviation of 5 seeds; in grey the other
algorithms ([study `algorithms`](../reproduction.md#algorithms-every-algorithm-on-cartpole)).*"""


def page_of(name: str) -> str:
    return f"{FOLDER}/{name}.md"


def with_missing_pages(read: dict[str, str]) -> dict[str, str]:
    """The Markdown files by their paths, and a page for each algorithm that has none."""
    return {**{page_of(name): TEMPLATE.format(name=name) for name in ALGORITHMS}, **read}


def filled(path: str, markdown: str) -> str:
    """The text of the file `path` with its generated blocks updated; the rest is unchanged."""
    row = ALGORITHMS.get(PurePosixPath(path).stem) if path.startswith(f"{FOLDER}/") else None

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if row and name in OF_A_ROW:
            block = OF_A_ROW[name](row, title_of(markdown))
        elif name in OF_THE_TABLE:
            block = OF_THE_TABLE[name]()
        else:
            return match[0]
        return f"<!-- {name}: begin -->\n\n{block}\n\n<!-- {name}: end -->"

    return BLOCK.sub(fill, markdown)


def title_of(markdown: str) -> str:
    """The short name in the heading: `TAL` of "# TAL: Tsallis advantage learning"."""
    heading = re.search(r"^# (.+?)(?::.*)?$", markdown, re.MULTILINE)
    assert heading is not None, "a page begins with a heading"
    return heading[1]


def navigation(read: dict[str, str]) -> str:
    """The lines of the navigation, in the order of the table."""
    pages = [(title_of(read[page_of(name)]), f"algorithms/{name}.md") for name in ALGORITHMS]
    return "\n".join(f"    {{ {json.dumps(title)} = {json.dumps(p)} }}," for title, p in pages)


# Blocks of the whole table. ---------------------------------------------------------------------


def overview() -> str:
    """Every algorithm with its terms and its source, as links to the pages."""
    rows = [
        (f"[`{r.name}`](algorithms/{r.name}.md)", *terms_of(r), r.source)
        for r in ALGORITHMS.values()
    ]
    return table(("algorithm", "value at s'", "bonus at (s, a)", "from"), rows)


def terms() -> str:
    """Every algorithm with its terms."""
    rows = [(f"`{r.name}`", *terms_of(r)) for r in ALGORITHMS.values()]
    return table(("name", "value at s'", "bonus at (s, a)"), rows)


def reductions() -> str:
    rows = [(f"`{edge.one}`", edge.at, f"`{edge.other}`") for edge in list_reductions()]
    return table(("algorithm", "at", "is"), rows)


def terms_of(row: Algorithm) -> tuple[str, str]:
    return inline(equation_of(row.value)), inline(equation_of(row.bonus))


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = (heads, *rows)
    first, *others = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([first, "|" + "---|" * len(heads), *others])


# Blocks of one algorithm's page. ----------------------------------------------------------------


def equation(row: Algorithm, title: str) -> str:
    facts = [
        f"Source: {row.source}",
        f"Value at s': {name_of(row.value)}; bonus at (s, a): {name_of(row.bonus)}",
    ]
    if row.defaults:
        numbers = ", ".join(f"{name} = {value:g}" for name, value in row.defaults.items())
        facts.append(f"Own defaults: {numbers}")
    for edge in list_reductions():
        if edge.one == row.name:
            facts.append(f"At {edge.at} it is [`{edge.other}`]({edge.other}.md)")
    shown = ["```math", to_latex(row.equation), "```"]
    return "\n".join([*shown, "", *(f"- {fact}" for fact in facts)])


def name_of(term: Value | Bonus) -> str:
    """The dotted name of a function of the package, which the site links to its reference."""
    inside = term.__module__.startswith("tsallax.")
    return f"`{term.__module__}.{term.__name__}`" if inside else f"`{term.__name__}`"


def training(row: Algorithm, title: str) -> str:
    command = f"    tsallax train CartPole-v1 --algo {row.name}"
    if not (ROOT / CURVES / f"{row.name}.png").exists():
        return command
    curve = f"![{title} on CartPole: return and action gap](../figures/algorithms/{row.name}.png)"
    return f"{command}\n\n{curve}\n\n{CAPTION}"


OF_A_ROW: dict[str, Callable[[Algorithm, str], str]] = {
    "equation": equation,
    "training": training,
}
OF_THE_TABLE: dict[str, Callable[[], str]] = {
    "overview": overview,
    "terms": terms,
    "reductions": reductions,
}
