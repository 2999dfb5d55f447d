"""The replay ring against a list, its memory, and the program that it compiles to."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from support.hlo import AS_USERS, assert_writes_in_place
from tsallax.replay.ring import make_ring


class Step(NamedTuple):
    """What `Ring.add` is told, and what it must remember."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final: np.ndarray
    following: np.ndarray

    def told(self):
        return self[1:]

    def remembered(self):
        """As the oracle knows it. After termination there is no s'."""
        after = None if self.terminated else tuple(self.final)
        return tuple(self.observation), int(self.action), float(self.reward), after


def episodes(length: int, time_limit: int | None, ending: float, seed: int = 0) -> list[Step]:
    """Steps through random episodes. No two observations are equal, so each step is known."""
    rng = np.random.default_rng(seed)
    number = iter(range(10_000))

    def observation():
        return np.array([next(number), rng.integers(9)], np.float32)

    now, age, steps = observation(), 0, []
    for _ in range(length):
        final, age = observation(), age + 1
        terminated = rng.random() < ending
        truncated = time_limit is not None and age >= time_limit and not terminated
        following = observation() if terminated or truncated else final
        steps.append(
            Step(
                now,
                np.int32(rng.integers(100)),
                np.float32(rng.normal()),
                np.bool_(terminated),
                np.bool_(truncated),
                final,
                following,
            )
        )
        now, age = following, 0 if terminated or truncated else age
    return steps


@functools.cache
def programs(capacity: int, time_limit: int | None, batch: int):
    ring = make_ring(capacity, time_limit)
    sample = functools.partial(ring.sample, batch=batch, like=jnp.zeros(2))
    return ring.init, jax.jit(ring.add), jax.jit(lambda state, key: sample(state, key))


def drawn(batch) -> list[tuple]:
    """The sampled transitions in the oracle's words."""
    return [
        (tuple(s), int(a), float(r), None if end else tuple(after))
        for s, a, r, end, after in zip(*map(np.asarray, batch), strict=True)
    ]


@pytest.mark.parametrize(
    ("capacity", "time_limit", "ending"),
    [(7, 3, 0.0), (7, 3, 0.2), (5, None, 0.3), (4, 1, 0.3), (6, 2, 0.1), (3, 5, 0.0)],
)
def test_holds_exactly_the_last_transitions(capacity, time_limit, ending):
    """After every step, through several laps: what can be drawn is what the list holds.

    Of 200 draws, the chance to miss one of seven transitions is 3e-13.
    """
    init, add, sample = programs(capacity, time_limit, 200)
    steps = episodes(5 * capacity + 3, time_limit, ending)
    state = init(jnp.asarray(steps[0].observation))
    for i, step in enumerate(steps):
        state = add(state, *step.told())
        expected = {x.remembered() for x in steps[max(0, i + 1 - capacity) : i + 1]}
        assert set(drawn(sample(state, jax.random.key(i)))) == expected
    assert any(x.terminated for x in steps) == (ending > 0)
    assert any(x.truncated for x in steps) == (time_limit is not None)


@pytest.mark.parametrize("length", [3, 7, 17])
def test_draws_are_uniform(length):
    """Partly filled, full and after two laps."""
    init, add, sample = programs(7, 3, 200)
    steps = episodes(length, 3, 0.2)
    state = init(jnp.asarray(steps[0].observation))
    for step in steps:
        state = add(state, *step.told())
    keys = jax.random.split(jax.random.key(1), 20)
    rows = [row for key in keys for row in drawn(sample(state, key))]
    held = [step.remembered() for step in steps[-7:]]
    counts = [rows.count(row) for row in held]
    assert sum(counts) == 4000
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("shape", [(3, 5, 1), (2, 8)])
def test_bools_come_back_from_their_bits(shape):
    """Also where they do not fill their last byte."""
    ring = make_ring(3, 1)
    observations = np.random.default_rng(0).random((4, *shape)) < 0.5
    observations[1] = ~observations[0]

    @jax.jit
    def run(first, final, following):
        zero, yes = jnp.zeros(()), jnp.asarray(True)
        state = ring.init(first)
        assert state.observations.dtype == state.finals.dtype == jnp.uint8
        assert state.observations.shape == (4, math.ceil(math.prod(shape) / 8))
        state = ring.add(state, jnp.asarray(0), zero, ~yes, yes, final, following)
        state = ring.add(state, jnp.asarray(1), zero, ~yes, ~yes, following, following)
        return ring.sample(state, jax.random.key(0), 32, first)

    batch = run(*observations[:3])
    assert batch.observation.dtype == batch.next_observation.dtype == jnp.bool_
    for s, a, after in zip(batch.observation, batch.action, batch.next_observation, strict=True):
        np.testing.assert_array_equal(s, observations[0 if a == 0 else 2])
        np.testing.assert_array_equal(after, observations[1 if a == 0 else 2])
    assert set(np.asarray(batch.action)) == {0, 1}


