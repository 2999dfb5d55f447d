"""Values that agents learn where the true ones are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.probe_envs import GAMMA, ROOMS, rooms
from tsallax.agents import make_agent
from tsallax.learners import Schedule
from tsallax.learners.replay_device import Numbers, make_loop
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay.ring import make_ring

VALUES = np.array([row[-1] for row in ROOMS.values()], float)
# At beta = 0 the value is the plain one. MDQN keeps its beta: where the actions are equal its
# bonus takes back what the entropy of the next state gives, but for 2 % at the last step.
NUMBERS = {"dqn": {}, "tal": {"beta": 0.0}, "mdqn": {"beta": 0.9}}


@functools.cache
def learned(algorithm: str) -> np.ndarray:
    """Action values after 80 target periods of 40 updates, from uniform actions."""
    env = rooms()
    network = mlp((len(ROOMS),), (2,), hidden=())
    agent = make_agent(
        network, get_algorithm(algorithm), q=2.0
    )  # if it is the algorithm's to choose
    loop = make_loop(env, agent, make_ring(256, env.time_limit), Schedule(3200, 32, 1, 40))
    hp = make_hparams(
        algorithm,
        alpha=0.03,
        gamma=GAMMA,
        learning_rate=0.05,
        epsilon=1.0,
        epsilon_end=1.0,
        **NUMBERS[algorithm],
    )

    @jax.jit
    def run(key):
        state = loop.init(key)
        numbers = Numbers(0, 40, True, 1)
        body = lambda state, _: (loop.period(state, hp, numbers)[0], None)  # noqa: E731
        params = jax.lax.scan(body, state, None, 80)[0].agent.params
        return jax.vmap(lambda x: network.apply(params, x))(jnp.eye(len(ROOMS)))

    return np.asarray(run(jax.random.key(0)))


@pytest.mark.parametrize("algorithm", NUMBERS)
@pytest.mark.parametrize("room", ROOMS)
def test_learned_value(room, algorithm):
    i = list(ROOMS).index(room)
    found = learned(algorithm)[i]
    if algorithm == "mdqn" and room == "reward depends on the action":
        # The worse action is pushed to its bonus' bound: beta l0 = -0.9.
        np.testing.assert_allclose(found, [-0.9, 1], atol=0.05)
    else:
        np.testing.assert_allclose(found, VALUES[i], rtol=0.05, atol=0.03)
