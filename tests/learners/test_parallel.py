"""The parallel learner: its returns by hand, seeds side by side, resume, and where it ends."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.parallel import EVERY, tabulated
from tsallax.agents import Agent, make_agent
from tsallax.learners.device import DeviceLearner, program
from tsallax.learners.parallel_device import make_loop
from tsallax.learners.parallel_update import Rollouts, plan
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams, one_step
from tsallax.policies import make_policy
from tsallax.types import Bootstrap, Environment, HParams, Outcome

GAMMA = 0.9


def walk(limit: int = 5) -> Environment:
    """A counter that action 1 raises by one: it terminates at 4, or is cut after `limit` steps.

    The reward is the count that is reached, so that every row of a rollout tells where it was.
    """

    def reset(key):
        return {"count": jnp.zeros(()), "time": jnp.zeros((), jnp.int32)}

    def step(state, action, key):
        count, time = state["count"] + (action == 1), state["time"] + 1
        terminated = count >= 4
        return {"count": count, "time": time}, Outcome(count, terminated, time >= limit)

    def observe(state):
        return jax.nn.one_hot(state["count"].astype(jnp.int32), 5)

    def render(state):
        return jnp.zeros((1, 1, 3), jnp.uint8)

    return Environment("Walk", ("stay", "up"), reset, step, observe, render, limit)


# Action values of each count, by which the values of a rollout can be read off.
TABLE = jnp.array([[1.0, 2.0], [3.0, 2.5], [0.5, 4.0], [5.0, 6.0], [100.0, 200.0]])


def recording(algo: str) -> Agent:
    """An agent that plays TABLE and keeps what it is asked to fit, instead of fitting it."""
    agent = make_agent(tabulated(), get_algorithm(algo))
    start = agent.init(jax.random.key(0))._replace(params=TABLE, target_params=TABLE / 2)

    def fit(state, observation, action, y, hp):
        return state._replace(moments=(observation, action, y)), jnp.zeros(())

    blank = (jnp.zeros((24, 5)), jnp.zeros(24, jnp.int32), jnp.zeros(24))
    init = lambda key: start._replace(moments=blank)  # noqa: E731
    return agent._replace(init=init, fit=fit)


@functools.cache
def played(algo: str, lambda_: float, frozen: bool = False):
    """The state after one rollout of 3 environments and 8 steps, with its rows."""
    recorder = recording(algo)
    loop = make_loop(walk(), recorder, Rollouts(24, 3, 8, 1, 1, 24, frozen_bonus=frozen))
    hp = make_hparams(algo, gamma=GAMMA, lambda_=lambda_, alpha=0.5, beta=0.4, epsilon=0.5)
    hp = hp._replace(epsilon_end=0.5, total_steps=24.0)
    state, _ = jax.jit(lambda: loop.period(loop.init(jax.random.key(3)), hp, 1))()
    return state, hp


def episodes_of(state):
    """The rows as (count, action, y), and for each what follows by the rules of `walk`."""
    observation, action, y = state.agent.moments
    return np.argmax(observation, -1), np.asarray(action), np.asarray(y)


@pytest.mark.parametrize("algo", EVERY)
def test_at_lambda_0_every_target_is_the_one_step_target_of_the_table(algo):
    state, hp = played(algo, 0.0)
    counts, actions, found = episodes_of(state)
    np.testing.assert_allclose(found, one_step_targets(algo, counts, actions, hp), rtol=1e-5)


def one_step_targets(algo: str, count: np.ndarray, action: np.ndarray, hp: HParams) -> np.ndarray:
    """Of every row, by the algorithm's own function and the rules of `walk`."""
    reached = count + action
    discount = np.where(reached == 4, 0.0, GAMMA).astype(np.float32)
    table = np.asarray(TABLE)
    keys = jax.random.split(jax.random.key(0), len(count))
    x = Bootstrap(table[count], action, reached.astype(np.float32), discount, table[reached], keys)
    target = jax.vmap(lambda x: one_step(get_algorithm(algo))(x, hp, make_policy("exact")))
    return np.asarray(jax.jit(target)(x))


def test_sal_draws_one_number_for_a_whole_rollout():
    state, hp = played("sal", 0.0)
    counts, actions, found = episodes_of(state)
    table = np.asarray(TABLE)
    gaps = table[counts, actions] - table[counts].max(-1)
    bonus = found - one_step_targets("dqn", counts, actions, hp)
    draws = bonus[gaps < 0] / (hp.beta * gaps[gaps < 0])
    assert len(draws) > 3
    assert 7 / 9 <= draws[0] <= 16 / 9
    np.testing.assert_allclose(draws, draws[0], rtol=1e-4)


