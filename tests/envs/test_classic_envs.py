"""CartPole, Acrobot and MountainCar against Gymnasium's own, step by step from injected states."""

import functools
from typing import NamedTuple

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import envs
from tsallax.envs import acrobot, cartpole, mountain_car

CLASSIC = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
STATE = {
    "CartPole-v1": cartpole.State,
    "Acrobot-v1": acrobot.State,
    "MountainCar-v0": mountain_car.State,
}
SIZE = {"CartPole-v1": 4, "Acrobot-v1": 4, "MountainCar-v0": 2}  # numbers of a state
BOUND = {"CartPole-v1": 0.05, "Acrobot-v1": 0.1}
PICTURE = {
    "CartPole-v1": (160, 320, 3),
    "Acrobot-v1": (240, 240, 3),
    "MountainCar-v0": (200, 320, 3),
}


class Steps(NamedTuple):
    """One step from each of n states."""

    y: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray


@functools.cache
def batch_step(env_id):
    return jax.jit(jax.vmap(envs.make(env_id).step))


@functools.cache
def single_step(env_id):
    return jax.jit(envs.make(env_id).step)


@functools.cache
def batch_render(env_id):
    return jax.jit(jax.vmap(envs.make(env_id).render))


def pictures(env_id, y):
    """Of four states: one shape, compiled once."""
    state = STATE[env_id](jnp.asarray(y, jnp.float32), jnp.zeros(4, jnp.int32))
    return np.asarray(batch_render(env_id)(state))


def our_steps(env_id, y, a) -> Steps:
    n = len(y)
    state = STATE[env_id](jnp.asarray(y), jnp.zeros(n, jnp.int32))
    after, out = batch_step(env_id)(state, jnp.asarray(a), jax.random.split(jax.random.key(0), n))
    return Steps(np.asarray(after.y), np.asarray(out.reward), np.asarray(out.terminated))


def gym_steps(env_id, y, a) -> Steps:
    env = gym.make(env_id).unwrapped
    steps = []
    for yi, ai in zip(y.astype(np.float64), a, strict=True):
        env.reset()  # clears CartPole's memory of having fallen, which would make the reward 0
        env.state = yi
        _, reward, terminated, _, _ = env.step(ai)
        steps.append(Steps(env.state, reward, terminated))
    return Steps(*map(np.array, zip(*steps, strict=True)))


def distance(env_id, ours, theirs):
    d = ours - theirs
    if env_id == "Acrobot-v1":  # -pi and pi are one angle
        d[:, :2] -= 2 * np.pi * np.round(d[:, :2] / (2 * np.pi))
    return np.abs(d)


def random_cartpole(n):
    """A fifth of these end the episode, by either limit and on either side."""
    high = np.array([2.6, 4.0, 0.23, 4.0])
    rng = np.random.default_rng(0)
    return rng.uniform(-high, high, (n, 4)), rng.integers(0, 2, n).astype(np.int32)


def random_mountain_car(n):
    """The whole box; a few start in the last step before a wall or the flag."""
    rng = np.random.default_rng(0)
    y = rng.uniform([-1.2, -0.07], [0.6, 0.07], (n, 2))
    y[: n // 10, 0] = rng.choice([-1.2, -1.19, 0.49, 0.6], n // 10)
    return y, rng.integers(0, 3, n).astype(np.int32)


def acrobot_trajectories():
    """States met by a random policy and by one whose torque follows the second link's velocity.

    The second adds energy at every step; it reaches the goal, is carried on beyond it, turns over
    and over and runs into the first link's velocity limit.
    """
    env, rng = gym.make("Acrobot-v1").unwrapped, np.random.default_rng(0)
    steps = []
    for seed, pump in enumerate([False, True, True, True]):
        env.reset(seed=seed)
        for _ in range(500):
            a = 2 * int(env.state[3] > 0) if pump else int(rng.integers(3))
            steps.append((env.state.astype(np.float32), np.int32(a)))
            env.step(a)
    y, a = map(np.array, zip(*steps, strict=True))
    return y, a


def test_cartpole_steps_as_gymnasium():
    y, a = random_cartpole(10_000)
    y = y.astype(np.float32)
    ours, theirs = our_steps("CartPole-v1", y, a), gym_steps("CartPole-v1", y, a)
    assert 0.1 < theirs.terminated.mean() < 0.5
    np.testing.assert_allclose(ours.y, theirs.y, rtol=0, atol=1e-5)
    # no state is left out: none of these lands within rounding of a limit
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)
    np.testing.assert_array_equal(ours.reward, theirs.reward)


def test_mountain_car_steps_as_gymnasium():
    y, a = random_mountain_car(5_000)
    y = y.astype(np.float32)
    ours, theirs = our_steps("MountainCar-v0", y, a), gym_steps("MountainCar-v0", y, a)
    assert 0.02 < theirs.terminated.mean() < 0.5
    assert (theirs.y[:, 0] == -1.2).sum() > 50  # the wall, at which it stops
    np.testing.assert_allclose(ours.y, theirs.y, rtol=0, atol=1e-6)
    # Within rounding of the flag the two may differ; it is met exactly below, in float64.
    clear = np.abs(theirs.y[:, 0] - mountain_car.GOAL) > 1e-6
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(ours.terminated[clear], theirs.terminated[clear])
    np.testing.assert_array_equal(ours.reward, theirs.reward)


