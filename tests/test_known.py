"""The target network's values, computed once a period: the same numbers as computed each time."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import envs
from tsallax.agents import make_agent
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay import know, make_ring
from tsallax.replay.known import ROWS, distinct
from tsallax.training import compiled
from tsallax.training.config import Config, resolve
from tsallax.training.loop import Period, Schedule, make_loop
from tsallax.training.run import make_run


def test_distinct_numbers_come_once():
    found, count = distinct(jnp.array([7, 3, 3, 9, 7, 7]))
    assert int(count) == 3
    assert found[:3].tolist() == [3, 7, 9]
    assert found.shape == (ROWS,)
    assert (found[3:] == 9).all()


def test_values_stand_where_they_will_be_drawn_and_nowhere_else():
    ring, like = make_ring(300, 5), jnp.zeros(1)
    state = ring.init(like)
    add = jax.jit(ring.add)
    for step in range(
        1, 251
    ):  # every fifth transition is truncated, its final observation is -step
        cut = jnp.array(step % 5 == 0)
        final, after = jnp.full(1, -1.0 * step), jnp.full(1, 1.0 * step)
        state = add(state, jnp.int32(0), jnp.float32(0), jnp.array(False), cut, final, after)
    drawn = jnp.array([*range(0, 200, 2), 4, 9])
    passes = []

    def apply(observations):
        passes.append(observations.shape[0])
        return observations * 10 + 1

    known = know(ring, state, drawn, apply, like, lambda n: n)
    places = jnp.append(drawn, ring.following(state, drawn))
    np.testing.assert_array_equal(known[places], ring.look(state, places, like) * 10 + 1)
    assert float(known[ring.following(state, jnp.array([4]))[0], 0]) == -49  # transition 5
    others = np.setdiff1d(np.arange(len(known)), places)
    assert (known[others] == 0).all()
    assert max(passes) == ROWS


@functools.cache
def outcome(reuse: bool, cells: int, period: int):
    """Learners and metrics after four cycles; the ring is too small for them, and runs are cut."""
    env = envs.make("CartPole-v1", time_limit=7)
    agent = make_agent(mlp((4,), (2,), (16,)), get_algorithm("tal"))
    hp = make_hparams("tal", q=1.5, alpha=0.5, epsilon=0.5, learning_rate=0.01)
    loop = make_loop(env, agent, make_ring(60, env.time_limit), Schedule(8, period, reuse=reuse))
    hp = jax.tree.map(lambda x: jnp.full(cells, x, jnp.float32), hp)
    state = compiled.start(loop, np.arange(cells))
    program, rows = compiled.program(loop, cells, most=11), []
    for _ in range(4):
        state, metrics = program(state, hp, Period(2, 9, True, period, most=11))
        rows.append(metrics)
    return state.learner, state.replay, rows


@pytest.mark.parametrize(
    ("period", "cells"),
    [(1, 3), (4, 1), *(pytest.param(*p, marks=pytest.mark.slow) for p in ((1, 1), (4, 3)))],
)
def test_nothing_changes_but_the_work(cells, period):
    close = functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-6)
    jax.tree.map(close, outcome(True, cells, period), outcome(False, cells, period))


@pytest.mark.parametrize("env", ["CartPole-v1", "MinAtar/Breakout"])
def test_no_buffer_is_copied_in_the_loop(env):
    """By the compiled program: what has a row for each slot is written in place, never copied."""
    config = resolve(Config(env, steps=100_000, buffer=30_011))
    run = make_run(config)
    program = compiled.program(run.train.args[0], 1, most=50)
    period = Period(0, 50, True, config.train_period, most=50)
    text = program.lower(jax.eval_shape(run.start), run.hp, period).compile().as_text()
    slots = r"\[300(1[2-9]|[2-9]\d)(,\d+)*\]"
    assert re.search(rf"{slots}\S* dynamic-update-slice\(", text)
    assert not re.findall(rf"= \w+{slots}\S* copy\(", text)
