"""`tsallax.train` and `tsallax.load`, on one tiny grid."""

from dataclasses import replace
from unittest import mock

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import tsallax
from support import tiny
from support.configs import paper
from support.host_envs import MISCHIEF
from support.tiny import TINY
from tsallax.api import _field
from tsallax.envs import CONSTRUCTORS
from tsallax.envs.cartpole import cartpole
from tsallax.networks import mlp
from tsallax.operators import ALGORITHMS, get_algorithm
from tsallax.storage.run_folder import read_about
from tsallax.training.build import make_run
from tsallax.types import Bootstrap, HParams

ALONE = {**TINY, "seeds": 1, "q": 2.0, "eval_every": 0}


@pytest.fixture(scope="module")
def result():
    return tsallax.train("CartPole-v1", time_limit=tiny.TIME_LIMIT, **TINY)


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("api") / "run")


def test_arrays_are_settings_seeds_iterations(result):
    assert [s["q"] for s in result.settings] == [1.5, 3]
    assert result.seeds == [0, 1]
    assert result.metrics["loss"].shape == (2, 2, 3)
    np.testing.assert_array_equal(result.metrics["step"][1, 1], [40, 80, 120])
    assert result.evaluations.shape == (2, 2, 3, 2)
    seen = np.isfinite(result.evaluations).all((0, 1, 3))
    np.testing.assert_array_equal(seen, [False, True, True])


def test_saved_like_the_command(saved, tmp_path):
    tiny.train(tmp_path / "x")
    for name in ("metrics.csv", "weights.safetensors"):
        assert (tmp_path / "x" / name).read_bytes() == (saved / name).read_bytes()
    assert (saved / "curves.png").stat().st_size > 10_000


def test_the_best_weights_are_saved_as_well(result, saved, finished):
    """Byte for byte those of the command, and with what they returned."""
    name = "best.safetensors"
    assert (saved / name).read_bytes() == (finished / name).read_bytes()
    assert read_about(saved).everything["best"] == read_about(finished).everything["best"]
    assert tsallax.load(saved, best=True).predict([0.0] * 4)[0] in (0, 1)


def test_best_is_the_largest_mean(result):
    setting, score = result.best("max_q", last=1)
    means = result.metrics["max_q"][:, :, -1].mean(1)
    assert setting == {"q": result.settings[int(means.argmax())]["q"]}
    assert score == pytest.approx(means.max())


def test_plot_has_a_line_a_setting(result):
    figure = result.plot()
    assert [len(axis.lines) for axis in figure.axes] == [2] * 4
    legend = figure.subfigs[0].legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["q = 1.5", "q = 3"]


def test_loaded_is_the_cell_that_was_trained(result, saved):
    states = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32)
    for cell, (setting, seed) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        Q, pi = tsallax.load(saved, cell).policy(states)
        own_Q, own_pi = result.model(setting, seed).policy(states)
        np.testing.assert_array_equal(Q, own_Q)
        np.testing.assert_array_equal(pi, own_pi)
    table = pd.read_csv(saved / "metrics.csv")
    score = table[table.step == 120].episode_return.to_numpy()  # one of three parts is the end
    score = pd.Series(np.nan_to_num(score, nan=-np.inf))
    best_Q, _ = tsallax.load(saved).policy(states)
    np.testing.assert_array_equal(
        best_Q, tsallax.load(saved, int(score.argmax())).policy(states)[0]
    )
    with pytest.raises(ValueError, match="cells 0 to 3, not 4"):
        tsallax.load(saved, 4)


def test_predict_draws_from_pi(result):
    model = result.model()
    state = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    Q, pi = model.policy(state)
    assert Q.shape == pi.shape == (2,)
    assert model.predict(state, deterministic=True)[0] == Q.argmax()
    actions, carried = model.predict(np.tile(state, (4000, 1)), state="as it came")
    assert carried == "as it came"
    assert actions.mean() == pytest.approx(pi[1], abs=4 * 0.5 / np.sqrt(4000))
    with pytest.raises(ValueError, match=r"have the shape \(4,\), or \(batch, 4\), not \(3,\)"):
        model.predict(np.zeros(3))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_predict_refuses_what_is_not_finite(result, bad):
    for call in (result.model().predict, result.model().policy):
        with pytest.raises(ValueError, match="the observation has NaN or infinite numbers"):
            call([0.0, bad, 0.0, 0.0])