def test_a_frozen_bonus_takes_its_values_from_the_frozen_copy():
    """The frozen table is half of the one that plays: so is the advantage of AL."""
    live, frozen = (dict(rows("al", flag)) for flag in (False, True))
    plain = dict(rows("dqn", False))
    for key, value in plain.items():
        if key in live and key in frozen:
            np.testing.assert_allclose(2 * (frozen[key] - value), live[key] - value, atol=1e-5)


def rows(algo: str, frozen: bool):
    state, _ = played(algo, 0.0, frozen)
    for c, a, y in zip(*episodes_of(state), strict=True):
        yield (int(c), int(a)), float(y)


@jax.jit
def greedy_rollout(table):
    """The sorted returns of one environment that plays a table's best actions: lambda = 1/2."""
    agent = make_agent(tabulated(), get_algorithm("dqn"))
    start = agent.init(jax.random.key(0))._replace(params=table)

    def fit(state, observation, action, y, hp):
        return state._replace(moments=y), jnp.zeros(())

    init = lambda key: start._replace(moments=jnp.zeros(8))  # noqa: E731
    shape = Rollouts(8, 1, 8, 1, 1, 8)
    loop = make_loop(walk(), agent._replace(init=init, fit=fit), shape)
    hp = make_hparams("dqn", gamma=GAMMA, lambda_=0.5, epsilon=0.0, epsilon_end=0.0)
    state, _ = loop.period(loop.init(jax.random.key(0)), hp, 1)
    return jnp.sort(state.agent.moments)


def test_returns_across_a_time_limit_and_the_end_of_the_rollout_by_hand():
    """TABLE goes up once and stays: 0 -> 1 -> 1 ..., cut after 5 steps; then again, 3 steps.

    Every reward is 1, and the value of every next state is max TABLE[1] = 3.
    Cut at a time limit or at the end: 1 + 0.9 * 3 = 3.7.
    One step before: 1 + 0.9 (0.5 * 3 + 0.5 * 3.7) = 4.015. Two: 1 + 0.9 (1.5 + 2.0075) = 4.15675.
    Three: 1 + 0.9 (1.5 + 2.078375) = 4.2205375. Four: 1 + 0.9 (1.5 + 2.11026875) = 4.249241875.
    """
    wanted = [3.7, 3.7, 4.015, 4.015, 4.15675, 4.15675, 4.2205375, 4.249241875]
    np.testing.assert_allclose(greedy_rollout(TABLE), wanted, rtol=1e-6)


def test_returns_across_a_termination_by_hand():
    """This table goes up four times and terminates, twice. Rewards 1, 2, 3, 4; values 3, 4, 6.

    The last: 4, whatever stands behind it. Before: 3 + 0.9 (0.5 * 6 + 0.5 * 4) = 7.5, then
    2 + 0.9 (0.5 * 4 + 0.5 * 7.5) = 7.175, then 1 + 0.9 (0.5 * 3 + 0.5 * 7.175) = 5.57875.
    """
    up = TABLE.at[1].set(jnp.array([2.5, 3.0]))
    np.testing.assert_allclose(greedy_rollout(up), np.repeat([4, 5.57875, 7.175, 7.5], 2))


# Runs ---------------------------------------------------------------------------------------------

SHAPE = Rollouts(96, 4, 6, 2, 3, 48)
AGENT = make_agent(mlp((5,), (2,), (8,), layer_norm=True), get_algorithm("tal"), optimiser="radam")
WALK = walk()
LOOP = make_loop(WALK, AGENT, SHAPE)  # of all runs: equal loops share their programs
SEEDS, QS = [0, 1, 1], [2.0, 2.0, 1.5]  # three cells or one: each number of them is a program


def learner(seeds: list[int], q: list[float]) -> DeviceLearner:
    hps = [
        make_hparams("tal", q=x, lambda_=0.7, alpha=0.5, epsilon=0.5, total_steps=96.0) for x in q
    ]
    hp = jax.tree.map(lambda *x: jnp.stack([jnp.float32(v) for v in x]), *hps)
    own = functools.partial(plan, SHAPE)
    return DeviceLearner(LOOP, own, WALK, AGENT, hp, seeds, copies=SHAPE.envs)


def finish(own: DeviceLearner, state=None):
    state = own.start() if state is None else state
    *_, last = own.train(state, lambda *_: None)
    return last


