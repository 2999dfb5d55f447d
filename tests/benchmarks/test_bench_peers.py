"""The peer benchmark's own sums: the protocol of turns, ratios within rounds, the page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "benchmarks/peers"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))


def test_a_contender_takes_its_turns(tmp_path):
    """Three phases of a loop that takes 4 steps at a time, and prints what it should not."""
    script = tmp_path / "contend.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(PEERS)!r})\n"
        "import turns\n"
        "turns.PACE = 0.05\n"
        "t = turns.Turns(10, 4)\n"
        "while True:\n"
        "    print('noise')\n"
        "    time.sleep(0.001)\n"
        "    t.done(4)\n"
    )
    lines = '{"go": 10}\n{"go": 8}\n{"end": true}\n'
    done = subprocess.run([sys.executable, script], input=lines, capture_output=True, text=True)
    ready, first, second, end = map(json.loads, done.stdout.splitlines())
    assert 0 < ready["ready"] < 60
    assert ready["compile"] == 0
    assert (first["steps"], second["steps"]) == (12, 8)
    assert first["seconds"] >= 0.003
    assert end["bytes"] > 1e6


def test_a_ratio_is_taken_within_a_round():
    from page import ratios, spread

    fast, slow = {"rates": [10.0, 40.0, 20.0]}, {"rates": [10.0, 10.0, 5.0]}
    assert ratios(fast, slow) == [1, 4, 4]
    assert spread(ratios(fast, slow), ".2f") == "4.00 (1.00 to 4.00)"  # the medians': 20 / 10


def test_the_launch_has_a_row_for_each_event():
    from launch import METRICS, STEP
    from page import launch_table

    found = {
        STEP: {"cold": [9.0, 10.0, 8.0], "warm": [3.0]},
        METRICS: {"cold": [11.0], "warm": [4.0]},
    }
    _, _, _, step, metrics, _ = launch_table(found)
    assert step == "| from the start to the first step | 9.0 (8.0 to 10.0) | 3.0 (3.0 to 3.0) |"
    assert "first metrics | 11.0" in metrics


def test_the_page_keeps_its_prose(tmp_path):
    from page import BEGIN, END, put

    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="peers: begin"):
        put(page, "new")


def test_every_seed_runs_once():
    from contenders import SEEDS, line_up

    for _, parts in line_up("gym", "seeds", (0, 1)):
        seeds = []
        for part in parts:
            count, first = (int(option.rpartition("=")[2]) for option in part.options[-2:])
            seeds += range(first, first + count)
        assert seeds == list(range(SEEDS))


def test_the_real_page_has_the_marks():
    from page import BEGIN, END

    text = (PEERS.parent.parent / "docs/performance.md").read_text()
    assert 0 < text.find(BEGIN) < text.find(END)
