"""Valid but enormous settings are refused at once, before anything is built from them."""

import math

import pytest

from tsallax.training.build import make_cells
from tsallax.training.checks import check_limits, count_cells
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

PARALLEL = {"learner": "parallel"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeds": 10**9}, "1,000,000,000 runs side by side are too many, at most 10,000"),
        ({"seeds": 10**12}, r"seeds must be below 2\^31"),
        (dict.fromkeys(("q", "alpha", "beta", "gamma"), tuple(i / 301 for i in range(1, 301))),
         "8,100,000,000 runs side by side"),
        ({"hidden": (8,) * 100_000}, "hidden: 100,000 layers are too many, at most 100"),
        ({"steps": 10**18}, r"steps must be below 2\^31, not 1.0e\+18"),
        ({"target_period": 10**9}, "a target period: 32,000,000,000 transitions drawn"),
        ({"steps": 2**31 - 1, **PARALLEL}, r"steps must be below 2\^31, not 2,147,483,648"),
        ({"updates": 10**9}, "transitions drawn"),
        ({"eval_episodes": 10**9}, "eval_episodes: 1,000,000,000 episodes are too many"),
        ({"num_envs": 10**9, **PARALLEL}, "steps per rollout are too many"),
        ({"rollout": 10**9, **PARALLEL}, "steps per rollout are too many"),
        ({"epochs": 10**9, **PARALLEL}, "num_envs x rollout x epochs"),
        ({"alpha": (1e39,)}, r"alpha = 1e\+39 is beyond float32"),
        ({"alpha": (0.1, 1e-60)}, "alpha = 1e-60 is beyond float32"),
        ({"learning_rate": (1e-39,)}, "beyond float32"),  # subnormal: flushed to 0 on many devices
        ({"optimiser_eps": 1e300}, r"optimiser_eps = 1e\+300 is beyond float32"),
    ],
)  # fmt: skip
def test_enormous_settings_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        resolve(Config("CartPole-v1", preset="paper", **change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stop_at": math.inf}, "stop_at must be finite, not inf"),
        ({"stop_at": math.nan}, "stop_at must be finite, not nan"),
        ({"hidden": (True,)}, "hidden widths must be whole"),
    ],
)
def test_what_could_not_be_read_again_is_not_trained(change, words):
    """It was written to run.json as a word: the finished run was then refused as damaged."""
    with pytest.raises(ValueError, match=words):
        resolve(Config("CartPole-v1", preset="paper", **change))


def test_what_is_large_but_possible_is_not():
    resolve(
        Config(
            "CartPole-v1",
            preset="paper",
            seeds=10_000,
            steps=2 * 10**9,
            q=(math.inf,),
            alpha=(1e-30,),
        )
    )
    resolve(
        Config(
            "CartPole-v1", preset="paper", max_grad_norm=(math.inf,), clip=(-math.inf,), beta=(0.0,)
        )
    )
    resolve(
        Config(
            "MinAtar/Breakout",
            preset="paper",
            num_envs=4096,
            rollout=128,
            minibatches=64,
            **PARALLEL,
        )
    )


def test_the_number_of_cells_is_that_which_is_built():
    config = resolve(Config("CartPole-v1", preset="paper", seeds=3, q=(1.5, 2.0), alpha=(0.1, 0.2)))
    assert count_cells(config) == len(make_cells(config)) == 12
    check_limits(config)
