"""Cells shared out to several devices of one host: the same runs, to rounding."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tsallax.training.config import Config, resolve
from tsallax.training.run import make_run

SMALL = {"hidden": (8,), "batch": 8, "buffer": 100, "target_period": 100, "steps": 200}
SCRIPT = """
import sys, numpy as np, jax
from tsallax.training.config import Config, resolve
from tsallax.training.run import make_run

config = resolve(Config("CartPole-v1", algo="dqn", seeds=2, gamma=(0.9, 0.99), **{small}))
found = []
for devices in (1, 2):
    run = make_run(config, devices=devices)
    for state, metrics in run.train(run.start(), None):
        pass
    if devices > 1:
        assert len(state.step.sharding.device_set) == devices
    found.append([np.asarray(x) for x in jax.tree.leaves((state.learner.params, metrics))])
for one, two in zip(*found, strict=True):
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
print("equal")
"""


@pytest.mark.slow
def test_the_runs_do_not_depend_on_the_number_of_devices():
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{small}", repr(SMALL))],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert child.stdout.strip() == "equal", child.stderr[-2000:]


def test_devices_that_are_not_there_or_do_not_divide():
    config = resolve(Config("CartPole-v1", seeds=3, **SMALL))
    with pytest.raises(ValueError, match="devices must be 1 to"):
        make_run(config, devices=1 + 10**6)
    with pytest.raises(ValueError, match="for environments that are compiled"):
        make_run(resolve(Config("LunarLander-v3")), devices=2)
    assert np.all([cell.seed < 3 for cell in make_run(config).cells])
