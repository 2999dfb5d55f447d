"""Cells shared out to several devices of one host: the same runs, to rounding."""

import os
import subprocess
import sys

import jax
import pytest

from support.configs import paper
from tsallax.training.build import make_run

SMALL = {"hidden": (8,), "batch": 8, "buffer": 100, "target_period": 100, "steps": 200}
SCRIPT = """
import sys, numpy as np, jax
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

own = dict(algo="dqn", seeds=2, gamma=(0.9, 0.99), **{small})
config = resolve(Config("CartPole-v1", preset="paper", **own))
found = []
for devices in (1, 2):
    run = make_run(config, devices=devices)
    for period in run.learner.train(run.learner.start(), lambda *_: None):
        pass
    if devices > 1:
        assert len(period.state.step.sharding.device_set) == devices
    found.append([np.asarray(x) for x in jax.tree.leaves((period.params, period.metrics))])
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


def test_devices_that_are_not_there_or_do_not_divide(monkeypatch):
    config = paper("CartPole-v1", seeds=3, **SMALL)
    with pytest.raises(ValueError, match=r"devices must be 1 to \d+, .* not 1000001"):
        make_run(config, devices=1 + 10**6)
    with pytest.raises(ValueError, match=r"devices must be 1 to .* not 0"):
        make_run(config, devices=0)
    with pytest.raises(ValueError, match="several devices need a compiled environment"):
        make_run(paper("LunarLander-v3"), devices=2)
    monkeypatch.setattr(jax, "local_device_count", lambda: 3)
    assert make_run(config, devices=3).learner.devices == 3
    with pytest.raises(ValueError, match="3 runs side by side cannot be shared out to 2 devices"):
        make_run(config, devices=2)