def test_acrobot_steps_as_gymnasium():
    y, a = acrobot_trajectories()
    ours, theirs = our_steps("Acrobot-v1", y, a), gym_steps("Acrobot-v1", y, a)
    assert 10 < theirs.terminated.sum() < len(y) / 2
    assert np.abs(theirs.y[:, 2]).max() == 4 * np.pi  # the second limit is met in float64, below
    # One float32 rounding of a velocity near 28 is 1e-6, and four stages with gains of a few make
    # 4e-6 the worst seen; a gravity of 9.81 would be off by 2e-3.
    assert distance("Acrobot-v1", ours.y, theirs.y).max() < 2e-5
    assert np.abs(ours.y[:, :2]).max() <= np.float32(np.pi)
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)
    np.testing.assert_array_equal(ours.reward, theirs.reward)


@pytest.mark.parametrize("env_id", CLASSIC)
def test_equations_are_the_same_in_float64(env_id):
    """What is left of the difference above is rounding, not a formula."""
    if env_id == "CartPole-v1":
        y, a = random_cartpole(500)
    elif env_id == "MountainCar-v0":
        y, a = random_mountain_car(500)
    else:  # the whole box, further than any policy gets
        high = np.array([np.pi, np.pi, 4 * np.pi, 9 * np.pi])
        rng = np.random.default_rng(1)
        y, a = rng.uniform(-high, high, (500, 4)), rng.integers(0, 3, 500)
    theirs = gym_steps(env_id, y, a)
    if env_id == "Acrobot-v1":
        assert np.abs(theirs.y[:, 2:]).max(0).tolist() == [4 * np.pi, 9 * np.pi]
    with jax.enable_x64(True):
        ours = our_steps(env_id, y, a)
    assert ours.y.dtype == np.float64
    assert distance(env_id, ours.y, theirs.y).max() < 1e-9


@pytest.mark.parametrize("env_id", CLASSIC)
def test_observes_as_gymnasium(env_id):
    y = np.random.default_rng(2).uniform(-3, 3, (100, SIZE[env_id])).astype(np.float32)
    observe = jax.jit(jax.vmap(envs.make(env_id).observe))
    ours = np.asarray(observe(STATE[env_id](jnp.asarray(y), jnp.zeros(100, jnp.int32))))
    env = gym.make(env_id).unwrapped
    assert ours.dtype == env.observation_space.dtype
    assert ours.shape[1:] == env.observation_space.shape
    assert envs.make(env_id).num_actions == env.action_space.n
    for yi, row in zip(y, ours, strict=True):
        env.state = yi.astype(np.float64)
        theirs = env._get_ob() if env_id == "Acrobot-v1" else env.state
        np.testing.assert_allclose(row, theirs, rtol=0, atol=1e-6)


POLICIES = {
    # a hand-made balance of pole and cart; and a torque that is never switched on
    "CartPole-v1": lambda s: int(s[2] + 0.3 * s[3] + 0.05 * s[0] + 0.1 * s[1] > 0),
    "Acrobot-v1": lambda s: 1,
    "MountainCar-v0": lambda s: 1,
}


@pytest.mark.parametrize("env_id", CLASSIC)
@pytest.mark.parametrize("options", [{}, {"time_limit": 7}])
def test_truncates_when_gymnasium_does(env_id, options):
    limit = options.get("time_limit")
    theirs = gym.make(env_id, max_episode_steps=limit)
    obs, _ = theirs.reset(seed=0)
    ours = envs.make(env_id, **options)
    step, key = jax.jit(ours.step) if options else single_step(env_id), jax.random.key(0)
    state = ours.reset(key)
    counts = []
    for t in range(1, 502):
        obs, _, _, truncated_theirs, _ = theirs.step(POLICIES[env_id](obs))
        state, out = step(state, POLICIES[env_id](np.asarray(state.y)), key)
        assert not out.terminated
        counts.append((t, bool(out.truncated), truncated_theirs))
        if truncated_theirs:
            break
    assert counts[-1] == (limit or ours.time_limit, True, True)
    assert all(ours == theirs for _, ours, theirs in counts)
    assert ours.time_limit == theirs.spec.max_episode_steps


def test_an_end_at_the_limit_is_both():
    theirs = gym.make("CartPole-v1", max_episode_steps=1)
    theirs.reset(seed=0)
    theirs.unwrapped.state = np.array([2.39, 4.0, 0.0, 0.0])
    _, reward, terminated, truncated, _ = theirs.step(1)
    assert (reward, terminated, truncated) == (1, True, True)
    state = cartpole.State(jnp.array([2.39, 4.0, 0.0, 0.0]), jnp.int32(0))
    _, out = jax.jit(envs.make("CartPole-v1", time_limit=1).step)(
        state, jnp.int32(1), jax.random.key(0)
    )
    assert (out.reward, out.terminated, out.truncated) == (1, True, True)


