"""Presets hold the paper's tables; what is left open is filled; bad input is one clear line."""

import dataclasses
import json
import math

import pytest

from support.configs import paper
from tsallax.experiments.jobs import folder_name
from tsallax.storage.run_folder import SCHEMA, digest_of, plain
from tsallax.training.build import make_cells
from tsallax.training.config import NUMBERS, Config, grid, to_json, varied
from tsallax.training.presets import COMMON
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import from_json
from tsallax.types import HParams


def test_table_1():
    config = paper("CartPole-v1", steps=500_000)
    assert (config.train_period, config.buffer, config.batch, config.gamma) == (
        4,
        50_000,
        128,
        (0.99,),
    )
    assert (config.epsilon, config.epsilon_end, config.alpha, config.beta) == (
        (0.01,), (0.01,), (0.03,), (0.99,),
    )  # fmt: skip
    assert (config.hidden, config.optimiser, config.learning_rate) == ((512, 512), "adam", (1e-3,))
    assert config.target_period == 1000
    assert paper("Acrobot-v1").target_period == 2500


def test_paper_and_sb3_choices():
    printed, sb3 = (paper("CartPole-v1", choices=c) for c in ("paper", "sb3"))
    assert (printed.loss, printed.max_grad_norm, printed.warmup, printed.acting) == (
        "squared", (math.inf,), 128, "pi",
    )  # fmt: skip
    assert (sb3.loss, sb3.max_grad_norm, sb3.warmup, sb3.acting) == (
        "huber", (10.0,), 50_000, "argmax",
    )  # fmt: skip
    assert (printed.random_warmup, sb3.random_warmup) == (False, True)


def test_sb3_is_a_set_per_domain():
    games, atari = (paper(env, choices="sb3") for env in ("MinAtar/Breakout", "ALE/Pong-v5"))
    assert (games.loss, games.warmup, games.max_grad_norm) == ("huber", 5_000, (math.inf,))
    assert (games.optimiser, games.optimiser_eps) == ("rmsprop", 0.01)
    assert (atari.optimiser_eps, atari.max_grad_norm) == (0.01 / 32, (math.inf,))
    assert (atari.episodic_life, atari.acting) == (True, "argmax")
    quantile = paper("CartPole-v1", choices="sb3", head="quantile")
    assert (quantile.optimiser_eps, quantile.max_grad_norm) == (0.01 / 32, (math.inf,))
    assert quantile.episodic_life is None
    assert paper("CartPole-v1", choices="sb3").optimiser_eps == 1e-8


def test_zoo_learns_from_the_start_with_as_many_updates_as_steps():
    zoo = paper("LunarLander-v3", choices="zoo")
    assert (zoo.warmup, zoo.updates, zoo.train_period) == (128, 4, 4)
    assert (zoo.loss, zoo.acting) == ("huber", "argmax")
    with pytest.raises(ValueError, match="for the preset gym"):
        paper("MinAtar/Breakout", choices="zoo")


def test_user_over_algorithm_over_preset():
    assert paper("CartPole-v1", algo="mdqn").clip == (-1.0,)
    assert paper("CartPole-v1", algo="mdqn", clip=(-math.inf,)).clip == (-math.inf,)
    assert paper("CartPole-v1", algo="sal").beta == (1.0,)
    assert paper("CartPole-v1", algo="sal", beta=(0.5,)).beta == (0.5,)


def test_a_choice_of_false_is_a_choice():
    assert paper("ALE/Pong-v5").clip_rewards is True
    assert paper("ALE/Pong-v5", clip_rewards=False).clip_rewards is False


def test_resolving_twice_changes_nothing():
    config = paper("CartPole-v1", algo="mdqn", steps=1001)
    assert config.steps == 1004
    assert resolve(config) == config


def test_every_traced_number_is_a_field():
    fields = {f.name for f in dataclasses.fields(Config)}
    from_steps = {"epsilon_steps", "random_steps", "total_steps"}
    assert set(HParams._fields) - from_steps == set(NUMBERS) <= fields


