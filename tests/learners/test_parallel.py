"""The parallel learner: its returns by hand, seeds side by side, resume, and where it ends."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import tabular
from tsallax.agents import Agent, make_agent
from tsallax.learners.device import DeviceLearner, program
from tsallax.learners.parallel_device import make_loop
from tsallax.learners.parallel_update import Rollouts, plan
from tsallax.networks import Network, mlp
from tsallax.operators import ALGORITHMS, get_algorithm, make_hparams, one_step
from tsallax.policies import make_policy
from tsallax.types import Bootstrap, Environment, HParams, Outcome

GAMMA = 0.9
SOME = ("dqn", "tal", "mdqn")  # the others are marked slow: each of them is compiled
OTHERS = [n for n in ALGORITHMS if n not in SOME and not n.startswith("sal")]
EVERY = [*SOME, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]


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


def tabulated(shape: tuple[int, ...] = (5, 2)) -> Network:
    """A table in the place of a network."""
    return Network(lambda key: jnp.zeros(shape), lambda params, x: jnp.tensordot(x, params, 1))


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
    state, _ = jax.jit(lambda s: loop.period(s, hp, 1))(loop.init(jax.random.key(3)))
    return state, hp


def episodes_of(state):
    """The rows as (count, action, y), and for each what follows by the rules of `walk`."""
    observation, action, y = state.agent.moments
    return np.argmax(observation, -1), np.asarray(action), np.asarray(y)


@pytest.mark.parametrize("algo", EVERY)
def test_at_lambda_0_every_target_is_the_one_step_target_of_the_table(algo):
    state, hp = played(algo, 0.0)
    target = jax.jit(lambda x: one_step(get_algorithm(algo))(x, hp, make_policy("exact")))
    for c, a, found in zip(*episodes_of(state), strict=True):
        np.testing.assert_allclose(found, target(transition(c, a)), rtol=1e-5)


def transition(count: int, action: int, table=TABLE) -> Bootstrap:
    reached = int(count + action)
    discount = 0.0 if reached == 4 else GAMMA
    numbers = (jnp.float32(reached), jnp.float32(discount))
    return Bootstrap(table[count], jnp.int32(action), *numbers, TABLE[reached], jax.random.key(0))


def test_sal_draws_one_number_for_a_whole_rollout():
    state, hp = played("sal", 0.0)
    plain = jax.jit(lambda x: one_step(get_algorithm("dqn"))(x, hp, make_policy("exact")))
    draws = []
    for c, a, found in zip(*episodes_of(state), strict=True):
        gap = float(TABLE[c, a] - TABLE[c].max())
        if gap < 0:
            draws.append((found - float(plain(transition(c, a)))) / (hp.beta * gap))
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


def greedy_rollout(table) -> np.ndarray:
    """The sorted returns of one environment that plays a table's best actions: lambda = 1/2."""
    agent = make_agent(tabulated(), get_algorithm("dqn"))
    start = agent.init(jax.random.key(0))._replace(params=table)

    def fit(state, observation, action, y, hp):
        return state._replace(moments=y), jnp.zeros(())

    init = lambda key: start._replace(moments=jnp.zeros(8))  # noqa: E731
    shape = Rollouts(8, 1, 8, 1, 1, 8)
    loop = make_loop(walk(), agent._replace(init=init, fit=fit), shape)
    hp = make_hparams("dqn", gamma=GAMMA, lambda_=0.5, epsilon=0.0, epsilon_end=0.0)
    state, _ = jax.jit(lambda s: loop.period(s, hp, 1))(loop.init(jax.random.key(0)))
    return np.sort(np.asarray(state.agent.moments))


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


def learner(seeds: list[int], q: list[float]) -> DeviceLearner:
    hps = [
        make_hparams("tal", q=x, lambda_=0.7, alpha=0.5, epsilon=0.5, total_steps=96.0) for x in q
    ]
    hp = jax.tree.map(lambda *x: jnp.stack([jnp.float32(v) for v in x]), *hps)
    env = walk()
    loop = make_loop(env, AGENT, SHAPE)
    return DeviceLearner(
        loop, functools.partial(plan, SHAPE), env, AGENT, hp, seeds, copies=SHAPE.envs
    )


def finish(own: DeviceLearner, state=None):
    state = own.start() if state is None else state
    *_, last = own.train(state, lambda step: None)
    return last


def test_seeds_side_by_side_are_those_alone():
    together = finish(learner([0, 1, 1], [2.0, 2.0, 1.5]))
    for cell, (seed, q) in enumerate(((0, 2.0), (1, 2.0), (1, 1.5))):
        alone = finish(learner([seed], [q]))
        for x, y in zip(
            jax.tree.leaves(together.params), jax.tree.leaves(alone.params), strict=True
        ):
            np.testing.assert_allclose(x[cell], y[0], rtol=2e-5, atol=1e-6)
    assert not np.allclose(*(jax.tree.leaves(together.params)[0][i] for i in (0, 1)))


