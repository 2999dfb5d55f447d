"""The parallel learner around host environments."""

import jax
import numpy as np
import pytest

import tsallax
from support import host_envs
from support.configs import paper
from tsallax.learners.host import FrameStack
from tsallax.learners.parallel_host import make_programs
from tsallax.replay.host import HostRing
from tsallax.training.build import make_run

SMALL = {
    "preset": "paper",
    "learner": "parallel",
    "hidden": (8,),
    "num_envs": 3,
    "rollout": 16,
    "minibatches": 2,
    "epochs": 1,
    "steps": 288,
    "target_period": 96,
    "seeds": 2,
}


@pytest.fixture(autouse=True)
def good_behaviour():
    host_envs.MISCHIEF.clear()
    yield
    host_envs.MISCHIEF.clear()


def learner_of(**more):
    return make_run(paper("tests/Naughty-v0", **{**SMALL, **more})).learner


def recorded(learner):
    """The arguments of every call of its update."""
    calls, update = [], learner.programs.update

    def record(*arguments):
        calls.append(jax.tree.map(np.asarray, arguments[:3]))
        return update(*arguments)

    learner.programs = learner.programs._replace(update=record)
    return calls


@pytest.fixture(scope="module")
def good():
    return tsallax.train("tests/Naughty-v0", **SMALL)


def test_episodes_of_all_environments_are_counted(good):
    """96 steps of 3 environments are 32 each, and an episode has 20: 3 x 1, then 3 x 2, 3 x 1."""
    np.testing.assert_array_equal(good.metrics["step"][0, 1], [96, 192, 288])
    np.testing.assert_array_equal(good.metrics["episodes"], [[[3, 6, 3]] * 2])
    np.testing.assert_array_equal(good.metrics["episode_length"], np.full((1, 2, 3), 20))
    assert np.isfinite(good.metrics["loss"]).all()


def test_next_values_are_those_of_the_true_next_state(monkeypatch):
    """Everywhere: within a rollout, at its end, and where a time limit cut an episode."""
    moves, learner = [], learner_of()
    calls, step = recorded(learner), learner.envs.step
    monkeypatch.setattr(learner.envs, "step", lambda a: moves.append(step(a)) or moves[-1])
    for _ in learner.train(learner.start(), lambda *_: None):
        pass
    atoms = jax.jit(jax.vmap(jax.vmap(learner.agent.atoms, (None, 0))))
    cuts = 0
    for i, (agent, played, Z_next) in enumerate(calls):
        true = np.stack([m.final.reshape(2, 3, 3) for m in moves[16 * i : 16 * (i + 1)]], 1)
        np.testing.assert_allclose(Z_next, atoms(agent.params, true), atol=1e-6)
        np.testing.assert_allclose(played.Z, atoms(agent.params, played.observation), atol=1e-6)
        cut = np.stack([m.truncated.reshape(2, 3) for m in moves[16 * i : 16 * (i + 1)]], 1)
        np.testing.assert_array_equal(played.truncated, cut)
        cuts += played.truncated.sum()
    assert cuts == 24


def test_seeds_side_by_side_are_what_each_is_alone(good):
    alone = tsallax.train("tests/Naughty-v0", **{**SMALL, "seeds": 1, "first_seed": 1})
    for name, values in good.metrics.items():
        np.testing.assert_allclose(values[:, 1:], alone.metrics[name], rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("apart", [False, True])
def test_cells_one_after_the_other_are_what_they_are_together(apart, good):
    learner = learner_of()
    learner.programs = make_programs(learner.agent, learner.shape._replace(steps=0), 2, apart)
    period = next(learner.train(learner.start(), lambda *_: None))
    np.testing.assert_allclose(period.metrics.loss, good.metrics["loss"][0, :, 0], rtol=1e-4)


def test_a_failed_environment_stops_its_cell_alone(good):
    seeds = np.random.default_rng([1, 0]).integers(2**31, size=3)
    host_envs.MISCHIEF[int(seeds[2])] = "raise"
    learner = learner_of()
    first, *_, last = learner.train(learner.start(), lambda *_: None)
    assert last.failures == {1: "stopped at step 135: RuntimeError: the cable is out"}
    for name, values in good.metrics.items():
        np.testing.assert_array_equal(getattr(last.metrics, name)[0], values[0, 0, -1])
    assert np.isfinite(first.metrics.loss[1])
    assert np.isnan(last.metrics.loss[1])
    # The rollout with the failure is not learned from.
    for new, kept in zip(jax.tree.leaves(last.params), jax.tree.leaves(first.params), strict=True):
        np.testing.assert_array_equal(new[1], kept[1])
        assert (new[0] != kept[0]).any()


def test_a_saved_state_is_restored_in_new_episodes():
    learner = learner_of()
    period = next(learner.train(learner.start(), lambda *_: None))
    arrays, notes = learner.save(period.state)
    assert {name: x.shape for name, x in arrays.items()} == {
        name: spec.shape for name, spec in learner.layout(notes).items()
    }
    again = learner.restore(arrays, notes)
    jax.tree.map(np.testing.assert_array_equal, again.agent, period.state.agent)
    np.testing.assert_array_equal(again.step, [96, 96])
    steps = [p.step for p in learner.train(again, lambda *_: None)]
    assert steps == [192, 288]


@pytest.mark.parametrize("stack", [0, 3])
def test_frames_are_stacked_as_the_replay_stacks_them(stack):
    random = np.random.default_rng(0)
    frames = random.integers(0, 255, (30, 4, 2, 2), np.uint8)
    over = random.random((30, 4)) < 0.2
    stacked, ring = FrameStack(frames[0], stack), HostRing(4, 50, (2, 2), np.uint8, stack)
    ring.begin(frames[0])
    none = np.zeros(4, bool)
    np.testing.assert_array_equal(stacked.current, ring.current())
    for frame, first in zip(frames[1:], over[1:], strict=True):
        zeros = np.zeros(4)
        ring.add(~none, zeros.astype(int), zeros, first, none, first, frame, frame)
        stacked.push(frame, first)
        np.testing.assert_array_equal(stacked.current, ring.current())
