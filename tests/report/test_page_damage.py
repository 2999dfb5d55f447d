"""Runs and results that are damaged: `tsallax report` names them and shows the others."""

import json
import os

import pytest

from support import runs
from tsallax import cli
from tsallax.storage.run_folder import RUN
from tsallax.storage.tables import METRICS


def cut(file):
    file.write_bytes(file.read_bytes()[:-9])


def nonsense(file):
    lines = file.read_text().splitlines(keepends=True)
    lines[3], lines[4] = "\x00\xff,nonsense\n", lines[4].replace(",4000,", ",1e400,")
    file.write_text("".join(lines))


def about(change):
    """Harm to `run.json` as it is read."""

    def harm(file):
        found = json.loads((file.parent / RUN).read_text())
        change(found)
        (file.parent / RUN).write_text(json.dumps(found))

    return harm


def instead(make):
    def harm(file):
        file.unlink()
        make(file)

    return harm


LOST = {
    "no metrics": lambda file: file.unlink(),
    "empty metrics": lambda file: file.write_text(""),
    "binary metrics": lambda file: file.write_bytes(bytes(range(256)) * 40),
    "other columns": lambda file: file.write_text(file.read_text().replace("loss", "lost", 1)),
    "a pipe": instead(os.mkfifo),
    "a folder": instead(os.mkdir),
    "a link": instead(lambda file: file.symlink_to("/dev/zero")),
    "only a header": lambda file: file.write_text(file.read_text().partition("\n")[0] + "\n"),
    "damaged run.json": lambda file: (file.parent / RUN).write_text("{"),
    "deep run.json": lambda file: (file.parent / RUN).write_text("[" * 100_000),
    "binary run.json": lambda file: (file.parent / RUN).write_bytes(b"\xff\x00"),
    "run.json is a list": lambda file: (file.parent / RUN).write_text("[]"),
    "another schema": about(lambda a: a.update(schema=4)),
    "no status": about(lambda a: a.update(status="asleep")),
    "a list of statuses": about(lambda a: a.update(status=["done"])),
    "config is text": about(lambda a: a.update(config="x")),
    "env is a number": about(lambda a: a["config"].update(env=7)),
    "steps are text": about(lambda a: a["config"].update(steps="many")),
    "infinite steps": about(lambda a: a["config"].update(steps=float("inf"))),
    "no cells": about(lambda a: a.update(cells=[])),
    "cells are numbers": about(lambda a: a.update(cells=[1])),
    "a seed is text": about(lambda a: a["cells"][0].update(seed="x")),
    "a cell without seed": about(lambda a: a["cells"][0].pop("seed")),
    "stopped is a list": about(lambda a: a.update(stopped=[1])),
    "a cell that is none": about(lambda a: a.update(stopped={"7": "x"})),
    "versions are text": about(lambda a: a.update(versions="1")),
    "no run at all": lambda file: (file.parent / RUN).unlink(),
}


@pytest.mark.parametrize("harm", LOST.values(), ids=LOST)
def test_a_damaged_run_is_named_and_the_others_are_shown(harm, tmp_path, capsys):
    runs.write_run(tmp_path / "good")
    bad = runs.write_run(tmp_path / "bad", algo="dqn")
    harm(bad / METRICS)
    found = runs.shown(tmp_path)
    assert {name for name, _ in found["problems"]} == {"bad"}
    assert found["sets"][0]["facets"][1]["values"] == ["tal"]
    assert str(tmp_path) not in json.dumps(found)
    assert cli.main(["report", str(bad), "-o", str(tmp_path / "page.html")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("tsallax: nothing to report: bad: ")
    assert message.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(("harm", "rows"), [(cut, 9), (nonsense, 8)], ids=["cut", "nonsense"])
def test_good_rows_of_a_damaged_table_are_shown(harm, rows, tmp_path):
    harm(runs.write_run(tmp_path / "bad") / METRICS)
    found = runs.shown(tmp_path)
    (curve,) = found["sets"][0]["curves"]
    assert len(curve["steps"]) == rows
    assert found["problems"][0] == ("bad", f"rows of metrics.csv that cannot be read: {10 - rows}")
    lost_its_end = harm is cut
    assert bool(curve["finals"]) != lost_its_end
    assert (("bad", "seed 0: rows to step 9,000 only") in found["problems"]) == lost_its_end


def test_values_that_are_not_finite_are_holes(tmp_path):
    file = runs.write_run(tmp_path / "bad") / METRICS
    lines = [line.split(",") for line in file.read_text().splitlines()]
    at = lines[0].index("action_gap")
    for line, value in zip(lines[1:], ("inf", "-inf", "nan", "1e300", ""), strict=False):
        line[at] = value
    file.write_text("\n".join(map(",".join, lines)) + "\n")
    (curve,) = runs.shown(tmp_path)["sets"][0]["curves"]
    assert curve["bands"]["action_gap"]["iqm"] == [None] * 5 + [7.746, 8.367, 8.944, 9.487, 10]


RESULTS = {
    "no about": lambda p: (p / "about.json").unlink(),
    "about is a list": lambda p: (p / "about.json").write_text("[]"),
    "binary table": lambda p: (p / METRICS).write_bytes(bytes(range(256))),
    "cut table": lambda p: (p / METRICS).write_text((p / METRICS).read_text()[:-150]),
    "steps are no numbers": lambda p: (p / METRICS).write_text(
        (p / METRICS).read_text().replace(",10000,", ",nan,")
    ),
    "a seed twice": lambda p: (p / METRICS).write_text(
        (p / METRICS).read_text().replace(",1,", ",0,")
    ),
    "no env": lambda p: (p / METRICS).write_text((p / METRICS).read_text().replace("env", "x", 1)),
    "only a header": lambda p: (p / METRICS).write_text(
        (p / METRICS).read_text().partition("\n")[0] + "\n"
    ),
}


@pytest.mark.parametrize("harm", RESULTS.values(), ids=RESULTS)
def test_damaged_results_are_named(harm, good_runs, tmp_path):
    row = {"labels": {"env": "e", "algo": "tal"}, "seeds": 2, "level": 1.0}
    harm(runs.write_results(tmp_path / "study", [row]))
    found = runs.shown(good_runs, tmp_path / "study")
    assert [name for name, _ in found["problems"]] == ["study"]
    assert [s["name"] for s in found["sets"]] == ["runs"]
