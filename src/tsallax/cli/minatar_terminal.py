"""A MinAtar game on a terminal, with bars of pi next to it."""

import time
from collections.abc import Iterable

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tsallax.envs.minatar.common import PIXELS, SIZE, TILE
from tsallax.learners.rollout import Moment
from tsallax.report.moment_words import is_allowed, percent, summary, value

BAR = 12
EIGHTHS = " ▏▎▍▌▋▊▉"
SHADES = "░▒▓█"
# The pixels of a cell that are shown: the last of the four is the gap to the next cell.
LARGE, SMALL = (3, 7, 12, 15), (5, 10)


def show(
    moments: Iterable[Moment], names: tuple[str, ...], title: str, fps: int, console: Console
) -> None:
    """Show the moments live; without a terminal, print one board after the other at once."""
    if not console.is_terminal:
        for moment in moments:
            console.print(screen(moment, names, title, console))
        return
    with Live(console=console, auto_refresh=False) as live:
        due = time.monotonic()
        for moment in moments:
            time.sleep(max(0.0, due - time.monotonic()))
            live.update(screen(moment, names, title, console), refresh=True)
            due = max(due + 1 / fps, time.monotonic())


def screen(moment: Moment, names: tuple[str, ...], title: str, console: Console) -> RenderableType:
    plain = console.color_system is None
    pixels = LARGE if console.height > 2 * SIZE + 2 else SMALL  # including the two lines above it
    both = Table.grid(padding=(0, 2, 0, 0))
    board = letters(moment.picture) if plain else half_blocks(moment.picture, pixels)
    both.add_row(board, bars(moment, names))
    return Group(Text(title, style="bold"), Text(summary(moment)), both)


def half_blocks(picture: np.ndarray, pixels: tuple[int, ...]) -> Text:
    """Draw two pixels per character, one above the other, so that a pixel is about square."""
    shown = np.add.outer(PIXELS * np.arange(SIZE), pixels).ravel()
    rows = picture[shown][:, shown]
    return Text("\n").join(
        Text.assemble(*(("▀", f"rgb{_rgb(a)} on rgb{_rgb(b)}") for a, b in zip(*pair, strict=True)))
        for pair in zip(rows[::2], rows[1::2], strict=True)
    )


def _rgb(colour: np.ndarray) -> str:
    return f"({','.join(map(str, colour.tolist()))})"


def letters(picture: np.ndarray) -> Text:
    """Draw without colours: the shape and lightness of every cell as a character."""
    cells = picture.reshape(SIZE, PIXELS, SIZE, PIXELS, 3).swapaxes(1, 2)
    return Text("\n".join("".join(map(_glyph, row)) for row in cells))


def _glyph(cell: np.ndarray) -> str:
    side, upper, lower = cell[8, 1], cell[4, 8], cell[11, 8]  # pixels in which shapes differ
    if (upper != lower).any():
        return "▄▄" if (upper == TILE).all() else "▀▀"
    lightness = float(upper @ np.array([0.299, 0.587, 0.114]))
    if (upper != side).any():
        return "()" if lightness > 128 else "::"
    return "· " if (upper == TILE).all() else 2 * SHADES[int(lightness / 64)]


def bars(moment: Moment, names: tuple[str, ...]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    # Minimum widths keep the columns in place between moments.
    for heading, width in (("", 1), ("action", 6), ("pi", BAR)):
        table.add_column(heading, no_wrap=True, min_width=width)
    table.add_column("", justify="right", no_wrap=True, min_width=8)
    table.add_column("Q", justify="right", style="dim", no_wrap=True, min_width=6)
    for a, name in enumerate(names):
        p = float(moment.pi[a])
        if moment.action is None:
            table.add_row("", Text(name, style="dim"), " " * BAR)
        elif p == 0:
            word = "x ruled out" if is_allowed(moment, a) else "x not allowed"
            row = (Text.assemble((name, "strike dim")), Text(word, style="dim"), "0")
            table.add_row(_mark(moment, a), *row, value(moment, a))
        else:
            bar = Text(_bar(p), style="rgb(213,94,0)" if a == moment.action else "rgb(86,180,233)")
            style = "bold" if a == moment.action else ""
            row = (Text(name, style=style), bar, percent(p))
            table.add_row(_mark(moment, a), *row, value(moment, a))
    return table


def _mark(moment: Moment, a: int) -> str:
    return ">" if a == moment.action else " "


def _bar(p: float) -> str:
    eighths = max(1, round(8 * BAR * p)) if p > 0 else 0  # NaN has no bar
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).strip().ljust(BAR)
