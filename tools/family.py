"""Which algorithm is another one at which numbers: docs/figures/family.svg, and the data behind it.

python tools/family.py
"""

import math
from pathlib import Path
from typing import NamedTuple

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "family.svg"


class Reduction(NamedTuple):
    """`one` at `numbers` is `other`, at `others` if these are given."""

    one: str
    label: str
    numbers: dict[str, float]
    other: str
    others: dict[str, float] = {}  # noqa: RUF012 (never written to)


SHANNON = {"q": 1.0, "entropy": 1.0, "delta": 0.0}
UNCLIPPED = {"clip": -math.inf}
REDUCTIONS = (
    Reduction("tal", "beta = 0", {"beta": 0.0}, "tsallis-dqn"),
    Reduction("tal", "q = inf", {"q": math.inf}, "al"),
    Reduction("tal", "q = 1", {"q": 1.0}, "cvi"),
    Reduction("tal-v", "q = 1, entropy = 1", SHANNON, "mdqn", UNCLIPPED),
    Reduction("mt-dqn", "q = 1, entropy = 1", SHANNON, "mdqn", UNCLIPPED),
    Reduction("mt-dqn-qlog", "q = 1", {"q": 1.0}, "mt-dqn", {"q": 1.0}),
    Reduction("cvi-mellowmax", "alpha to 0", {"alpha": 1e-6}, "al"),
    Reduction("sal", "b = 1", {}, "al"),
    Reduction("pal", "beta = 0", {"beta": 0.0}, "dqn"),
    Reduction("mdqn", "beta = 0", {"beta": 0.0}, "soft-dqn"),
    Reduction("al", "beta = 0", {"beta": 0.0}, "dqn"),
    Reduction("tsallis-dqn", "q = 1, entropy = 1", {"q": 1.0, "entropy": 1.0}, "soft-dqn"),
    Reduction("tsallis-dqn", "q = inf", {"q": math.inf}, "dqn"),
    Reduction("soft-dqn", "alpha to 0", {"alpha": 1e-6}, "dqn"),
)
VARIANTS = {"sal": ("sal-printed",), "pal": ("pal-atari",)}  # drawn in one box
PLACES = {  # column and row
    "mt-dqn-qlog": (0, 0), "mt-dqn": (1, 0), "tal-v": (2, 0), "tal": (3, 0), "sal": (4, 0),
    "cvi-mellowmax": (5, 0), "mdqn": (1, 1), "cvi": (2, 1), "tsallis-dqn": (3, 1), "al": (4, 1),
    "pal": (5, 1), "soft-dqn": (1, 2), "dqn": (4, 2),
}  # fmt: skip
COLUMN, ROW, MARGIN = 160, 130, (85, 45)
HALF_WIDTH, HALF_HEIGHT = 58, 20
STYLE = """
  text { font: 13px sans-serif; fill: #1f2328; text-anchor: middle; dominant-baseline: central }
  .label { font-size: 12px; fill: #57606a; stroke: #fff; stroke-width: 5px; paint-order: stroke }
  .card { fill: #fff } .box { fill: #eef1ff; stroke: #4351b8 } .arrow { fill: #57606a }
  .edge { stroke: #57606a; fill: none; marker-end: url(#arrow) }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .label { fill: #9da7b3; stroke: #11141c }
    .card { fill: #11141c } .box { fill: #20263f; stroke: #7f8ff0 }
    .arrow { fill: #9da7b3 } .edge { stroke: #9da7b3 }
  }
"""


def centre(name: str) -> tuple[float, float]:
    column, row = PLACES[name]
    return MARGIN[0] + COLUMN * column, MARGIN[1] + ROW * row


def edge(one: str, other: str) -> tuple[float, float, float, float]:
    """From the border of one box to that of the other, along the line between the centres."""
    (x0, y0), (x1, y1) = centre(one), centre(other)
    dx, dy = x1 - x0, y1 - y0
    cut = min(HALF_WIDTH / abs(dx) if dx else 1, HALF_HEIGHT / abs(dy) if dy else 1)
    return x0 + cut * dx, y0 + cut * dy, x1 - cut * dx, y1 - cut * dy


def text(lines: list[str], x: float, y: float, kind: str) -> list[str]:
    """Lines of text around a point."""
    top = y - 8 * (len(lines) - 1)
    return [
        f'<text class="{kind}" x="{x:.0f}" y="{top + 16 * i:.0f}">{line}</text>'
        for i, line in enumerate(lines)
    ]


def draw() -> str:
    width = 2 * MARGIN[0] + COLUMN * max(column for column, _ in PLACES.values())
    height = 2 * MARGIN[1] + ROW * max(row for _, row in PLACES.values())
    lines, labels, boxes = [], [], []
    for one, label, _, other, _ in REDUCTIONS:
        x0, y0, x1, y1 = edge(one, other)
        lines.append(f'<path class="edge" d="M{x0:.0f} {y0:.0f}L{x1:.0f} {y1:.0f}"/>')
        above = 11 if y0 == y1 else 0  # a short line has no room for words on it
        labels += text(label.split(", "), (x0 + x1) / 2, (y0 + y1) / 2 - above, "label")
    for name in PLACES:
        x, y = centre(name)
        corner = f'x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}"'
        size = f'width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}" rx="6"'
        boxes.append(f'<rect class="box" {corner} {size}/>')
        boxes += text([name, *VARIANTS.get(name, ())], x, y, "name")
    marker = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path class="arrow" d="M0 0L8 4L0 8Z"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            f"<style>{STYLE}</style>",
            f"<defs>{marker}</defs>",
            f'<rect class="card" width="{width}" height="{height}" rx="8"/>',
            *lines,
            *labels,
            *boxes,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    FIGURE.write_text(draw())
