"""Parts in a configuration: off unless asked for, refused where they mean nothing."""

import dataclasses
import json

import pytest

from support import tiny
from support.configs import paper
from tsallax.storage.run_folder import SCHEMA, digest_of, plain
from tsallax.training.build import make_run, schedule_of, shape_of
from tsallax.training.config import OFF, PRIORITIES, YOUNGER, Config, in_effect, to_json
from tsallax.training.resolve import resolve
from tsallax.training.stored_config import from_json

PARTS = {"double": True, "dueling": True, "n_step": 3, "prioritised": True, "tau": (0.05,)}


def test_a_part_that_is_off_leaves_no_trace():
    """Not in the configuration, its digest, its file, nor in the arrays of a state."""
    silent, said = paper("CartPole-v1"), paper("CartPole-v1", **OFF)
    assert said == silent
    assert digest_of(to_json(said)) == digest_of(to_json(silent))
    assert not {*OFF, *PRIORITIES, "tau"} & to_json(silent).keys()
    assert {name: in_effect(silent, name) for name in OFF} == OFF
    assert shape_of(silent).tau is None
    names = make_run(tiny.config()).learner.layout({})
    assert not [name for name in names if "priorities" in name]


def test_there_and_back_with_every_part():
    config = paper("CartPole-v1", **PARTS)
    assert (config.priority_exponent, config.importance_exponent) == ((0.6,), (0.4,))
    stored = json.loads(json.dumps(plain(to_json(config))))
    assert {*PARTS, *PRIORITIES} <= stored.keys()
    assert from_json(stored, SCHEMA) == config
    assert {*OFF, *PRIORITIES, "tau"} <= set(YOUNGER)
    schedule = schedule_of(config)
    assert (schedule.n_step, schedule.prioritised) == (3, True)


def test_older_folders_have_no_parts():
    stored = plain(to_json(paper("CartPole-v1")))
    assert from_json(stored, SCHEMA) == paper("CartPole-v1")
    with pytest.raises(ValueError, match="damaged: double"):
        from_json(stored | {"double": 1}, SCHEMA)
    with pytest.raises(ValueError, match="was not resolved"):
        from_json(stored | {"double": False}, SCHEMA)


def test_numbers_of_parts_are_a_grid_in_one_program():
    one, other = (paper("CartPole-v1", prioritised=True, tau=t) for t in ((0.1,), (0.2, 0.3)))
    other = dataclasses.replace(other, priority_exponent=(0.3, 0.4))
    assert shape_of(one) == shape_of(other)
    assert shape_of(one) != shape_of(paper("CartPole-v1", prioritised=True))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"learner": "parallel", "double": True}, "double is no option of the parallel learner"),
        ({"learner": "parallel", "n_step": 2}, "n_step is no option of the parallel learner"),
        ({"learner": "parallel", "prioritised": True}, "prioritised is no option of the parallel"),
        ({"learner": "parallel", "tau": (0.1,)}, "tau is no option of the parallel learner"),
        ({"env": "Pendulum-v1", "algo": "sac", "double": True}, "double is no option of sac"),
        ({"env": "Pendulum-v1", "algo": "sac", "n_step": 2}, "n_step is no option of sac"),
        ({"env": "Pendulum-v1", "algo": "sac", "dueling": True}, "dueling is no option of sac"),
        ({"env": "Pendulum-v1", "algo": "sac", "prioritised": True}, "prioritised is no option"),
        ({"preset": "paper", "priority_exponent": (0.5,)}, "is for a prioritised replay"),
        ({"preset": "paper", "n_step": 0}, "n_step must be at least 1, not 0"),
        ({"preset": "paper", "n_step": 2.5}, "n_step must be a whole number"),
        ({"preset": "paper", "tau": (1.5,)}, "tau must be between 0 and 1"),
        (
            {"preset": "paper", "n_step": 300, "buffer": 200},
            r"must hold n_step \(300\) transitions",
        ),
        (
            {"preset": "paper", "network": "own", "dueling": True},
            "dueling is for built-in networks",
        ),
        ({"preset": "paper", "n_step": 40_000}, "transitions drawn are too many"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(fields, message):
    with pytest.raises(ValueError, match=message):
        resolve(dataclasses.replace(Config("CartPole-v1"), **fields))


def test_a_duelling_head_is_for_the_parallel_learner_too():
    config = resolve(Config("CartPole-v1", dueling=True))
    assert (config.learner, config.dueling) == ("parallel", True)
    last = make_run(config).learner.params()[-1]
    assert last.bias.shape == (1, 3)  # V and two advantages
