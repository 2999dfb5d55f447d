"""The scripts in examples/ do what they say, at a small scale."""

import math
from pathlib import Path

import numpy as np
import pytest

import own_env
import policy
import tabular
import train_q
from tsallax.policies import tsallis_entropy, tsallis_policy

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"steps": 400, "target_period": 200, "hidden": (16,), "batch": 32}


@pytest.mark.parametrize("name", ["policy", "tabular", "train_q", "own_env"])
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60


def test_policy(capsys):
    policy.main()
    assert "q = 2.0  0.583 0.333 0.083 0.000   3 actions left" in capsys.readouterr().out
    rows = policy.policies()
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(policy.gradient(2.0), rows[3], atol=1e-6)
    pi = tsallis_policy(policy.Q, 2.0, policy.alpha_for(0.25))
    np.testing.assert_allclose(tsallis_entropy(pi, 2.0, 0.5), 0.25, rtol=1e-4)


def test_tabular():
    """Without noise all repair a worn machine; with it an advantage keeps the errors small."""
    for found in tabular.study(noise=0.0).values():
        assert (found.pi.argmax(-1) == tabular.REPAIR).tolist() == [False] * 3 + [True] * 3
    errors = {name: s.errors[-100:].mean() for name, s in tabular.study(noise=0.3).items()}
    assert max(errors["al"], errors["tal"], errors["mdqn"]) < 1
    assert errors["dqn"] > 3


@pytest.mark.slow
def test_train_q(tmp_path):
    result = train_q.sweep(q=(1.0, 2.0, math.inf), seeds=2, **{**SMALL, "target_period": 100})
    assert [row.split()[0] for row in train_q.table(result).splitlines()] == [
        "q",
        "1.0",
        "2.0",
        "inf",
    ]
    assert result.best()[0]["q"] in (1.0, 2.0, math.inf)
    assert all(setting["k"] == 0.5 for setting in result.settings)
    assert (result.save(tmp_path / "run") / "curves.png").exists()


@pytest.mark.slow
def test_own_env(tmp_path):
    result = own_env.train(tmp_path, **{**SMALL, "target_period": 200})
    assert (tmp_path / "thermostat.png").exists()
    assert 0 <= result.best()[1] <= 100
    env = own_env.thermostat()
    state = own_env.State(*np.float32([21.5, 21.5]), np.int32(99))
    after, outcome = env.step(state, np.int32(0), own_env.jax.random.key(0))  # cools by 1.5
    assert (float(after.inside), float(outcome.reward), bool(outcome.truncated)) == (20, 1, True)
    assert env.render(after).shape == (40, 8, 3)
