"""Without what only some operating systems have: no locks of files, no choice of cores."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import tiny
from tsallax.storage.run_folder import read_about

SOURCE = Path(__file__).parents[2] / "src"
HIDDEN = """
import os, sys
sys.modules["fcntl"] = None  # an import of it fails
for name in ("sched_getaffinity", "sched_setaffinity"):
    if hasattr(os, name):
        delattr(os, name)
"""
STUDY = """
title = "one job"

[common]
env = "CartPole-v1"
steps = 40
seeds = 2
hidden = [8]
batch = 8
buffer = 100
target_period = 40
time_limit = 15

[[runs]]
q = [1.5, 3]
"""


@pytest.fixture
def elsewhere(tmp_path):
    """Runs the command where these are hidden, from it and from the processes it starts."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDDEN)
    path = os.pathsep.join([str(tmp_path / "site"), str(SOURCE)])

    def command(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "tsallax", *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return command


def test_they_are_hidden(elsewhere, tmp_path):
    look = "import os; print(hasattr(os, 'sched_getaffinity')); import fcntl"
    path = {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", look], env=os.environ | path, capture_output=True, text=True
    )
    assert done.stdout == "False\n"
    assert "import of fcntl halted" in done.stderr


def test_a_run_is_trained_and_watched(elsewhere, tmp_path):
    out = tmp_path / "run"
    elsewhere("train", "CartPole-v1", *tiny.flags(steps=40, eval_every=0), "--out", out)
    assert read_about(out).status == "done"
    assert "40 / 40 steps" in elsewhere("watch", out)


@pytest.mark.slow
def test_a_sweep_of_one_job_is_carried_out(elsewhere, tmp_path):
    (tmp_path / "one.toml").write_text(STUDY)
    sweep = ["sweep", tmp_path / "one.toml", "--out", tmp_path / "out", "--width", 4]
    assert "1 run, 4 cells; 1 to be done" in elsewhere(*sweep, "--workers", 1)
    assert (tmp_path / "out" / "one" / "metrics.csv").read_text().count("\n") == 1 + 4
