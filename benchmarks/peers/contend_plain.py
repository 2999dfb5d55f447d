"""A plain JAX DQN on tsallax's environments: what one would write first, with nested scans.

It has complete transitions in the ring, optax, networks on batches, and parameters in lists.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from turns import Turns, arguments
from works import CONV, RMSPROP

from tsallax import envs

work, _ = arguments()
turns = Turns(0, work.train_period, settle=work.target_period)
env = envs.make(work.env)
if work.optimiser == "adam":
    optimiser = optax.adam(work.learning_rate)
else:
    optimiser = optax.rmsprop(work.learning_rate, **RMSPROP, eps_in_sqrt=False)


class State(NamedTuple):
    params: Any
    target: Any
    moments: Any
    ring: dict[str, jax.Array]
    count: jax.Array
    env: Any
    key: jax.Array


def uniform(key, shape, inputs):
    return jax.random.uniform(key, shape, minval=-1, maxval=1) / jnp.sqrt(inputs)


def init_network(key, shape):
    keys = iter(jax.random.split(key, 8))
    params, inputs = [], shape[-1]
    if len(shape) == 3:
        kernel = (3, 3, inputs, CONV)
        params.append((uniform(next(keys), kernel, 9 * inputs), jnp.zeros(CONV)))
        inputs = CONV * (shape[0] - 2) * (shape[1] - 2)
    for width in (*work.hidden, env.num_actions):
        params.append((uniform(next(keys), (inputs, width), inputs), jnp.zeros(width)))
        inputs = width
    return params


def values(params, x):
    x = x.astype(jnp.float32)
    if x.ndim == 4:
        (kernel, bias), *params = params
        axes = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=axes)
        x = jax.nn.relu(x + bias).reshape(x.shape[0], -1)
    for weight, bias in params[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return x @ params[-1][0] + params[-1][1]


def init(key):
    k_reset, k_params, k_run = jax.random.split(key, 3)
    start = env.reset(k_reset)
    seen = env.observe(start)
    params = init_network(k_params, seen.shape)
    one = {"observation": seen, "next": seen, "action": jnp.int32(0), "reward": jnp.float32(0)}
    one["terminated"] = jnp.array(False)
    ring = jax.tree.map(lambda x: jnp.zeros((work.buffer, *x.shape), x.dtype), one)
    moments = optimiser.init(params)
    return State(params, params, moments, ring, jnp.int32(0), start, k_run)


def step(state, key):
    k_explore, k_action, k_step, k_reset = jax.random.split(key, 4)
    seen = env.observe(state.env)
    greedy = jnp.argmax(values(state.params, seen[None])[0])
    random = jax.random.randint(k_action, (), 0, env.num_actions)
    explore = jax.random.uniform(k_explore) < work.epsilon
    action = jnp.where(explore, random, greedy).astype(jnp.int32)
    after, outcome = env.step(state.env, action, k_step)
    one = {"observation": seen, "next": env.observe(after), "action": action}
    one |= {"reward": outcome.reward, "terminated": outcome.terminated}
    at = state.count % work.buffer
    ring = jax.tree.map(lambda all_, x: all_.at[at].set(x), state.ring, one)
    over = outcome.terminated | outcome.truncated
    after = jax.tree.map(lambda x, y: jnp.where(over, x, y), env.reset(k_reset), after)
    return state._replace(ring=ring, count=state.count + 1, env=after), None


def block(state, key):
    """A train period of environment steps, and one update."""
    k_sample, *keys = jax.random.split(key, 1 + work.train_period)
    state, _ = jax.lax.scan(step, state, jnp.stack(keys))
    index = jax.random.randint(k_sample, (work.batch,), 0, jnp.minimum(state.count, work.buffer))
    batch = jax.tree.map(lambda x: x[index], state.ring)
    best = jnp.max(values(state.target, batch["next"]), -1)
    y = batch["reward"] + work.gamma * (1 - batch["terminated"]) * best

    def loss(params):
        Q = values(params, batch["observation"])
        return jnp.mean((y - Q[jnp.arange(work.batch), batch["action"]]) ** 2)

    updates, moments = optimiser.update(jax.grad(loss)(state.params), state.moments)
    return state._replace(params=optax.apply_updates(state.params, updates), moments=moments), None


@partial(jax.jit, donate_argnums=0)
def period(state):
    k_next, k_blocks = jax.random.split(state.key)
    keys = jax.random.split(k_blocks, work.target_period // work.train_period)
    state, _ = jax.lax.scan(block, state, keys)
    return state._replace(target=state.params, key=k_next)


state = jax.tree.map(jnp.copy, jax.jit(init)(jax.random.key(0)))  # no two leaves share a buffer
while True:
    state = jax.block_until_ready(period(state))
    turns.done(work.target_period)
