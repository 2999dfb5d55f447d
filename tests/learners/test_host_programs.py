"""Agents held together and apart: the same numbers, and no cell axis where none is wanted."""

import jax
import numpy as np
import pytest

from support.configs import paper
from tsallax.learners import host_programs
from tsallax.learners.host_programs import make_programs
from tsallax.training.build import make_run
from tsallax.types import Transition

SEEDS, BATCH = [4, 5, 6], 16


@pytest.fixture(scope="module")
def run():
    fields = {"hidden": (8,), "batch": BATCH, "loop": "host"}
    return make_run(paper("CartPole-v1", algo="tal", alpha=(0.01, 0.1, 1.0), **fields))


@pytest.fixture(scope="module")
def both(run):
    return [make_programs(run.agent, run.hp, SEEDS, apart) for apart in (False, True)]


def make_batch(seed: int) -> Transition:
    random, shape = np.random.default_rng(seed), (len(SEEDS), BATCH)
    return Transition(
        random.normal(size=(*shape, 4)).astype(np.float32),
        random.integers(2, size=shape),
        random.normal(size=shape).astype(np.float32),
        random.random(shape) < 0.2,
        random.normal(size=(*shape, 4)).astype(np.float32),
    )


def assert_equal(tree, other):
    jax.tree.map(np.testing.assert_array_equal, tree, other)


def test_apart_and_together_give_the_same_numbers(both):
    def life(programs):
        held, told = programs.init(), []
        for step in range(6):
            batch = make_batch(step)
            held, loss = programs.update(held, batch, step)
            if step == 3:
                held = programs.copy_target(held)
            action = programs.act(held, batch.observation[:, 0], step)
            policy = programs.policy(
                programs.unstack(programs.stack(held).params), batch.observation[:, :2]
            )
            told.append((loss, action, policy, programs.metrics(held, batch.observation)))
        return told, programs.stack(held)

    together, apart = map(life, both)
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)  # noqa: E731
    jax.tree.map(close, together, apart)
    losses = np.array([loss for loss, *_ in apart[0]])
    assert len(np.unique(losses)) == losses.size  # cells have numbers, data and keys of their own


@pytest.mark.parametrize("apart", [False, True])
def test_there_and_back(both, apart):
    programs = both[apart]
    stacked = jax.tree.map(np.array, programs.stack(programs.init()))
    assert all(len(x) == len(SEEDS) for x in jax.tree.leaves(stacked))
    held = programs.unstack(stacked)
    assert_equal(programs.stack(held), stacked)
    for i in range(len(SEEDS)):
        assert_equal(programs.take(held, i), jax.tree.map(lambda x, at=i: x[at], stacked))
    swapped = programs.put(held, 1, programs.take(held, 2))
    expected = jax.tree.map(lambda x: x[[0, 2, 2]], stacked)
    assert_equal(programs.stack(swapped), expected)


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_taken_outlives_the_update(both, apart):
    """The update writes where the agent was; nothing given may share a buffer."""
    programs = both[apart]
    held = programs.put(programs.init(), 0, programs.take(programs.init(), 2))
    held = programs.copy_target(held)
    taken = programs.take(held, 1)
    before = jax.tree.map(np.copy, taken)
    for step in range(3):
        held, _ = programs.update(held, make_batch(step), step)
    assert_equal(taken, before)
    assert not np.array_equal(programs.take(held, 1).params[0].weight, before.params[0].weight)


def spied_run(monkeypatch, *arguments, **fields):
    """A run, and the shapes of the weights that are passed to a compiled act or update."""
    passed, jit = {"act": [], "update": []}, jax.jit

    def spy(function, **options):
        compiled, name = jit(function, **options), getattr(function, "__name__", "")

        def call(tree, *rest):
            passed[name].append([x.shape for x in jax.tree.leaves(tree)])
            return compiled(tree, *rest)

        return call if name in passed else compiled

    few = {"batch": 2, "train_period": 1, "target_period": 3, "steps": 3}
    host_programs._functions.cache_clear()
    monkeypatch.setattr(jax, "jit", spy)
    run = make_run(paper(*arguments, loop="host", **few, **fields))
    monkeypatch.undo()
    return run, passed


@pytest.mark.parametrize(
    ("env", "seeds", "fields", "calls"),
    [
        ("CartPole-v1", 1, {"hidden": (8,)}, 1),
        ("CartPole-v1", 2, {"hidden": (8,)}, 1),
        ("ALE/Pong-v5", 1, {"hidden": (4,), "algo": "dqn", "buffer": 20}, 1),
        ("ALE/Pong-v5", 2, {"hidden": (4,), "algo": "dqn", "buffer": 20}, 2),
    ],
)
def test_no_cell_axis_for_one_cell_or_nature(monkeypatch, env, seeds, fields, calls):
    """XLA would take the slice of the weights into the product, and compute it naively."""
    if env.startswith("ALE"):
        pytest.importorskip("ale_py")
    run, passed = spied_run(monkeypatch, env, seeds=seeds, **fields)
    state = run.learner.start()
    for period in run.learner.train(state, lambda *_: None):
        state = period.state
    together = (seeds,) if seeds > 1 and calls == 1 else ()
    one = jax.eval_shape(run.agent.init, jax.random.key(0))
    for name, tree, times in (("act", one.params, 3), ("update", one, 1)):
        shapes = [(*together, *x.shape) for x in jax.tree.leaves(tree)]
        assert passed[name] == [shapes] * times * calls
    assert all(len(x) == seeds for x in jax.tree.leaves(state.agent))
