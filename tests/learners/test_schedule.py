"""When the loop acts, updates and copies, and what its metrics mean and cost.

By an agent that keeps a diary. The clock's observation is the number of steps and the last action;
a ring of one transition shows the agent the newest.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from support.hlo import AS_USERS, assert_writes_in_place
from support.probe_envs import clock, dice, throw
from tsallax.agents import Agent, AgentState
from tsallax.learners import Metrics, Schedule, epsilon_at
from tsallax.learners.device import keys_of, program
from tsallax.learners.replay_device import Numbers, make_loop
from tsallax.replay.ring import make_ring
from tsallax.types import HParams

HP = HParams(epsilon=1.0, epsilon_end=0.2, epsilon_steps=16.0)


def diary_agent() -> Agent:
    def init(key):
        diary = {"updates": jnp.int32(0), "pages": jnp.zeros((20, 2))}
        return AgentState(diary, diary, jnp.zeros((), jnp.int32))

    def act(params, observation, epsilon, hp, key):
        return jnp.round(1000 * epsilon).astype(jnp.int32) + 10_000 * params["updates"]

    def update(state, batch, hp, key, cached):
        assert cached is None
        done = state.params["updates"]
        pages = state.params["pages"].at[done].set(batch.next_observation[0])
        diary = {"updates": done + 1, "pages": pages}
        return state._replace(params=diary), done.astype(jnp.float32)

    def copy_target(state):
        return state._replace(target_params=state.params, moments=state.moments + 1)

    def policy(params, observation, hp):
        """The policy of the old parameters is another one."""
        odd = observation[0] % 2 == 1
        Q = jnp.where(odd, jnp.array([1.0, 3.0, -2.0]), jnp.array([7.0, 0.0, 1.0]))
        sharp = jnp.where(odd, jnp.array([0.5, 0.5, 0.0]), jnp.array([1.0, 0.0, 0.0]))
        flat = jnp.array([0.25, 0.25, 0.5])
        return Q, jnp.where(params["updates"] > 0, sharp, flat)

    own = {"init": init, "act": act, "update": update, "copy_target": copy_target}
    unused = dict.fromkeys(Agent._fields, lambda *_: None)
    return Agent(**unused | own | {"policy": policy})


@functools.cache
def diary() -> list:
    """States and metrics of: warm-up alone, the rest of a period, a period without the copy."""
    loop = make_loop(clock(), diary_agent(), make_ring(1, None), Schedule(24, 1, 3, 12))
    state, out = jax.jit(loop.init)(jax.random.key(0)), []
    period = jax.jit(lambda state, *shape: loop.period(state, HP, Numbers(*shape, 3)))
    for shape in ((2, 0, True), (1, 3, True), (0, 2, False)):
        state, metrics = period(state, *shape)
        out.append((state, metrics))
    return out


def test_updates_come_every_c_steps_after_the_warm_up():
    state = diary()[-1][0]
    pages = np.asarray(state.agent.params["pages"])
    assert state.agent.params["updates"] == 5
    assert state.step == 24
    # Two idle blocks, one more in the second period, then an update after every third step.
    np.testing.assert_array_equal(pages[:5, 0], [12, 15, 18, 21, 24])
    assert not pages[5:].any()


def test_acting_uses_the_newest_parameters_and_the_epsilon_of_the_step():
    action = np.asarray(diary()[-1][0].agent.params["pages"])[:5, 1]
    newest, epsilon = np.divmod(action, 10_000)
    np.testing.assert_array_equal(newest, range(5))
    # The last step before the update was number 11, 14, ... counted from 0.
    expected = [1 - 0.8 * min(t / 16, 1) for t in (11, 14, 17, 20, 23)]
    np.testing.assert_allclose(epsilon / 1000, expected, atol=6e-4)


def test_epsilon_is_linear_then_constant():
    steps = jnp.array([0, 4, 8, 16, 17, 1000])
    found = jax.vmap(epsilon_at, (0, None))(steps, HP)
    np.testing.assert_allclose(found, [1, 0.8, 0.6, 0.2, 0.2, 0.2], rtol=1e-6)
    reported = [metrics.epsilon for _, metrics in diary()]
    np.testing.assert_allclose(reported, [1 - 0.8 * 6 / 16, 0.2, 0.2], rtol=1e-6)


def test_actions_are_uniformly_random_before_learning_starts():
    steps = jnp.array([0, 7, 8, 16])
    found = jax.vmap(epsilon_at, (0, None))(steps, HP._replace(random_steps=8.0))
    np.testing.assert_allclose(found, [1, 1, 0.6, 0.2], rtol=1e-6)


def test_several_updates_follow_each_train_period():
    """Each draws its own batch and its own key; the loss is the mean over all of them."""

    def update(state, batch, hp, key, cached):
        done = state.params["updates"]
        page = jnp.stack([throw(key), batch.observation[0, 0]])
        pages = state.params["pages"].at[done].set(page)
        return state._replace(params={"updates": done + 1, "pages": pages}), done.astype(float)

    agent = diary_agent()._replace(update=update)
    loop = make_loop(clock(), agent, make_ring(100, None), Schedule(18, 1, 3, 6, updates=4))
    run = lambda: loop.period(loop.init(jax.random.key(0)), HP, Numbers(4, 2, False, 3))  # noqa: E731
    state, metrics = jax.jit(run)()
    pages = np.asarray(state.agent.params["pages"])[:8]
    assert state.agent.params["updates"] == 8
    assert state.step == 18
    assert len(set(pages[:, 0])) == 8
    assert len(set(pages[:, 1])) > 4
    np.testing.assert_allclose(metrics.loss, np.mean(range(8)))


def test_the_target_is_copied_at_the_end_of_a_period():
    copies = [int(state.agent.moments) for state, _ in diary()]
    targets = [int(state.agent.target_params["updates"]) for state, _ in diary()]
    assert copies == [1, 2, 2]
    assert targets == [0, 3, 3]


def test_loss_is_the_mean_over_the_updates():
    """The diary's loss is the number of the update."""
    found = [metrics.loss for _, metrics in diary()]
    np.testing.assert_array_equal(found, [np.nan, (0 + 1 + 2) / 3, (3 + 4) / 2])


