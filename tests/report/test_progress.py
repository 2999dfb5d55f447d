"""A run on one line: on a terminal, in a notebook, and as lines where nothing is written over."""

import re
from itertools import pairwise

import numpy as np
import pytest

from support import tiny
from tsallax.cli import display
from tsallax.cli.display import Display, rows_of, title
from tsallax.learners import Metrics, Period
from tsallax.learners.host import Episodes
from tsallax.report import progress
from tsallax.report.progress import Line
from tsallax.training.driver import Progress


def told(step: int, returns: list[float], last: bool = False, speed: float = 100.0) -> Progress:
    columns = {name: np.zeros(len(returns)) for name in Metrics._fields}
    columns |= {"episode_return": np.array(returns), "diverged": np.full(len(returns), -1)}
    return Progress(Period(step, None, None, Metrics(**columns), {}), None, speed, last)


def show(line: Line) -> None:
    """Of 120 steps of four cells, 40 are done at 100 steps a second: 3.2 s are left."""
    line(told(40, [np.nan, 1.0, 2.0, 3.0]))
    line(told(80, [np.nan] * 4))
    line(told(120, [4.0, 4.0, 4.0, 5.0], last=True))
    line.end()


def test_lines_where_nothing_is_written_over(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    show(Line(tiny.config(), 4))
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "40 / 120 steps   100 steps/s   3s left   return 2.0"
    assert second == "80 / 120 steps   100 steps/s   2s left   no episode ended"
    assert re.fullmatch(r"120 / 120 steps   in \ds   return 4.2", third)


def test_one_line_on_a_terminal(monkeypatch, capsys):
    """Each is as wide as the one before, so that nothing of it is left."""
    monkeypatch.setattr(progress, "OFTEN", 0.0)
    monkeypatch.setattr(progress.sys.stdout, "isatty", lambda: True)
    show(Line(tiny.config(), 4))
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert out.endswith("\n")
    lines = out.rstrip("\n").split("\r")[1:]
    assert lines[0] == "tal on CartPole-v1: compiling ..."
    assert all(len(new) >= len(old.rstrip()) for old, new in pairwise(lines))


def test_one_place_in_a_notebook(monkeypatch, capsys):
    seen = []

    class Place:
        def update(self, line: Line) -> None:
            seen.append(line._repr_html_())

    monkeypatch.setattr(progress, "OFTEN", 0.0)
    monkeypatch.setattr(progress, "_notebook_place", lambda line: Place())
    show(Line(tiny.config(), 4))
    assert capsys.readouterr().out == ""
    assert len(seen) == 3
    assert '<progress value="120" max="120"' in seen[-1]
    assert "return 4.2" in seen[-1]


def test_episodes_before_the_first_period_ends(monkeypatch, capsys):
    """Two environments of one cell: returns 3 (one step) and 1 + 2 (two steps), so 3 on average."""
    monkeypatch.setattr(display, "EVERY", 0.0)
    episodes = Episodes(2)
    with Display("title", ["seed 0"], 100) as shown:
        shown.tick(1, episodes)
        episodes.add(np.array([3.0, 1.0]), np.array([True, False]))
        shown.tick(2, episodes)
        episodes.add(np.array([0.0, 2.0]), np.array([False, True]))
        shown.tick(3, episodes)
        shown(told(50, [7.0]))
        shown.tick(51, episodes)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "1 / 100 steps   no episode ended yet",
        "2 / 100 steps   1 episode, return 3.0",
        "3 / 100 steps   2 episodes, return 3.0",
        "50 / 100 steps   100 steps/s   0s left   return 7.0",
        "51 / 100 steps   100 steps/s   0s left",
    ]


def test_the_display_keeps_no_more_than_it_draws(capsys):
    """It kept the returns of every period, of which a long run has millions."""
    with Display("title", ["seed 0"], 1000) as shown:
        for step in range(1, 100):
            shown(told(step, [float(step)]))
    assert shown.returns == [[float(step) for step in range(100 - display.DRAWN, 100)]]


@pytest.mark.parametrize("early", [False, True])
def test_the_end_says_why_it_is_one(early, capsys):
    with Display("title", ["seed 0"], 100, early=early) as shown:
        shown(told(50 if early else 100, [7.0], last=True))
    goal = "   every run has reached --stop-at" if early else ""
    step = 50 if early else 100
    assert f"{step} / 100 steps{goal}   return 7.0" in capsys.readouterr().out


def test_a_grid_is_shown_by_its_settings():
    """Three values of q with two seeds each are three rows; without a grid, or seeds, one each."""
    rows = rows_of(tiny.config(q=(1.5, 3.0, 4.0)))
    assert rows is not None
    assert [(row.label, row.cells) for row in rows] == [
        ("q=1.5", slice(0, 2)),
        ("q=3", slice(2, 4)),
        ("q=4", slice(4, 6)),
    ]
    assert rows_of(tiny.config(q=(1.5,))) is None
    assert rows_of(tiny.config(seeds=1)) is None
    assert title(tiny.config(seeds=1, q=(1.5,))) == "tal on CartPole-v1"
    assert title(tiny.config(q=(1.5,))) == "tal on CartPole-v1, 2 runs side by side"
