"""The outside check: its half in Stable-Baselines3 (golden/sb3_tal.npz), and its statistics."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import permutation_test

from tsallax import policies
from tsallax.agents import make_agent
from tsallax.networks import Dense, mlp
from tsallax.operators import get_algorithm, one_step
from tsallax.types import Bootstrap, HParams, Transition

ROOT = Path(__file__).parents[2]
HP = HParams(q=2.0, alpha=0.03, beta=0.99, gamma=0.99, learning_rate=0.01, max_grad_norm=10.0)
WARMUP, TRAIN_PERIOD, TARGET_PERIOD = 160, 4, 16  # of golden/make_sb3_tal_golden.py

with np.load(ROOT / "tests/golden/sb3_tal.npz", allow_pickle=False) as file:
    GOLDEN = dict(file)

algorithms = pytest.mark.parametrize("algo", ["tal", "tsallis-dqn"])


def golden(prefix: str) -> dict[str, np.ndarray]:
    return {n.removeprefix(prefix): x for n, x in GOLDEN.items() if n.startswith(prefix)}


@algorithms
@pytest.mark.parametrize("actions", [2, 5])
def test_the_targets_of_the_subclass_are_ours(algo, actions):
    x = golden(f"{algo}/targets-{actions}/")
    flat = {name: jnp.asarray(x[name][:, 0]) for name in ("actions", "rewards", "dones")}
    discount = HP.gamma * (1 - flat["dones"])
    keys = jnp.broadcast_to(jax.random.key(0), discount.shape)
    batch = Bootstrap(x["Q"], flat["actions"], flat["rewards"], discount, x["Q_next"], keys)
    policy = policies.make_policy("exact", 2.0)
    target = jax.vmap(one_step(get_algorithm(algo)), (0, None, None))
    np.testing.assert_allclose(target(batch, HP, policy), x["y"][:, 0], rtol=1e-5, atol=1e-5)
    pi = np.asarray(jax.vmap(lambda Q: policy(Q, HP))(x["Q"]))
    assert {1, 2} <= set(np.count_nonzero(pi, -1))  # greedy rows, and rows that are not


def layers(state: dict[str, np.ndarray]) -> list[Dense]:
    names = sorted({name.partition(".")[0] for name in state})
    return [
        Dense(jnp.asarray(state[f"{n}.weight"].T), jnp.asarray(state[f"{n}.bias"])) for n in names
    ]


@algorithms
def test_the_updates_of_the_subclass_are_ours(algo):
    """A run of Stable-Baselines3's own loop, its batches learned from again.

    It copies the target network before the update of the same step, we copy after it.
    """
    x = golden(f"{algo}/updates/")
    agent = make_agent(
        mlp((4,), (2,), hidden=(8, 8)), get_algorithm(algo), q=2.0, loss="huber", acting="argmax"
    )
    before, after = (layers(golden(f"{algo}/updates/{when}/")) for when in ("before", "after"))
    state = agent.init(jax.random.key(0))._replace(params=before, target_params=before)
    update = jax.jit(agent.update)
    for i in range(len(x["rewards"])):
        if (WARMUP + TRAIN_PERIOD * (i + 1)) % TARGET_PERIOD == 0:
            state = agent.copy_target(state)
        batch = Transition(
            x["observations"][i],
            x["actions"][i, :, 0],
            x["rewards"][i, :, 0],
            x["dones"][i, :, 0] > 0,
            x["next_observations"][i],
        )
        state, _ = update(state, batch, HP, jax.random.key(0))
    for ours, theirs, first in zip(state.params, after, before, strict=True):
        for a, b, c in zip(ours, theirs, first, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
            assert np.abs(b - c).max() > 1e-2  # far from where it began


@pytest.fixture
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks/outside_check"))


@pytest.mark.usefixtures("_scripts")
class TestStatistics:
    X, Y = np.array([1.0, 5.0, 6.0, 2.5, 9.0]), np.array([4.0, 3.0, -1.0, 2.0, 0.5])

    def test_the_p_value_is_scipys(self):
        from permutation import p_value

        def difference(x, y, axis):
            return np.mean(x, axis) - np.mean(y, axis)

        oracle = permutation_test((self.X, self.Y), difference, n_resamples=np.inf, vectorized=True)
        assert p_value(self.X, self.Y) == pytest.approx(oracle.pvalue)
        assert p_value(self.X, self.X) == 1

    def test_two_samples_far_apart_have_the_least_p_value(self):
        from permutation import p_value

        assert p_value(self.X, self.Y - 100) == 2 / 252

    def test_the_interval_by_hand(self):
        """Four runs per side: 70 labellings, of which 2.5 % are one: the outermost differences."""
        from permutation import shift_interval

        x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 5.0, 7.0])
        assert shift_interval(x, y) == (1 - 7, 4 - 0)

    def test_the_interval_holds_what_the_test_does_not_reject(self):
        """Just inside each end the one-sided test accepts at 2.5 %, just outside it rejects."""
        from permutation import labellings, shift_interval

        def upper(x, y):
            pool, first = np.concatenate([x, y]), labellings(len(x), len(y))
            return np.mean(first @ pool >= x.sum() - 1e-9)

        low, high = shift_interval(self.X, self.Y)
        assert low < np.mean(self.X) - np.mean(self.Y) < high
        for inside in (0.001, -0.001):
            assert (upper(self.X - low - inside, self.Y) > 0.025) == (inside > 0)
            assert (upper(self.Y, self.X - high + inside) > 0.025) == (inside > 0)

    def test_too_few_or_too_many_runs_are_refused(self):
        from permutation import labellings, shift_interval

        with pytest.raises(ValueError, match="too few"):
            shift_interval(self.X[:3], self.Y[:3])
        with pytest.raises(ValueError, match="too many"):
            labellings(11, 11)


@pytest.fixture
def both_sides(tmp_path):
    """Two periods of 1,000 steps of one seed on either side, the same episodes."""
    (tmp_path / "tal-0.csv").write_text("step,episode_return\n400,10\n1000,20\n1001,30\n")
    (tmp_path / "tal-1.part").write_text("step,episode_return\n400,10\n")  # unfinished
    labels, rest = "env,algo,choices,policy,q", "action_gap,max_q,entropy,support,kl,loss,diverged"
    rows = [
        f"CartPole-v1,tal,{choices},paper,2,0,{step},{row},1,1,1,1,1,1,-1\n"
        for choices in ("zoo", "sb3")
        for step, row in ((1000, "2,15.0"), (2000, "1,30.0"), (3000, "0,"))
    ]
    header = f"{labels},seed,step,episodes,episode_return,{rest}\n"
    (tmp_path / "metrics.csv").write_text(header + "".join(rows))
    return tmp_path


@pytest.mark.usefixtures("_scripts")
class TestReading:
    def test_both_formats_give_the_same_returns(self, both_sides):
        from compare import read_sb3, read_tsallax

        ours = read_tsallax(both_sides / "metrics.csv", "tal", 3000)
        for found in (read_sb3(both_sides, "tal", 3000), ours):
            np.testing.assert_array_equal(found.curve(), [[15, 30, 30]])
            np.testing.assert_array_equal(found.mean(0, 3000), [20])  # of episodes, not of periods

    def test_runs_that_are_cut_short_or_missing_are_refused(self, both_sides):
        from compare import read_tsallax

        with pytest.raises(SystemExit, match="no row for every 1000 steps to 4000"):
            read_tsallax(both_sides / "metrics.csv", "tal", 4000)
        with pytest.raises(SystemExit, match="no runs of dqn"):
            read_tsallax(both_sides / "metrics.csv", "dqn", 3000)

    @pytest.mark.parametrize("algo", ["tal", "tsallis-dqn"])
    @pytest.mark.parametrize(
        "change",
        [{}, {"loss": "squared"}, {"random_warmup": None}, {"q": [3.0]}, {"target_period": 2500}],
    )
    def test_the_study_has_the_settings_of_the_subclass_and_no_other(self, algo, change):
        """Those of sb3_tal.py, which cannot be imported without torch, as it records them."""
        from compare import check_same_setting, configuration

        about = json.loads((ROOT / "benchmarks/outside_check/results.json").read_text())["setting"]
        config = configuration(algo)
        check_same_setting(config, algo, about)
        if change:
            with pytest.raises(SystemExit, match="in Stable-Baselines3"):
                check_same_setting(config | change, algo, about)