def test_no_episode_ended():
    for _, metrics in diary():
        assert metrics.episodes == 0
        assert np.isnan(metrics.episode_return)
        assert np.isnan(metrics.episode_length)


def test_metrics_of_known_policies():
    """Observation 11 of the first update's period is odd, see `diary_agent`; then 17, and 23."""
    log2 = np.log(2)
    warm, period, last = (metrics for _, metrics in diary())
    known = Metrics._fields[5:10]
    assert known == ("max_q", "action_gap", "entropy", "support", "kl")
    flat, sharp = 1.5 * log2, log2
    expected = (
        (warm, (3, 2, flat, 3, 0)),  # nothing learned: both policies are the flat one
        (period, (3, 2, sharp, 2, log2)),  # 0.5 ln(0.5/0.25) twice
        (last, (3, 2, sharp, 2, 0)),
    )
    for metrics, numbers in expected:
        np.testing.assert_allclose(metrics[5:10], numbers, atol=1e-6)


def test_metrics_are_means_over_a_batch():
    """Two observations, one odd: all numbers must agree on its share."""
    ring = make_ring(2, None)
    loop = make_loop(clock(), diary_agent(), ring, Schedule(6, 64, 3, 6))
    run = lambda: loop.period(loop.init(jax.random.key(0)), HP, Numbers(0, 2, True, 3))  # noqa: E731
    _, metrics = jax.jit(run)()
    share = (7 - metrics.max_q) / 4
    assert 0.2 < share < 0.8
    np.testing.assert_allclose(metrics.action_gap, 6 - 4 * share, rtol=1e-5)
    np.testing.assert_allclose(metrics.entropy, share * np.log(2), rtol=1e-5)
    np.testing.assert_allclose(metrics.support, 1 + share, rtol=1e-5)
    np.testing.assert_allclose(metrics.kl, (2 - share) * np.log(2), rtol=1e-5)


def test_no_key_is_used_twice():
    """Every reset, step, action and update of every seed throws its own number."""

    def act(params, observation, epsilon, hp, key):
        return throw(key).astype(jnp.int32)

    def update(state, batch, hp, key, cached):
        assert cached is None
        done = state.params["updates"]
        pages = state.params["pages"].at[done, 0].set(throw(key))
        return state._replace(params={"updates": done + 1, "pages": pages}), jnp.zeros(())

    env, agent = dice(), diary_agent()._replace(act=act, update=update)
    loop = make_loop(env, agent, make_ring(50, env.time_limit), Schedule(30, 1, 2, 10))

    @jax.jit
    @jax.vmap
    def run(seed):
        numbers = Numbers(2, 3, True, 2)
        body = lambda state, _: (loop.period(state, HP, numbers)[0], None)  # noqa: E731
        state = jax.lax.scan(body, loop.init(jax.random.key(seed)), None, 3)[0]
        return state.replay, state.agent.params

    rings, diaries = run(jnp.arange(2))
    throws = [*np.asarray(diaries["pages"])[:, :9, 0].ravel()]
    for ring in (jax.tree.map(lambda x: np.asarray(x[seed]), rings) for seed in range(2)):  # noqa: B023
        throws += [*ring.observations[0:31:2, 0]]  # a reset every second step
        after = np.stack([ring.observations[1:30:2], ring.finals[ring.final[1:30:2]]])
        throws += [*after[:, :, 1:].ravel()]  # thrown in the step, and the action
    assert len(throws) == 2 * (9 + 16 + 30 + 30)
    assert len(set(throws)) == len(throws)


def test_cost_of_a_period_does_not_grow_with_the_capacity():
    """As a run compiles it: many seeds, the state donated."""
    capacity, seeds = 12_344, 2
    loop = make_loop(clock(), diary_agent(), make_ring(capacity, 50), Schedule(9, 1, 3, 9))
    state = jax.eval_shape(jax.vmap(loop.init), keys_of(list(range(seeds))))
    hp = jax.tree.map(lambda x: jnp.full(seeds, x, jnp.float32), HP)
    lowered = program(loop, seeds).lower(state, hp, Numbers(1, 2, True, 3))
    assert_writes_in_place(lowered.compile(AS_USERS), capacity, 18 * capacity * seeds)


def test_keys_are_those_of_their_seeds_and_made_together(monkeypatch):
    """Ten thousand seeds are a run that is not refused: stacked, their keys compiled for ever."""
    seeds, key, calls = [0, 7, 2**31 - 1], jax.random.key, []
    wanted = [np.asarray(jax.random.key_data(key(seed))) for seed in seeds]
    monkeypatch.setattr(jax.random, "key", lambda seed: calls.append(seed) or key(seed))
    np.testing.assert_array_equal(jax.random.key_data(keys_of(seeds)), wanted)
    assert len(calls) == 1
