"""An agent on a network that can be followed by hand, and batches for it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tsallax.agents import Agent, AgentState, make_agent
from tsallax.networks import Network
from tsallax.operators import action_values, get_algorithm, make_hparams
from tsallax.types import Segment, Transition

KEY = jax.random.key(3)
# The observation is what the network gives, but for what it has learned to add.
ECHO = Network(
    lambda key: jnp.zeros(3), lambda params, x: x + params.reshape(3, *(1,) * (x.ndim - 1))
)
NUMBERS = {"alpha": 0.5, "beta": 0.5, "gamma": 0.5, "learning_rate": 0.1}
ONLINE, FROZEN = jnp.array([0.0, 3.0, 0.0]), jnp.array([0.0, -1.0, 0.0])
STEP = Transition(
    jnp.array([[1.0, 0.0, 2.0]]),
    jnp.array([0]),
    jnp.array([10.0]),
    jnp.array([False]),
    jnp.array([[4.0, 2.0, 0.0]]),
)


def agent_of(name: str, **parts) -> tuple[Agent, AgentState]:
    agent = make_agent(ECHO, get_algorithm(name), **parts)
    state = agent.init(KEY)
    return agent, state._replace(params=ONLINE, target_params=FROZEN)


def targets(name: str, batch, hp=None, **parts) -> np.ndarray:
    """`y = error + Q(s,a)`, by the network that learns."""
    agent, state = agent_of(name, **parts)
    hp = hp or make_hparams(name, **NUMBERS)
    errors = agent.weighted_update(state, batch, hp, KEY, jnp.ones(len(batch.reward)))[2]
    first = isinstance(batch, Segment)
    seen, action = (x[:, 0] if first else x for x in (batch.observation, batch.action))
    Q = jax.vmap(lambda x, a: action_values(ECHO.apply(ONLINE, x))[a])(seen, action)
    return np.asarray(errors + Q)


@functools.cache
def random_batch(atoms: tuple[int, ...]) -> Transition:
    rng = np.random.default_rng(0)
    seen, after = rng.normal(size=(2, 40, 3, *atoms)).astype(np.float32)
    reward = rng.normal(size=40).astype(np.float32)
    ends = rng.random(40) < 0.2
    return Transition(*map(jnp.asarray, (seen, np.arange(40) % 3, reward, ends, after)))