def test_a_cell_of_a_notebook_is_short(result):
    """Two lines, not pages of weights; the numbers are those of the arrays."""
    evaluated = result.evaluations[:, :, -1].mean()
    first, second = repr(result).split("\n")
    assert first == "Result: tal on CartPole-v1, 2 seeds x 2 settings, 120 steps"
    assert second == (
        f"final return {np.nanmean(result.metrics['episode_return'][:, :, -1]):.1f}, "
        f"last evaluation {evaluated:.1f}"
    )
    page = result._repr_html_()
    assert page.count("<tr>") == 3
    assert "<th>q</th>" in page
    assert "<td>1.5</td>" in page
    assert repr(result.model(1, 1)) == (
        "Model: tal on CartPole-v1, seed 1, q = 3; observations (4,) of float32"
    )
    assert "CartPole" in result.model()._repr_html_()
    odd = replace(result, config=replace(result.config, env="<script>"))
    assert "<script>" not in odd._repr_html_()


def test_predict_never_draws_what_pi_rules_out(result):
    model = result.model()
    model._look = lambda x: (np.zeros((len(x), 3)), np.tile([0.0, 1.0, 0.0], (len(x), 1)))
    assert set(model.predict(np.zeros((1000, 4)))[0]) == {1}


def test_the_calls_of_evaluate_policy(result):
    """Stable-Baselines3's `evaluate_policy`, call by call: a vector of environments."""
    model = result.model()
    envs = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    observations, _ = envs.reset(seed=0)
    states, starts = None, np.ones(3, bool)
    for _ in range(20):
        actions, states = model.predict(
            observations, state=states, episode_start=starts, deterministic=True
        )
        assert actions.shape == (3,)
        observations, _, terminated, truncated, _ = envs.step(actions)
        starts = terminated | truncated
    assert states is None


@pytest.mark.parametrize("make", [mlp, lambda *x: mlp(*x)[:2]], ids=["network", "pair"])
def test_own_network_and_scalars(make, tmp_path):
    network = make((4,), (2,), (5,))
    own = tsallax.train("CartPole-v1", network=network, beta=0.5, policy=None, gamma=None, **ALONE)
    assert (own.config.policy, own.config.gamma) == ("exact", (0.99,))  # None is "not given"
    assert own.params[0].weight.shape == (1, 4, 5)
    assert own.settings[0]["beta"] == 0.5
    assert own.best()[0] == {}
    own.save(tmp_path / "own")
    state = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
    loaded = tsallax.load(tmp_path / "own", network=network).policy(state)
    np.testing.assert_array_equal(loaded[0], own.model().policy(state)[0])
    with pytest.raises(ValueError, match="a custom network"):  # never another one silently
        tsallax.load(tmp_path / "own")


def test_a_network_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\); CartPole-v1 needs \(2,\)"):
        tsallax.train("CartPole-v1", network=mlp((4,), (3,), (5,)), **TINY)


def test_a_name_that_is_given_anew_is_not_the_old_one():
    """What runs of one shape share is not shared with what the name stood for before."""
    x = Bootstrap(*(jnp.ones(n) for n in (2, (), (), (), 2)), jax.random.key(0))

    def run(bonus):
        mine = get_algorithm("dqn")._replace(name="mine", bonus=bonus)
        with mock.patch.dict(ALGORITHMS, {"mine": mine}):
            return make_run(tiny.config(algo="mine", q=None))

    def small(x, hp, policy):
        return 0.1 * x.r

    def large(x, hp, policy):
        return 5.0 * x.r

    first, again, other = run(small), run(small), run(large)
    assert [float(r.agent.bonus(x, HParams())) for r in (first, other)] == [pytest.approx(0.1), 5.0]
    assert first.learner.loop is again.learner.loop
    assert first.learner.loop is not other.learner.loop


