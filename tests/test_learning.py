"""Learning runs through the command line, slow: the table of examples/learning.py."""

import os
import subprocess

import pytest

from learning import TASKS, best_window, returns


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_learns(task, tmp_path):
    # As a user runs it: the compiler's options are those of the suite otherwise.
    environment = {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"}
    subprocess.run(task.command(tmp_path / "run"), check=True, env=environment)
    assert best_window(returns(tmp_path / "run"), task.window) >= task.wanted