@pytest.fixture(scope="module")
def together():
    """The end of three cells side by side."""
    return finish(learner(SEEDS, QS))


def test_seeds_side_by_side_are_those_alone(together):
    for cell, (seed, q) in enumerate(zip(SEEDS, QS, strict=True)):
        alone = finish(learner([seed], [q]))
        for x, y in zip(
            jax.tree.leaves(together.params), jax.tree.leaves(alone.params), strict=True
        ):
            np.testing.assert_allclose(np.asarray(x)[cell], np.asarray(y)[0], rtol=2e-5, atol=1e-6)
    first = np.asarray(jax.tree.leaves(together.params)[0])
    assert not np.allclose(first[0], first[1])


def test_a_run_that_was_saved_resumes_to_the_bit(together):
    own = learner(SEEDS, QS)
    first = next(iter(own.train(own.start(), lambda *_: None)))
    arrays, notes = own.save(first.state)
    assert {name: (x.shape, x.dtype) for name, x in arrays.items()} == own.layout(notes)
    resumed = finish(own, own.restore(arrays, notes))
    assert together.step == resumed.step == 96
    for x, y in zip(jax.tree.leaves(together.params), jax.tree.leaves(resumed.params), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(together.metrics.loss, resumed.metrics.loss)


def test_a_seed_that_diverges_leaves_the_others_alone(together):
    own = learner(SEEDS, QS)
    rate = np.array(own.hp.learning_rate)
    rate[1] = np.inf
    own.hp = own.hp._replace(learning_rate=jnp.asarray(rate))
    bad = finish(own)
    assert bad.metrics.diverged[[0, 2]].tolist() == [-1, -1]
    assert bad.metrics.diverged[1] > 0
    for x, y in zip(jax.tree.leaves(together.params), jax.tree.leaves(bad.params), strict=True):
        np.testing.assert_array_equal(np.asarray(x)[[0, 2]], np.asarray(y)[[0, 2]])


def test_metrics_count_every_episode_of_every_environment():
    own = learner([0], [2.0])
    periods = list(own.train(own.start(), lambda *_: None))
    assert [period.step for period in periods] == [48, 96]
    ended = sum(int(period.metrics.episodes[0]) for period in periods)
    length = [float(p.metrics.episode_length[0]) * int(p.metrics.episodes[0]) for p in periods]
    assert 4 * 24 / 5 - 4 <= ended <= 4 * 24 / 4
    assert sum(length) <= 96


def test_environments_that_truncate_undeclared_are_refused():
    env = walk()._replace(time_limit=None)
    own = learner([0], [2.0])
    own.env, own.loop = env, make_loop(env, AGENT, SHAPE)
    with pytest.raises(ValueError, match="declares none"):
        finish(own)


def test_the_program_is_shared_by_runs_of_one_shape():
    own = learner([0], [2.0])
    again = DeviceLearner(own.loop, own.plan, own.env, AGENT, own.hp, [5], copies=SHAPE.envs)
    assert program(own.loop, 1) is program(again.loop, 1)


def test_quantile_targets_have_the_mean_of_the_scalar_ones():
    agents = [make_agent(tabulated(shape), get_algorithm("tal")) for shape in ((5, 2), (5, 2, 4))]
    spread = jnp.array([-1.5, -0.5, 0.5, 1.5])
    tables = TABLE, TABLE[..., None] + spread[None, None]
    found = []
    for agent, table in zip(agents, tables, strict=True):
        start = agent.init(jax.random.key(0))._replace(params=table, moments=table[:1, 0])

        def fit(state, observation, action, y, hp):
            rows = jnp.mean(y.reshape(24, -1), -1)
            order = jnp.argsort(jnp.argmax(observation, -1) * 100 + action * 10 + rows)
            return state._replace(moments=rows[order]), jnp.zeros(())

        init = lambda key, start=start: start._replace(moments=jnp.zeros(24))  # noqa: E731
        own = agent._replace(init=init, fit=fit)
        loop = make_loop(walk(), own, Rollouts(24, 3, 8, 1, 1, 24))
        hp = HParams(gamma=GAMMA, lambda_=0.6, alpha=0.5, beta=0.4, epsilon=0.5, epsilon_end=0.5)
        run = lambda loop=loop, hp=hp: loop.period(loop.init(jax.random.key(3)), hp, 1)  # noqa: E731
        state, _ = jax.jit(run)()
        found.append(np.asarray(state.agent.moments))
    np.testing.assert_allclose(*found, rtol=1e-5)
