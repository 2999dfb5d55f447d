"""The target network's values, computed once per period: the same numbers as computed each time."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.configs import paper
from support.hlo import AS_USERS
from support.probe_envs import ROOMS, rooms
from tsallax.agents import make_agent
from tsallax.learners import Schedule
from tsallax.learners.device import program, start_cells
from tsallax.learners.replay_device import Numbers, make_loop
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay.ring import ROWS, cache_target_values, distinct, make_ring
from tsallax.training.build import make_run


def test_distinct_numbers_come_once():
    found, count = distinct(jnp.array([7, 3, 3, 9, 7, 7]))
    assert int(count) == 3
    assert found[:3].tolist() == [3, 7, 9]
    assert found.shape == (ROWS,)
    assert (found[3:] == 9).all()


def test_values_stand_where_they_will_be_drawn_and_nowhere_else():
    ring, like = make_ring(300, 5), jnp.zeros(1)
    state = jax.jit(ring.init)(like)
    add = jax.jit(ring.add)
    # Every fifth transition is truncated, its final observation is -step.
    for step in range(1, 251):
        cut, after = np.bool_(step % 5 == 0), np.full(1, step, np.float32)
        state = add(state, np.int32(0), np.float32(0), np.bool_(False), cut, -after, after)
    drawn = jnp.array([*range(0, 200, 2), 4, 9])
    passes = []

    def apply(observations):
        passes.append(observations.shape[0])
        return observations * 10 + 1

    @jax.jit
    def run(state):
        cache = cache_target_values(ring, state, drawn, apply, like, lambda n: n)
        following = ring.following(state, drawn)
        places = jnp.append(drawn, following)
        return cache, following, places, ring.look(state, places, like)

    cache, following, places, seen = map(np.asarray, run(state))
    np.testing.assert_array_equal(cache[places], seen * 10 + 1)
    assert drawn[-2] == 4
    assert cache[following[-2], 0] == -49  # transition 5
    others = np.setdiff1d(np.arange(len(cache)), places)
    assert (cache[others] == 0).all()
    assert max(passes) == ROWS


@functools.cache
def outcome(reuse: bool, cells: int, period: int, n_step: int, double: bool):
    """Agents and metrics after four periods; the ring is too small for them, and runs are cut."""
    env = rooms()
    network = mlp((len(ROOMS),), (2,), (16,))
    agent = make_agent(network, get_algorithm("tal"), q=2.0, double=double)
    hp = make_hparams("tal", q=2.0, alpha=0.5, epsilon=0.5, learning_rate=0.01)
    schedule = Schedule(44 * period, 8, period, 11 * period, n_step=n_step)
    loop = make_loop(env, agent, make_ring(60, env.time_limit), schedule, reuse)
    hp = jax.tree.map(lambda x: np.full(cells, x, np.float32), hp)
    state, rows = start_cells(loop.init, list(range(cells))), []
    for _ in range(4):
        state, metrics = program(loop, cells)(state, hp, Numbers(2, 9, True, period))
        rows.append(metrics)
    return state.agent, state.replay, rows


RARER = (
    (4, 3, 1, False),
    (1, 1, 1, False),
    (1, 3, 1, False),
    (4, 1, 1, False),
    (1, 3, 2, False),
    (4, 1, 3, True),
)


@pytest.mark.parametrize(
    ("period", "cells", "n_step", "double"),
    [
        (4, 3, 3, True),
        *(pytest.param(*p, marks=pytest.mark.slow) for p in RARER),
    ],
)
def test_nothing_changes_but_the_work(cells, period, n_step, double):
    close = functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=2e-6)
    with_reuse, without = (outcome(reuse, cells, period, n_step, double) for reuse in (True, False))
    jax.tree.map(close, with_reuse, without)


PARTS = {"prioritised": True, "n_step": 3, "double": True, "tau": (0.01,)}


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        ("CartPole-v1", {}),
        pytest.param("MinAtar/Breakout", {}, marks=pytest.mark.slow),
        pytest.param("CartPole-v1", PARTS, marks=pytest.mark.slow),
    ],
)
def test_no_buffer_is_copied_in_the_loop(env, parts):
    """By the compiled program: what has a row for each slot is written in place, never copied."""
    config = paper(env, steps=100_000, buffer=30_011, **parts)
    config = dataclasses.replace(config, target_period=50 * config.train_period)
    run = make_run(config)
    numbers = Numbers(0, 50, True, config.train_period)
    state = run.learner.shapes()
    lowered = program(run.learner.loop, 1).lower(state, run.hp, numbers)
    text = lowered.compile(AS_USERS).as_text()
    slots = r"\[300(1[2-9]|[2-9]\d)(,\d+)*\]"
    assert re.search(rf"{slots}\S* dynamic-update-slice\(", text)
    assert not re.findall(rf"= \w+{slots}\S* copy\(", text)
    assert not re.findall(r"= \w+\[14,14,14,14\]\S* copy\(", text)  # the priorities