@pytest.mark.parametrize("dtype", [jnp.uint8, jnp.float32, jnp.bool_])
def test_observations_keep_their_type(dtype):
    ring = make_ring(3, None)
    like = jax.ShapeDtypeStruct((5, 3), dtype)
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = jax.eval_shape(ring.init, like)
    batch = jax.eval_shape(lambda s, k, x: ring.sample(s, k, 4, x), state, key, like)
    assert batch.observation.dtype == batch.next_observation.dtype == dtype
    assert batch.observation.shape == batch.next_observation.shape == (4, 5, 3)


@pytest.mark.parametrize("time_limit", [None, 1000])
def test_memory_of_minatar(time_limit):
    """100,000 frames of Breakout: 6 MB. Two float32 copies of each would be 320 MB."""
    ring = make_ring(100_000, time_limit)
    state = jax.eval_shape(ring.init, jax.ShapeDtypeStruct((10, 10, 4), bool))
    total = sum(math.prod(x.shape) * x.dtype.itemsize for x in state)
    assert total < 6.5e6


def test_vmap_is_a_loop():
    """Three seeds at different places of their rings."""
    init, add, sample = programs(7, 3, 200)
    seeds = [episodes(20, 3, 0.2, seed) for seed in range(3)]
    states, keys = [], jax.random.split(jax.random.key(0), 3)
    for i, steps in enumerate(seeds):
        state = init(jnp.asarray(steps[0].observation))
        for step in steps[: 9 + 2 * i]:
            state = add(state, *step.told())
        states.append(state)
    told = [steps[9 + 2 * i].told() for i, steps in enumerate(seeds)]
    alone = [add(state, *step) for state, step in zip(states, told, strict=True)]
    alone = [(state, sample(state, key)) for state, key in zip(alone, keys, strict=True)]

    @jax.jit
    @jax.vmap
    def together(state, step, key):
        state = add(state, *step)
        return state, sample(state, key)

    stack = functools.partial(jax.tree.map, lambda *x: jnp.stack(x))
    result = together(stack(*states), stack(*told), keys)
    jax.tree.map(np.testing.assert_array_equal, result, stack(*alone))


@pytest.mark.parametrize("seeds", [None, 2])
def test_cost_of_a_step_does_not_grow_with_the_capacity(seeds):
    capacity, shape = 12_344, (10, 10, 4)
    ring = make_ring(capacity, 50)

    def run(state, key, observations):
        def body(state, x):
            key, observation = x
            zero, end = jnp.zeros(()), observation[0, 0, 0]
            state = ring.add(state, jnp.asarray(1), zero, end, ~end, observation, observation)
            batch = ring.sample(state, key, 32, observation)
            return state, jnp.sum(batch.observation) + jnp.sum(batch.next_observation)

        return jax.lax.scan(body, state, (jax.random.split(key, 8), observations))

    like = jax.ShapeDtypeStruct(shape, bool)
    arguments = (
        jax.eval_shape(ring.init, like),
        jax.eval_shape(lambda: jax.random.key(0)),
        jax.ShapeDtypeStruct((8, *shape), bool),
    )
    if seeds:
        run = jax.vmap(run)
        arguments = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((seeds, *x.shape), x.dtype), arguments
        )
    compiled = jax.jit(run, donate_argnums=0).lower(*arguments).compile(AS_USERS)
    assert_writes_in_place(compiled, capacity, 55 * capacity * (seeds or 1))