def test_truncations_that_are_not_declared_are_refused():
    def careless():
        return cartpole(time_limit=5)._replace(id="Careless", time_limit=None)

    with (
        mock.patch.dict(CONSTRUCTORS, {"Careless": careless}),
        pytest.raises(ValueError, match=r"Careless truncated .* declares none"),
    ):
        tsallax.train("Careless", **ALONE)


def test_numbers_as_they_are_written_in_python(monkeypatch):
    assert _field("steps", 1e5) == 100_000
    assert _field("seeds", np.int64(3)) == 3
    assert _field("hidden", [64, 64]) == (64, 64)
    assert _field("hidden", 64) == (64,)
    assert _field("q", 2) == (2.0,)
    assert _field("q", jnp.array([1.5, 2.0])) == (1.5, 2.0)
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)  # a user has no type checks
    assert type(_field("time_limit", 15.0)) is int
    assert type(_field("double", np.True_)) is bool
    assert _field("hidden", np.array([8, 9])) == (8, 9)
    for name, value, words in [
        ("steps", 1000.5, r"a whole number, not 1000\.5"),
        ("steps", float("inf"), "a whole number, not inf"),
        ("time_limit", 7.5, r"a whole number, not 7\.5"),
        ("stop_at", "300", "a number, not '300'"),
        ("epsilon_fraction", True, "a number, not True"),
        ("layer_norm", "no", "True or False, not 'no'"),  # it was as good as True
        ("double", 1, "True or False, not 1"),  # a folder in which it stands is refused
    ]:
        with pytest.raises(ValueError, match=f"{name} must be {words}"):
            tsallax.train("CartPole-v1", **{name: value})


def test_a_model_that_is_not_there_is_refused(result):
    with pytest.raises(ValueError, match="settings 0 to 1 and seeds 0 to 1"):
        result.model(seed=2)


def test_an_environment_that_fails_is_told_and_saved(tmp_path):
    with (
        mock.patch.dict(MISCHIEF, {1: "raise"}),
        pytest.warns(UserWarning, match="cell 1 stopped at step .*the cable is out"),
    ):
        found = tsallax.train("tests/Naughty-v0", **{**TINY, "q": 2.0, "seeds": 3, "eval_every": 0})
    found.save(tmp_path / "run")
    assert "1" in read_about(tmp_path / "run").everything["stopped"]


def test_unknown_fields_are_refused():
    with pytest.raises(ValueError, match="unknown setting 'betta'; did you mean 'beta'"):
        tsallax.train("CartPole-v1", betta=1)
    with pytest.raises(ValueError, match="unknown setting 'save_seconds'"):  # no checkpoints here
        tsallax.train("CartPole-v1", save_seconds=1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"q": "two"}, "q must be a number or several, not 'two'"),
        ({"q": [[1.0], [2.0, 3.0]]}, "q must be a number or several"),
        ({"algo": ["tal", "dqn"]}, "algo must be a name"),
        ({"algo": "mdqn", "q": [1, 2]}, "mdqn has its own policy, without q"),
        ({"algo": "dqn", "q": [1, 2]}, "dqn has its own policy, without q"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        tsallax.train("CartPole-v1", **settings)


def test_a_wrong_word_is_refused(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)  # a user has no type checks
    with pytest.raises(ValueError, match="preset must be one of tuned, paper, gym, minatar, atari"):
        paper("CartPole-v1", preset="gim")


@pytest.mark.parametrize("how", ["false", "comparison", "raise"])
def test_a_callback_ends_the_run(how, tmp_path):
    seen = []

    def callback(progress):
        seen.append(progress.period.step)
        if how == "comparison":  # NumPy's own type of bool
            return progress.period.metrics.step.max() < 80
        if len(seen) == 2:
            if how == "raise":
                raise tsallax.StopTraining
            return False
        return None

    result = tsallax.train(tiny.ENV, callback=callback, time_limit=tiny.TIME_LIMIT, **TINY)
    assert seen == [40, 80]
    assert result.metrics["step"].max() == 80
    folder = result.save(tmp_path / "run")
    assert read_about(folder).status == "stopped"
    assert tsallax.load(folder).predict(np.zeros(4))[0].shape == ()
