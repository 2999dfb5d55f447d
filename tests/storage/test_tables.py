"""Tables as they may be found: cut, damaged, endless. One reader reads them all, strictly."""

import itertools
import os
import tracemalloc

import jaxtyping
import numpy as np
import pytest

from tsallax.storage import tables
from tsallax.storage.files import Directory
from tsallax.storage.tables import (
    METRICS,
    TIMING,
    append_rows,
    open_rows,
    read_metrics,
    read_timing,
    write_rows,
)


@pytest.fixture
def folder(tmp_path):
    with Directory(tmp_path) as found:
        yield found


def write(folder, text, name="x.csv"):
    folder.write(name, text if isinstance(text, bytes) else text.encode())
    return read_all(folder, name)


def read_all(folder, name, needed=()):
    """The names, the rows and how many were left out."""
    with open_rows(folder, name, needed) as table:
        return table.names, list(table), table.bad


def test_there_and_back(folder):
    append_rows(folder, "x.csv", [["seed", "loss"], [0, 0.5]])
    append_rows(folder, "x.csv", [[1, "nan"], ["a,b", 'say "x"']])
    names, rows, bad = read_all(folder, "x.csv", ("loss",))
    assert (names, bad) == (["seed", "loss"], 0)
    assert rows == [["0", "0.5"], ["1", "nan"], ["a,b", 'say "x"']]


def test_a_whole_table_is_counted_and_takes_the_old_ones_place(folder):
    assert write_rows(folder, "x.csv", [["a"], [1], [2], [3]]) == 3
    assert write_rows(folder, "x.csv", [["a"]]) == 0
    assert read_all(folder, "x.csv") == (["a"], [], 0)
    assert folder.names() == ["x.csv"]


def test_a_last_line_that_does_not_end_is_not_counted(folder):
    """The run may be writing it now: 12 may become 123."""
    assert write(folder, "a,b\n1,2\n3,12") == (["a", "b"], [["1", "2"]], 1)


def test_rows_that_do_not_fit_are_left_out_and_counted(folder):
    _, rows, bad = write(folder, "a,b\n1,2\n3\n4,5,6\n\n7,8\n")
    assert (rows, bad) == ([["1", "2"], ["7", "8"]], 3)


def test_what_is_infinite_or_no_number_is_a_hole():
    values = ["inf", "-inf", "1e400", "1e300", "-1e300", "nan", "", "two", "0x10", "1e38", "-2"]
    np.testing.assert_array_equal([*map(tables.number, values)], [np.nan] * 9 + [1e38, -2])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it lacks loss"),
        ("\n", "it lacks loss"),
        ("seed,step\n0,1\n", "it lacks loss"),
        ("loss", "it lacks loss"),  # a header that does not end is none
        ("loss,loss\n1,2\n", "two columns of the same name"),
        ("loss\n" + "1" * (tables.LONGEST + 1) + "\n", "a line of more than 65,536 characters"),
        (b"\xff\x00\xfe" * 9, "it lacks loss"),
    ],
)
def test_what_is_no_table_is_refused(folder, text, words):
    folder.write("x.csv", text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=words):
        read_all(folder, "x.csv", ("loss",))


def test_a_table_is_bounded(folder, monkeypatch):
    with (folder.path / "x.csv").open("wb") as file:
        file.truncate(tables.LARGEST + 1)  # sparse: it takes no room
    with pytest.raises(ValueError, match="at most 268,435,456 are read"):
        read_all(folder, "x.csv")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda p: p.symlink_to("/dev/zero")])
def test_a_table_is_a_regular_file(folder, make):
    make(folder.path / METRICS)
    make(folder.path / TIMING)
    for read in (read_metrics, read_timing):
        with pytest.raises(ValueError, match="is not a regular file"):
            read(folder)


def test_metrics_come_by_cells(folder):
    """Two values of q, two seeds; rows out of order, one twice, one without a whole step."""
    rows = [(0, 1.5, 20, 2), (0, 1.5, 10, 1), (1, 1.5, 10, 3), (0, 3, 10, 4), (0, 3, 10, 5)]
    bad = [(0, 3, 0.5, 9), (0, 3, "", 9), (0, 3, -10, 9), ("x", 3, 10, 9), ("inf", 3, 10, 9)]
    bad += [(0, 3, 1e300, 9), (0, "nan", 10, 9), (0, "", 10, 9), (0, "two", 10, 9)]
    write_rows(folder, METRICS, [("seed", "q", "step", "loss"), *rows, *bad])
    cells, left_out = read_metrics(folder, ("loss",))
    assert left_out == len(bad)
    assert [(c.seed, c.numbers) for c in cells] == [(0, {"q": 1.5}), (1, {"q": 1.5}), (0, {"q": 3})]
    assert [c.steps.tolist() for c in cells] == [[10, 20], [10], [10]]
    assert [c.columns["loss"].tolist() for c in cells] == [[1, 2], [3], [5]]


def test_a_cell_may_have_an_infinite_number(folder):
    """q = inf is the greedy policy."""
    write_rows(folder, METRICS, [("seed", "q", "step"), (0, "inf", 10), (0, 2.0, 10)])
    cells, bad = read_metrics(folder)
    assert ([c.numbers["q"] for c in cells], bad) == ([np.inf, 2.0], 0)


def test_the_seed_stands_before_the_step(folder):
    write_rows(folder, METRICS, [("step", "seed"), (10, 0)])
    with pytest.raises(ValueError, match="does not say before the step which seed it is"):
        read_metrics(folder)


def test_metrics_need_their_columns(folder):
    write_rows(folder, METRICS, [("seed", "step", "loss"), (0, 1, 2)])
    with pytest.raises(ValueError, match="it lacks entropy"):
        read_metrics(folder, ("loss", "entropy"))


def test_timing_is_empty_where_there_is_none(folder):
    assert read_timing(folder) == []
    write_rows(folder, TIMING, [("step", "seconds", "steps_per_second"), (10, 1.5, 7), ("x", 1, 1)])
    assert read_timing(folder) == [(10, 1.5, 7.0)]


def test_a_table_takes_little_more_memory_than_its_numbers(folder, monkeypatch):
    """100,000 rows of two numbers, 1.6 MB as float64; as lists of text they took 25 MB."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # each row would be checked
    count = 100_000
    steps = ((0, step) for step in range(1, count + 1))
    tracemalloc.start()
    assert write_rows(folder, METRICS, itertools.chain([("seed", "step")], steps)) == count
    written = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    cells, _ = read_metrics(folder)
    read = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(cells[0].steps, np.arange(1, count + 1))
    assert written < 500_000  # the file has 0.8 MB
    assert read < 8_000_000
