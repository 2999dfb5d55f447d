"""Pendulum against Gymnasium's own, step by step from injected states."""

import functools

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import envs
from tsallax.envs import pendulum
from tsallax.types import Box

STEPS = 2000


@functools.cache
def both():
    """State, observation and reward after one step of each, from the same states and torques."""
    random = np.random.default_rng(0)
    y = random.uniform([-7, -8], [7, 8], (STEPS, 2)).astype(np.float32)
    torque = random.uniform(-3, 3, (STEPS, 1)).astype(np.float32)  # beyond the motor's, too
    env, rows = gym.make("Pendulum-v1").unwrapped, []
    env.reset()
    for start, action in zip(y.astype(float), torque, strict=True):
        env.state = start
        seen, reward, terminated, _, _ = env.step(action)
        rows.append((env.state, seen, reward, terminated))
    theirs = [np.array(column) for column in zip(*rows, strict=True)]
    made, n = envs.make("Pendulum-v1"), STEPS

    @jax.jit
    @jax.vmap
    def step(y, torque):
        state = pendulum.State(y, jnp.zeros(()), jnp.int32(0))
        after, out = made.step(state, torque, jax.random.key(0))
        return after.y, made.observe(after), out.reward, out.terminated

    return list(map(np.asarray, step(jnp.asarray(y), jnp.asarray(torque)))), theirs, n


@pytest.mark.parametrize("i", range(4), ids=["state", "observation", "reward", "terminated"])
def test_steps_as_gymnasium(i):
    ours, theirs, _ = both()
    np.testing.assert_allclose(ours[i], theirs[i], rtol=1e-5, atol=2e-5)


def test_bounds_start_and_time_limit():
    env, theirs = envs.make("Pendulum-v1"), gym.make("Pendulum-v1")
    assert env.action_box == Box(
        tuple(theirs.action_space.low.tolist()), tuple(theirs.action_space.high.tolist())
    )
    assert env.time_limit == theirs.spec.max_episode_steps == 200
    y = jax.vmap(lambda key: env.reset(key).y)(jax.random.split(jax.random.key(0), 4000))
    np.testing.assert_allclose(np.abs(y).max(0), [np.pi, 1], rtol=5e-3)
    np.testing.assert_allclose(y.std(0), np.array([np.pi, 1]) / np.sqrt(3), rtol=0.05)
    state = env.reset(jax.random.key(0))._replace(t=jnp.int32(199))
    _, out = env.step(state, jnp.zeros(1), jax.random.key(0))
    assert bool(out.truncated)
    assert not bool(out.terminated)


def test_unit_actions_are_scaled_to_the_bounds():
    assert Box((-2.0, 0.0), (2.0, 1.0)).scale(np.array([-1.0, 0.5])).tolist() == [-2.0, 0.75]
    env = envs.make("Pendulum-v1")
    state, key = env.reset(jax.random.key(1)), jax.random.key(0)
    given = env.step(state, jnp.array([-1.5]), key)
    scaled = envs.with_unit_actions(env).step(state, jnp.array([-0.75]), key)
    jax.tree.map(np.testing.assert_array_equal, given, scaled)
