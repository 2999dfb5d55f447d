"""Learning runs through the command line, slow: the table of examples/learning.py, and one more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from learning import TASKS, best_window, returns

# As a user runs it: the compiler's options are those of the suite otherwise.
ENVIRONMENT = {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_learns(task, tmp_path):
    subprocess.run(task.command(tmp_path / "run"), check=True, env=ENVIRONMENT)
    assert best_window(returns(tmp_path / "run"), task.window) >= task.wanted


@pytest.mark.slow
def test_the_atari_stack_learns_what_it_sees(tmp_path):
    """Frames, stack, quantiles, the Nature network: a ball to be caught. Random play gets -0.3."""
    flags = [
        *("--preset", "atari", "--alpha", "0.03", "--hidden", "64", "--quantiles", "20"),
        *("--train-period", "2", "--target-period", "400", "--buffer", "10000"),
        *("--learning-rate", "1e-3", "--epsilon-fraction", "0.3", "--steps", "12000"),
    ]
    command = [sys.executable, "-m", "tsallax", "train", "host_envs:tests/Drop-v0", *flags]
    path = {"PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    subprocess.run([*command, "--out", str(tmp_path / "run")], check=True, env=ENVIRONMENT | path)
    assert returns(tmp_path / "run").iloc[-5:].mean().item() >= 0.9
