"""The target network's values, computed once per period: the same numbers as computed each time."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.probe_envs import ROOMS, rooms
from tsallax.agents import make_agent
from tsallax.learners import Schedule
from tsallax.learners.device import program, start_cells
from tsallax.learners.replay_device import Numbers, make_loop
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay.ring import ROWS, cache_target_values, distinct, make_ring
from tsallax.training.build import make_run
from tsallax.training.config import Config, resolve


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

    cache = cache_target_values(ring, state, drawn, apply, like, lambda n: n)
    places = jnp.append(drawn, ring.following(state, drawn))
    np.testing.assert_array_equal(cache[places], ring.look(state, places, like) * 10 + 1)
    assert float(cache[ring.following(state, jnp.array([4]))[0], 0]) == -49  # transition 5
    others = np.setdiff1d(np.arange(len(cache)), places)
    assert (cache[others] == 0).all()
    assert max(passes) == ROWS


@functools.cache
def outcome(reuse: bool, cells: int, period: int):
    """Agents and metrics after four periods; the ring is too small for them, and runs are cut."""
    env = rooms()
    agent = make_agent(mlp((len(ROOMS),), (2,), (16,)), get_algorithm("tal"), q=2.0)
    hp = make_hparams("tal", q=2.0, alpha=0.5, epsilon=0.5, learning_rate=0.01)
    schedule = Schedule(44 * period, 8, period, 11 * period)
    loop = make_loop(env, agent, make_ring(60, env.time_limit), schedule, reuse)
    hp = jax.tree.map(lambda x: jnp.full(cells, x, jnp.float32), hp)
    state, rows = start_cells(loop.init, list(range(cells))), []
    for _ in range(4):
        state, metrics = program(loop, cells)(state, hp, Numbers(2, 9, True, period))
        rows.append(metrics)
    return state.agent, state.replay, rows


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
    config = dataclasses.replace(config, target_period=50 * config.train_period)
    run = make_run(config)
    numbers = Numbers(0, 50, True, config.train_period)
    state = run.learner.shapes()
    text = program(run.learner.loop, 1).lower(state, run.hp, numbers).compile().as_text()
    slots = r"\[300(1[2-9]|[2-9]\d)(,\d+)*\]"
    assert re.search(rf"{slots}\S* dynamic-update-slice\(", text)
    assert not re.findall(rf"= \w+{slots}\S* copy\(", text)
