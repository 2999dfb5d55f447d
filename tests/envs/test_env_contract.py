"""What the loops rely on, for every environment in the registry."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import envs

KEY = jax.random.key(0)
ACTION = jnp.int32(0)
STEPS = 60

every_id = pytest.mark.parametrize("env_id", envs.ids())


def shapes(x):
    """Structure, shapes, dtypes and weak types: what a scan's carry must keep."""
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), x)


@functools.cache
def rollout(env_id):
    """`(keys, actions) -> (states, observations, outcomes)`, and of one key: training in small."""
    env = envs.make(env_id)

    def run(key, actions):
        def step(state, x):
            after, out = env.step(state, *x)
            return after, (after, env.observe(after), out)

        k_reset, k_steps = jax.random.split(key)
        keys = jax.random.split(k_steps, STEPS)
        return jax.lax.scan(step, env.reset(k_reset), (actions, keys))[1]

    return jax.jit(jax.vmap(run, (0, None))), jax.jit(run)


def actions(env_id):
    env, random = envs.make(env_id), np.random.default_rng(0)
    if env.action_box:
        return jnp.asarray(random.uniform(*env.action_box, (STEPS, env.num_actions)), jnp.float32)
    return jnp.asarray(random.integers(0, env.num_actions, STEPS), jnp.int32)


def one_action(env):
    return jnp.zeros(env.num_actions) if env.action_box else ACTION


def equal(x, y):
    same = jax.tree.map(lambda a, b: bool((a == b).all()), x, y)
    return all(jax.tree.leaves(same))


@every_id
def test_step_keeps_the_states_shapes(env_id):
    env = envs.make(env_id)
    state = jax.eval_shape(env.reset, KEY)
    after, _ = jax.eval_shape(env.step, state, one_action(env), KEY)
    assert shapes(after) == shapes(state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert jax.eval_shape(env.observe, after) == jax.eval_shape(env.observe, state)


@every_id
def test_dtypes(env_id):
    env = envs.make(env_id)
    state = jax.eval_shape(env.reset, KEY)
    _, out = jax.eval_shape(env.step, state, one_action(env), KEY)
    assert shapes(out) == (
        ((), jnp.float32, False),
        ((), jnp.bool, False),
        ((), jnp.bool, False),
    )
    assert type(out) is envs.Outcome
    observation = jax.eval_shape(env.observe, state)
    assert (observation.dtype, observation.ndim) in ((jnp.float32, 1), (jnp.bool, 3))
    image = jax.eval_shape(env.render, state)
    assert (image.dtype, image.ndim, image.shape[-1]) == (jnp.uint8, 3, 3)


@every_id
def test_names(env_id):
    env = envs.make(env_id)
    assert env.id == env_id
    assert env.num_actions == len(set(env.action_names)) > (0 if env.action_box else 1)
    assert all(isinstance(name, str) for name in env.action_names)


def first_step(env):
    """The first state, the next one, its outcome, observation and picture, as one program."""

    @jax.jit
    def run(key):
        state = env.reset(key)
        after, out = env.step(state, one_action(env), key)
        return state, after, out, env.observe(after), env.render(after)

    return run(KEY)


@every_id
def test_jit_is_the_plain_function_and_promotes_no_ranks(env_id):
    env = envs.make(env_id)
    with jax.numpy_rank_promotion("raise"):
        state = env.reset(KEY)
        after, out = env.step(state, one_action(env), KEY)
        plain = (state, after, out, env.observe(after))
        *compiled, image = first_step(env)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)
    jax.tree.map(close, data(plain), data(tuple(compiled)))
    assert len(np.unique(np.asarray(image).reshape(-1, 3), axis=0)) > 1


@every_id
def test_one_key_repeats_and_another_differs(env_id):
    """Actions are the same throughout, so only the environment's own chance can differ."""
    a = actions(env_id)
    keys = jax.random.split(KEY, 8)
    many, one = rollout(env_id)
    first = many(keys, a)
    assert equal(data(first), data(many(keys, a)))
    observations = np.asarray(first[1]).reshape(8, -1)
    assert len(np.unique(observations, axis=0)) > 1
    # a seed's life does not depend on its neighbours
    assert equal(data(first), jax.tree.map(lambda x: x[::-1], data(many(keys[::-1], a))))
    close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    jax.tree.map(close, jax.tree.map(lambda x: x[3], data(first)), data(one(keys[3], a)))


@every_id
def test_rollout_changes_and_stays_finite(env_id):
    _, observations, out = rollout(env_id)[0](jax.random.split(KEY, 8), actions(env_id))
    assert observations.shape[:2] == (8, STEPS)
    assert (observations[:, 1:] != observations[:, :-1]).any()
    assert np.isfinite(np.asarray(observations, np.float32)).all()
    assert np.isfinite(out.reward).all()


def data(tree):
    """Keys in a state, if there are any, as plain numbers."""

    def plain(x):
        return jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x

    return jax.tree.map(plain, tree)


def test_ids_are_made():
    assert set(envs.ids()) >= {"CartPole-v1", "Acrobot-v1"}
    assert all(isinstance(envs.make(env_id), envs.Environment) for env_id in envs.ids())