@pytest.mark.parametrize("env_id", CLASSIC)
def test_no_limit_never_truncates(env_id):
    step = jax.jit(envs.make(env_id, time_limit=None).step)
    late = STATE[env_id](jnp.zeros(SIZE[env_id]), jnp.int32(10**6))
    assert not step(late, jnp.int32(1), jax.random.key(0))[1].truncated


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1"])
def test_reset_is_uniform_in_its_bounds(env_id):
    state = jax.jit(jax.vmap(envs.make(env_id).reset))(jax.random.split(jax.random.key(0), 4000))
    y, bound = np.asarray(state.y), BOUND[env_id]
    assert np.abs(y).max() <= bound
    # each coordinate on its own: 4000 draws come within 1 % of the ends, their mean within 5 sigma
    assert (y.min(0) < -0.99 * bound).all()
    assert (y.max(0) > 0.99 * bound).all()
    assert np.abs(y.mean(0)).max() < 5 * bound / np.sqrt(3 * 4000)
    assert np.abs(np.corrcoef(y.T) - np.eye(4)).max() < 5 / np.sqrt(4000)
    assert not state.t.any()


def test_mountain_car_starts_at_rest_in_the_valley():
    reset = jax.jit(jax.vmap(envs.make("MountainCar-v0").reset))
    y = np.asarray(reset(jax.random.split(jax.random.key(0), 4000)).y)
    assert (y[:, 1] == 0).all()
    assert -0.6 <= y[:, 0].min() < -0.598
    assert -0.402 < y[:, 0].max() <= -0.4
    assert abs(y[:, 0].mean() + 0.5) < 5 * 0.1 / np.sqrt(3 * 4000)


@pytest.mark.parametrize("env_id", CLASSIC)
def test_vmap_is_a_loop(env_id):
    y = np.random.default_rng(3).uniform(-0.2, 0.2, (8, SIZE[env_id])).astype(np.float32)
    a = np.arange(8, dtype=np.int32) % envs.make(env_id).num_actions
    ours, step = our_steps(env_id, y, a), single_step(env_id)
    for i in range(8):
        after, out = step(STATE[env_id](jnp.asarray(y[i]), jnp.int32(0)), a[i], jax.random.key(0))
        # vectorised sine and cosine may round otherwise than the scalar ones
        np.testing.assert_allclose(after.y, ours.y[i], rtol=0, atol=1e-6)
        assert (out.reward, out.terminated) == (ours.reward[i], ours.terminated[i])


@pytest.mark.parametrize("env_id", CLASSIC)
def test_pictures(env_id):
    states = np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]])
    images = pictures(env_id, states[:, : SIZE[env_id]])
    assert images.dtype == np.uint8
    assert images.shape == (4, *PICTURE[env_id])
    background = np.median(images[0].reshape(-1, 3), axis=0)
    assert (background > 220).all()
    changed = [int((images[0] != image).any(-1).sum()) for image in images]
    # what is drawn is where things are: positions move pixels, velocities do not
    moves = {"CartPole-v1": [0, 1, 1, 0], "Acrobot-v1": [0, 1, 0, 1]}.get(env_id, [0, 1, 0, 0])
    assert [n > 200 for n in changed] == [bool(m) for m in moves]
    assert [n == 0 for n in changed] == [not m for m in moves]
    # anti-aliased: a sharp drawing would have only its seven paints
    assert len(np.unique(images[1].reshape(-1, 3), axis=0)) > 20


def test_picture_of_the_cart_moves_right_with_x():
    x = np.array([-1.0, 0.0, 1.0, 2.0])
    images = pictures("CartPole-v1", np.outer(x, [1, 0, 0, 0]))
    middles = [(image.max(-1) < 100).nonzero()[1].mean() for image in images]
    np.testing.assert_allclose(middles, 159.5 + x * 320 / 5.6, atol=1)


def test_picture_of_the_tip_is_where_the_goal_is_judged():
    theta = np.array([0.0, 1.0, 2 * np.pi / 3, 3.0])
    images = pictures("Acrobot-v1", np.outer(theta, [1, 0, 0, 0]))
    orange = (images[..., 0] > 200) & (images[..., 2] < 80)
    heights = [(119.5 - tip.nonzero()[0].mean()) * 4.6 / 240 for tip in orange]
    np.testing.assert_allclose(heights, -2 * np.cos(theta), atol=0.01)
    green = (images[2, ..., 0] < 180) & (images[2, ..., 1] > images[2, ..., 2])
    np.testing.assert_allclose(
        (119.5 - green.nonzero()[0].mean()) * 4.6 / 240, acrobot.GOAL, atol=0.02
    )


def test_unknown_id_names_the_nearest():
    with pytest.raises(
        ValueError, match=r"unknown environment 'Cartpole-v1'; did you mean 'CartPole-v1'\?$"
    ):
        envs.make("Cartpole-v1")
    with pytest.raises(ValueError, match="did you mean 'Acrobot-v1'"):
        envs.make("acrobat")
    with pytest.raises(ValueError, match=r"unknown environment 'zzz'; there are .*CartPole-v1"):
        envs.make("zzz")
