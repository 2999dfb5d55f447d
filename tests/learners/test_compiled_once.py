"""Programs take numbers, seeds and lengths as arguments: runs of one shape share them."""

import jax
import numpy as np
import pytest

from support import host_envs, tiny  # noqa: F401 (registers)
from tsallax.training.build import make_run
from tsallax.training.driver import Silent, periods
from tsallax.training.model import Model


@pytest.fixture
def compilations():
    """The programs that were compiled or loaded, as they come."""
    found = []

    def note(event: str, duration: float, **_) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield found
    jax.monitoring.unregister_event_duration_listener(note)


def run(env, **more):
    made = make_run(
        tiny.config(env, **{"q": (2.0,), "hidden": (7,), **more} if env == tiny.HOST else more)
    )
    for _ in periods(made, made.learner.start(), Silent()):
        pass


@pytest.mark.parametrize("env", [tiny.ENV, tiny.HOST])
def test_a_second_run_of_one_shape_compiles_nothing(env, compilations):
    run(env)
    assert compilations or env == tiny.ENV  # of which this process may have had a run before
    del compilations[:]
    numbers = {"learning_rate": (1e-4,), "epsilon": (0.5,), "beta": (0.5,)}
    run(env, first_seed=7, steps=200, **numbers, **({} if env == tiny.HOST else {"q": (1.3, 5.0)}))
    assert compilations == []


@pytest.mark.parametrize("env", [tiny.ENV, "Pendulum-v1"])
def test_the_models_of_a_run_share_their_programs(env, compilations):
    actor = env == "Pendulum-v1"
    more = {"algo": "tal-ac", "preset": None, "warmup": 8} if actor else {}
    made = make_run(tiny.config(env, hidden=(7,), **more))  # a shape of which nothing is compiled
    params, seen = made.learner.start().agent.params, np.zeros(made.observation.shape)

    def look(cell):
        own = jax.tree.map(lambda x: np.asarray(x)[cell], (params, made.hp))
        model = Model(made.agent, *own, made.observation, action_box=made.action_box)
        model.predict(seen)
        return model.policy(seen)[0]

    first = look(0)
    assert compilations
    del compilations[:]
    assert not np.array_equal(look(1), first)  # by weights of their own
    assert compilations == []


@pytest.mark.parametrize("env", [tiny.ENV, tiny.HOST])
def test_how_a_run_is_evaluated_is_no_part_of_its_programs(env):
    one = make_run(tiny.config(env))
    for more in ({"eval_episodes": 3}, {"eval_acting": "argmax"}, {"stop_at": 7.0}):
        assert make_run(tiny.config(env, **more)).agent == one.agent


def test_another_shape_is_another_program(compilations):
    run(tiny.HOST)
    del compilations[:]
    run(tiny.HOST, hidden=(9,))
    assert compilations
