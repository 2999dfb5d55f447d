"""Draws docs/figures/family.svg, the reductions between algorithms, from the rows of the table.

python tools/family.py
"""

import math
from itertools import product
from pathlib import Path

from tsallax.operators import ALGORITHMS, list_reductions

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "family.svg"
# Columns and rows for a clear picture. An algorithm that is not listed gets a free place.
PLACES = {
    "mt-dqn-qlog": (0, 0), "mt-dqn": (1, 0), "tal-v": (2, 0), "tal": (3, 0), "sal": (4, 0),
    "cvi-mellowmax": (5, 1), "mdqn": (1, 1), "cvi": (2, 1), "tsallis-dqn": (3, 1), "al": (4, 1),
    "pal": (5, 2), "soft-dqn": (1, 2), "mvi": (0, 2), "dqn": (4, 2), "clipped-al": (5, 0),
}  # fmt: skip
COLUMN, ROW, MARGIN = 180, 130, (85, 45)
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


Place = tuple[int, int]


def boxes() -> dict[str, list[str]]:
    """The names in each box: a variant with the same reductions shares the box of its root."""
    found: dict[str, list[str]] = {}
    for name, row in ALGORITHMS.items():
        roots = (r for r in found if name.startswith(f"{r}-"))
        same = (r for r in roots if row.reductions and ALGORITHMS[r].reductions == row.reductions)
        found.setdefault(next(same, name), []).append(name)
    return found


def arrows() -> list[tuple[str, str, str]]:
    """The arrows: from a box, at these numbers, to another box."""
    box_of = {name: root for root, names in boxes().items() for name in names}
    found = ((box_of[r.one], r.at, box_of[r.other]) for r in list_reductions())
    return list(dict.fromkeys(found))


def places() -> dict[str, Place]:
    """The column and row of each box; new boxes are placed so that no arrow crosses a box."""
    found = {name: PLACES[name] for name in boxes() if name in PLACES}
    for name in boxes():
        if name in found:
            continue
        ends = [found[other] for one, _, other in arrows() if one == name and other in found]
        column, row = ends[0] if ends else (0, 0)
        free = set(product(range(len(boxes())), range(-1, 3))) - set(found.values())

        def cost(place: Place, name: str = name, near: Place = (column, row)):
            return hidden({**found, name: place}), math.dist(place, near), place

        found[name] = min(free, key=cost)
    return found


def hidden(found: dict[str, Place]) -> int:
    """The number of times that an arrow crosses a box that is not at one of its ends."""
    ends = [(one, other) for one, _, other in arrows() if one in found and other in found]
    shares = [i / 32 for i in range(33)]
    return sum(
        any(inside(found[box], found[one], found[other], share) for share in shares)
        for one, other in ends
        for box in set(found) - {one, other}
    )


def inside(box: Place, one: Place, other: Place, share: float) -> bool:
    """Returns whether the point at `share` of the arrow's length is in the box."""
    column, row = (a + share * (b - a) for a, b in zip(one, other, strict=True))
    return abs(column - box[0]) * COLUMN < HALF_WIDTH and abs(row - box[1]) * ROW < HALF_HEIGHT


def edge(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, ...]:
    """The line from the border of one box to that of the other, between the centres."""
    (x0, y0), (x1, y1) = one, other
    dx, dy = x1 - x0, y1 - y0
    cut = min(HALF_WIDTH / abs(dx) if dx else 1, HALF_HEIGHT / abs(dy) if dy else 1)
    return x0 + cut * dx, y0 + cut * dy, x1 - cut * dx, y1 - cut * dy


def text(lines: list[str], x: float, y: float, kind: str) -> list[str]:
    """Lines of text centred at a point."""
    top = y - 8 * (len(lines) - 1)
    return [
        f'<text class="{kind}" x="{x:.0f}" y="{top + 16 * i:.0f}">{line}</text>'
        for i, line in enumerate(lines)
    ]


def draw() -> str:
    found = places()
    top = min(row for _, row in found.values())
    centres = {
        name: (MARGIN[0] + COLUMN * column, MARGIN[1] + ROW * (row - top))
        for name, (column, row) in found.items()
    }
    width = MARGIN[0] + max(x for x, _ in centres.values())
    height = MARGIN[1] + max(y for _, y in centres.values())
    lines, labels, rects = [], [], []
    for one, at, other in arrows():
        x0, y0, x1, y1 = edge(centres[one], centres[other])
        lines.append(f'<path class="edge" d="M{x0:.0f} {y0:.0f}L{x1:.0f} {y1:.0f}"/>')
        above = 11 if y0 == y1 else 0  # a short line has no room for a label on it
        labels += text(at.split(", "), (x0 + x1) / 2, (y0 + y1) / 2 - above, "label")
    for root, names in boxes().items():
        x, y = centres[root]
        corner = f'x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}"'
        size = f'width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}" rx="6"'
        rects.append(f'<rect class="box" {corner} {size}/>')
        rects += text(names, x, y, "name")
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
            *rects,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    FIGURE.write_text(draw())