def test_grid():
    config = paper("CartPole-v1", q=(1.5, 2.0), beta=(0.0, 0.9, 0.99))
    assert varied(config) == ["q", "beta"]
    assert [(c["q"], c["beta"]) for c in grid(config)] == [
        (1.5, 0.0), (1.5, 0.9), (1.5, 0.99), (2.0, 0.0), (2.0, 0.9), (2.0, 0.99),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env": "Cartpole-v1"}, "unknown environment 'Cartpole-v1'; did you mean 'CartPole-v1'"),
        ({"env": "zzz"}, "unknown environment 'zzz'; there are"),
        ({"algo": "tall"}, "unknown algorithm 'tall'; did you mean 'tal'"),
        ({"seeds": 0}, "seeds must be at least 1, not 0"),
        ({"steps": -5}, "steps must be at least 1, not -5"),
        ({"steps": 100}, "100 steps make no update: the first one comes after 128"),
        ({"batch": 130, "steps": 132}, "132 steps make no update"),  # both become 132
        ({"choices": "sb3", "steps": 50_000}, "first one comes after 50000"),
        ({"q": (math.nan,)}, "q must be a number, not nan"),
        ({"q": (2.0, -1.0)}, "q must be positive for the exact policy; --policy paper takes any"),
        ({"alpha": (0.0,)}, "alpha must be positive, not 0"),
        ({"gamma": (1.1,)}, "gamma must be between 0 and 1, not 1.1"),
        ({"epsilon": (2.0,)}, "epsilon must be between 0 and 1, not 2"),
        ({"learning_rate": (math.inf,)}, "learning_rate must be positive, not inf"),
        ({"clip": (1.0,)}, "clip must be 0 or less, not 1"),
        ({"batch": -1}, "batch must be at least 1, not -1"),
        ({"batch": 64, "buffer": 32}, r"buffer \(32\) must hold a batch \(64\)"),
        ({"train_period": 3}, r"target_period \(1000\) must be a multiple of train_period \(3\)"),
        ({"hidden": (64, 0)}, "hidden widths must be whole and at least 1"),
        ({"epsilon_fraction": 0.0}, "epsilon_fraction must be in"),
        ({"sticky": 1.5}, "sticky must be between 0 and 1"),
        ({"time_limit": 0}, "time_limit must be at least 1"),
        ({"first_seed": -1}, "first_seed must be 0 or more, not -1"),
        ({"first_seed": 2**31 - 1, "seeds": 2}, "seeds must be below 2"),
        ({"env": "./envs:My-v0"}, "before the colon stands a package, no path"),
        ({"env": "MinAtar/Breakout", "loop": "host"}, "has no host loop"),
        ({"env_timeout": 3.0}, "options of the host loop: give --loop host as well"),
        ({"loop": "host", "batch": 1, "buffer": 1}, "buffer must be at least 2 on the host"),
        ({"q": (2.0, 2.0000001)}, "q has a value twice, to six digits"),
        ({"algo": "cvi", "q": (2.0,)}, "cvi has its own policy, without q"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        resolve(dataclasses.replace(Config("CartPole-v1", preset="paper"), **change))


# --- Not given is None ----------------------------------------------------------------------------


def test_what_is_given_is_kept_whatever_its_value():
    """A 0 is a 0: only None is filled in."""
    sb3 = {"choices": "sb3", "steps": 60_000}
    assert paper("CartPole-v1", **sb3).warmup == 50_000
    assert paper("CartPole-v1", **sb3, warmup=0).warmup == 128  # a batch
    assert paper("ALE/Pong-v5").stack == 4
    assert paper("ALE/Pong-v5", stack=0).stack == 0
    assert paper("CartPole-v1", optimiser_eps=0.0).optimiser_eps == 0.0
    assert paper("ALE/Pong-v5", choices="sb3", episodic_life=False).episodic_life is False


def test_a_resolved_configuration_has_the_values_in_effect():
    config = paper("CartPole-v1")
    assert (config.q, config.gamma, config.entropy) == ((2.0,), (0.99,), (0.0,))
    assert (config.clip, config.delta) == ((-math.inf,), (1e-8,))
    assert paper("CartPole-v1", algo="mdqn").q == (1.0,)


@pytest.mark.parametrize(
    "said",
    [
        {"q": (2.0,)},
        {"q": (2.0,), "k": (0.5,)},
        {"k": (0.5,)},
        {"log_weight": (0.03,)},
        {"gamma": (0.99,), "batch": 128, "stack": 0, "preset": "gym", "loop": "compiled"},
    ],
)
def test_saying_what_would_be_filled_in_changes_nothing(said):
    """Not the folder's name, not the digest, not the cells, not the program."""
    silent, given = paper("CartPole-v1"), paper("CartPole-v1", **said)
    assert given == silent
    assert folder_name(given) == folder_name(silent)
    assert digest_of(to_json(given)) == digest_of(to_json(silent))
    assert make_cells(given) == make_cells(silent)


def test_every_cell_has_every_number_in_effect():
    config = paper("CartPole-v1", q=(1.0, 2.0), alpha=(0.03, 0.1))
    cells = [cell.numbers for cell in make_cells(config)]
    assert [(c["q"], c["k"], c["log_weight"]) for c in cells] == [
        (1.0, 1.0, 0.03), (1.0, 1.0, 0.1), (2.0, 0.5, 0.03), (2.0, 0.5, 0.1),
    ]  # fmt: skip
    given = paper("CartPole-v1", q=(1.0, 2.0), k=(0.5,), log_weight=(1.0,))
    assert {(c.numbers["k"], c.numbers["log_weight"]) for c in make_cells(given)} == {(0.5, 1.0)}


def test_defaults_of_the_presets_are_those_of_the_equations():
    """A number that no preset sets is the same from the command line and from `HParams()`."""
    there = {name: value for name, value in COMMON.items() if name in HParams._fields}
    assert there == {name: (getattr(HParams(), name),) for name in there}
    assert there.keys() >= {"q", "gamma", "entropy", "clip", "delta"}


def test_there_and_back():
    for more in ({}, {"q": (1.5, math.inf)}, {"k": (0.7,), "hidden": (8, 8)}, {"time_limit": 9}):
        config = paper("CartPole-v1", **more)
        stored = json.loads(json.dumps(plain(to_json(config))))
        assert from_json(stored, SCHEMA) == config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": "8"}, "damaged: batch"),
        ({"batch": True}, "damaged: batch"),
        ({"batch": 8.0}, "damaged: batch"),
        ({"hidden": [8.5]}, "damaged: hidden"),
        ({"hidden": 8}, "the configuration is damaged"),
        ({"q": 2.0}, "the configuration is damaged"),
        ({"q": ["two"]}, "could not convert"),
        ({"clip_rewards": 1}, "damaged: clip_rewards"),
        ({"nonsense": 1}, "other fields: nonsense"),
        ({"warmup": 0}, "was not resolved"),
        ({"gamma": None}, "was not resolved"),
        ({"k": [0.5]}, "was not resolved"),
    ],
)
def test_a_damaged_configuration_is_refused(change, message):
    stored = plain(to_json(paper("CartPole-v1")))
    with pytest.raises(ValueError, match=message):
        from_json(stored | change, SCHEMA)
