"""The compiled loop: seeds, traces, episode statistics."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.probe_envs import clock
from tsallax.agents import make_agent
from tsallax.envs.cartpole import cartpole
from tsallax.learners import Schedule
from tsallax.learners.replay_device import Numbers, make_loop
from tsallax.networks import Dense, mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay.ring import make_ring
from tsallax.types import HParams

# A whole run, small: C = 2, a target copy every 20 steps.
ENV = cartpole(time_limit=12)
SIZES = ((4, 8), (8,), (8, 2), (2,))


def draw_params(key):
    """All weights from one draw: compiling the generator is what costs here."""
    draw = 0.3 * jax.random.normal(key, (sum(map(math.prod, SIZES)),))
    ends = np.cumsum([math.prod(size) for size in SIZES])[:-1]
    leaves = [x.reshape(size) for x, size in zip(jnp.split(draw, ends), SIZES, strict=True)]
    return [Dense(*leaves[:2]), Dense(*leaves[2:])]


NETWORK = mlp((4,), (2,), hidden=(8,))._replace(init=draw_params)
AGENT = make_agent(NETWORK, get_algorithm("tal"))
STEPS, PERIODS = 20, 4
SEEDS = [0, 0, 1, 1, 2, 2]
QS = [1.0, 2.0, 1.0, 2.0, 1.5, 3.0]
CELLS = range(len(SEEDS))
TRACES = []


def run(seed, q):
    """The state and the metrics of each period; the ring holds all steps."""
    TRACES.append(None)
    loop = make_loop(
        ENV, AGENT, make_ring(100, ENV.time_limit), Schedule(STEPS * PERIODS, 8, 2, STEPS)
    )
    hp = make_hparams("tal", q=q, alpha=0.5, epsilon=0.5, learning_rate=0.01)

    def body(state, _):
        return loop.period(state, hp, Numbers(0, 10, True, 2))

    state, metrics = jax.lax.scan(body, loop.init(jax.random.key(seed)), None, PERIODS)
    return state._replace(key=jax.random.key_data(state.key)), metrics


ALONE = jax.jit(run)


@functools.cache
def together():
    """All cells as one program."""
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(run))(jnp.array(SEEDS), jnp.array(QS)))


@functools.cache
def alone(cell: int):
    return ALONE(jnp.int32(SEEDS[cell]), jnp.float32(QS[cell]))


@pytest.mark.parametrize("cell", CELLS)
def test_many_runs_at_once_are_the_separate_runs(cell):
    state, metrics = jax.tree.map(lambda x: x[cell], together())
    expected, expected_metrics = alone(cell)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    jax.tree.map(close, state.agent, expected.agent)
    jax.tree.map(close, state.replay, expected.replay)
    jax.tree.map(close, metrics, expected_metrics)
    for name in ("step", "episodes", "episode_return", "episode_length", "epsilon"):
        np.testing.assert_array_equal(getattr(metrics, name), getattr(expected_metrics, name))
    np.testing.assert_array_equal(state.key, expected.key)


def test_a_seed_repeats_to_the_bit():
    jax.tree.map(np.testing.assert_array_equal, ALONE(jnp.int32(0), jnp.float32(1)), alone(0))


def test_seeds_and_numbers_differ():
    """In the weights; seeds also in what was seen. The generator knows the seed alone."""
    state, metrics = together()

    def count(x, cells=CELLS):
        return len(np.unique(np.asarray(x)[list(cells)].reshape(len(cells), -1), axis=0))

    assert count(state.agent.params[0].weight) == count(metrics.loss) == len(CELLS)
    assert count(state.replay.observations, [0, 2, 4]) == count(state.key) == 3


def test_one_trace_serves_all_numbers():
    alone(0)
    before = len(TRACES)
    for q in (1.0, 1.5, 2.0, float("inf")):
        _, metrics = ALONE(jnp.int32(0), jnp.float32(q))
        assert np.isfinite(metrics.loss).all()
    assert len(TRACES) == before


def test_episode_statistics_are_those_of_the_steps_taken():
    """The ring holds every step of the run: counted again here, seed by seed."""
    ends = set()
    state, metrics = together()
    for cell in CELLS:
        ring, found = jax.tree.map(lambda x: np.asarray(x[cell]), (state.replay, metrics))  # noqa: B023
        total, length = 0.0, 0
        for period in range(PERIODS):
            returns, lengths = [], []
            for t in range(period * STEPS, (period + 1) * STEPS):
                total, length = total + ring.rewards[t], length + 1
                if ring.terminated[t] or ring.final[t] >= 0:
                    assert ring.terminated[t] or length == ENV.time_limit
                    ends.add(bool(ring.terminated[t]))
                    returns.append(total)
                    lengths.append(length)
                    total, length = 0.0, 0
            assert found.step[period] == (period + 1) * STEPS
            assert found.episodes[period] == len(returns)
            mean = np.mean(returns) if returns else np.nan
            np.testing.assert_allclose(found.episode_return[period], mean, rtol=1e-6)
            mean = np.mean(lengths) if lengths else np.nan
            np.testing.assert_allclose(found.episode_length[period], mean, rtol=1e-6)
    assert ends == {True, False}, "both kinds of ends occur"


def test_steps_are_the_environments():
    """What was stored, stepped again from each observation: s' is its successor or a new start."""
    n = PERIODS * STEPS

    def step(y, action):
        state, _ = ENV.step(ENV.reset(jax.random.key(0))._replace(y=y), action, jax.random.key(0))
        return state.y

    many = jax.jit(jax.vmap(jax.vmap(step)))
    rings = jax.tree.map(np.asarray, together()[0].replay)
    afters = many(rings.observations[:, :n], rings.actions[:, :n].astype(np.int32))
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    truncations = 0
    for cell in CELLS:
        ring, after, starts = jax.tree.map(lambda x: x[cell], rings), afters[cell], []  # noqa: B023
        for t in range(n):
            following = ring.observations[t + 1]
            if ring.terminated[t] or ring.final[t] >= 0:
                assert np.abs(following).max() <= 0.05
                starts.append(tuple(following))
            else:
                close(following, after[t])
            if ring.final[t] >= 0:
                close(ring.finals[ring.final[t]], after[t])
                truncations += 1
        assert len(set(starts)) == len(starts) > 2
    assert truncations > 2


def test_a_single_action_has_no_gap():
    """A probe with one action must run, though there is no second value."""
    env = clock()._replace(action_names=("only",))
    agent = make_agent(mlp((2,), (1,), hidden=()), get_algorithm("tal"))
    loop = make_loop(env, agent, make_ring(4, None), Schedule(4, 2, 1, 1))
    state = jax.eval_shape(loop.init, jax.random.key(0))
    numbers = Numbers(0, 1, True, 1)
    _, metrics = jax.eval_shape(lambda state: loop.period(state, HParams(), numbers), state)
    assert metrics.action_gap.shape == ()