def test_a_run_that_was_saved_resumes_to_the_bit():
    whole = finish(learner([0, 1], [2.0, 1.5]))
    own = learner([0, 1], [2.0, 1.5])
    first = next(iter(own.train(own.start(), lambda step: None)))
    arrays, notes = own.save(first.state)
    assert {name: (x.shape, x.dtype) for name, x in arrays.items()} == own.layout(notes)
    resumed = finish(own, own.restore(arrays, notes))
    assert whole.step == resumed.step == 96
    for x, y in zip(jax.tree.leaves(whole.params), jax.tree.leaves(resumed.params), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(whole.metrics.loss, resumed.metrics.loss)


def test_a_seed_that_diverges_leaves_the_others_alone():
    good = finish(learner([0, 1], [2.0, 2.0]))
    own = learner([0, 1], [2.0, 2.0])
    rate = own.hp.learning_rate.at[1].set(jnp.inf)
    own.hp = own.hp._replace(learning_rate=rate)
    bad = finish(own)
    assert bad.metrics.diverged.tolist()[0] == -1
    assert bad.metrics.diverged[1] > 0
    for x, y in zip(jax.tree.leaves(good.params), jax.tree.leaves(bad.params), strict=True):
        np.testing.assert_array_equal(x[0], y[0])


def test_metrics_count_every_episode_of_every_environment():
    own = learner([0], [2.0])
    periods = list(own.train(own.start(), lambda step: None))
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


# Theory -------------------------------------------------------------------------------------------

# One successor of each (s, a): what is left of the sampling error is which actions are taken.
MDP = tabular.garnet(1, 5, 3, 1, 0.8)


def mdp_env() -> Environment:
    """The MDP as an environment that never ends."""
    P, r = jnp.asarray(MDP.P, jnp.float32), jnp.asarray(MDP.r, jnp.float32)
    states = P.shape[0]

    def reset(key):
        return jax.random.randint(key, (), 0, states)

    def step(state, action, key):
        following = jax.random.choice(key, states, p=P[state, action])
        never = jnp.zeros((), bool)
        return following, Outcome(r[state, action], never, never)

    def observe(state):
        return jax.nn.one_hot(state, states)

    def render(state):
        return jnp.zeros((1, 1, 3), jnp.uint8)

    return Environment("MDP", ("0", "1", "2"), reset, step, observe, render)


ROUNDS = 1000


def learned(algo: str, **numbers) -> np.ndarray:
    """The table that the parallel learner ends with: plain stochastic approximation.

    RMSprop with a large eps is gradient descent; the step size decays to 0.
    """
    network = tabulated((5, 3))
    agent = make_agent(network, get_algorithm(algo), optimiser="rmsprop", optimiser_eps=1e4)
    shape = Rollouts(0, 32, 8, 1, 1, 256)
    loop = make_loop(mdp_env(), agent, shape)
    own = {"gamma": MDP.gamma, "alpha": 0.2, "beta": 0.5, "learning_rate": 3e4} | numbers
    hp = make_hparams(algo, **own)._replace(
        learning_rate_end=0.0, total_steps=256.0 * ROUNDS, epsilon_steps=1.0
    )
    state = jax.jit(loop.init)(jax.random.key(0))
    state, _ = jax.jit(loop.period)(state, hp, ROUNDS)
    return np.asarray(state.agent.params)


UNIFORM = {"epsilon": 1.0, "epsilon_end": 1.0}
ON_POLICY = {"epsilon": 0.0, "epsilon_end": 0.0}


@pytest.mark.parametrize("algo", EVERY)
def test_with_a_table_at_lambda_0_it_ends_where_dynamic_programming_ends(algo):
    """At q = 1, where ln pi is finite: at q = 2 MT-DQN has more than one fixed point."""
    numbers = {"alpha": 0.2, "beta": 0.5} | ({"q": 1.0} if algo.startswith("mt-") else {})
    wanted = tabular.solve(MDP, algo, **numbers).Q
    np.testing.assert_allclose(learned(algo, **numbers, **UNIFORM), wanted, atol=5e-3)


@pytest.mark.parametrize("algo", ["tal", pytest.param("tsallis-dqn", marks=pytest.mark.slow)])
def test_above_lambda_0_the_fixed_point_stays_where_the_value_is_that_of_the_player(algo):
    """`value(s') = <pi, Q'>` is the mean of what follows if pi plays, bonuses included."""
    numbers = {"q": 1.0, "alpha": 2.0, "beta": 0.5}
    wanted = tabular.solve(MDP, algo, **numbers).Q
    found = learned(algo, lambda_=0.8, **numbers, **ON_POLICY)
    np.testing.assert_allclose(found, wanted, atol=0.05)


def test_above_lambda_0_it_moves_where_another_policy_plays():
    """Returns of uniform actions are not those of the greedy policy."""
    wanted = tabular.solve(MDP, "dqn").Q
    assert np.abs(learned("dqn", lambda_=0.8, **UNIFORM) - wanted).max() > 0.3


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
        state, _ = jax.jit(lambda s, loop=loop, hp=hp: loop.period(s, hp, 1))(
            loop.init(jax.random.key(3))
        )
        found.append(np.asarray(state.agent.moments))
    np.testing.assert_allclose(*found, rtol=1e-5)
