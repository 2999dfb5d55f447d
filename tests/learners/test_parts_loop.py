"""The parts within the loops: priorities as they should be, values that are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tsallax
from support.probe_envs import GAMMA, ROOMS, clock, rooms
from tsallax.agents import Agent, AgentState, make_agent
from tsallax.learners import Schedule
from tsallax.learners.host_programs import make_programs
from tsallax.learners.replay_device import Numbers, make_loop
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay.priorities import LEAST
from tsallax.replay.ring import make_ring
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve

CAPACITY, BATCH, EXPONENT = 12, 4, 0.5


def known_errors() -> Agent:
    """The error of a transition is the number of its observation; what was drawn is noted."""

    def init(key):
        notes = {"count": jnp.int32(0), "seen": jnp.zeros((40, 2, BATCH))}
        return AgentState(notes, notes, ())

    def weighted_update(state, batch, hp, key, weights):
        notes, errors = state.params, batch.observation[:, 0]
        page = notes["seen"].at[notes["count"]].set(jnp.stack([errors, weights]))
        notes = {"count": notes["count"] + 1, "seen": page}
        return state._replace(params=notes), jnp.zeros(()), -errors

    def policy(params, observation, hp):
        return jnp.zeros(3), jnp.ones(3) / 3

    unused = dict.fromkeys(Agent._fields, lambda *_: None)
    own = {"init": init, "weighted_update": weighted_update, "policy": policy}
    own |= {"act": lambda *_: jnp.int32(0), "copy_target": lambda state: state}
    return Agent(**unused | own)


@pytest.mark.parametrize("updates", [1, 2])
def test_priorities_are_those_of_the_last_errors(updates):
    """The ring goes round twice. Told again in NumPy from what was drawn."""
    schedule = Schedule(30, BATCH, 3, 15, updates=updates, prioritised=True)
    loop = make_loop(clock(), known_errors(), make_ring(CAPACITY, None), schedule)
    hp = make_hparams("dqn", priority_exponent=EXPONENT, importance_exponent=0.4, total_steps=30.0)

    @jax.jit
    def run(key):
        state = loop.init(key)
        state, _ = loop.period(state, hp, Numbers(2, 3, True, 3))
        return loop.period(state, hp, Numbers(0, 5, True, 3))[0]

    state = run(jax.random.key(0))
    notes = state.agent.params
    assert notes["count"] == 8 * updates
    leaves, largest, done = {}, 1.0, 0
    for block in range(10):
        fresh = range(3 * block, 3 * block + 3)
        leaves |= dict.fromkeys(fresh, largest)
        leaves = {t: x for t, x in leaves.items() if t > 3 * block + 2 - CAPACITY}
        b = 0.4 + 0.6 * (3 * block + 3) / 30
        for _ in range(updates if block >= 2 else 0):
            seen, weights = np.asarray(notes["seen"][done])
            p = np.array([leaves[int(t)] for t in seen])  # each is one that is held
            np.testing.assert_allclose(weights, (p.min() / p) ** b, rtol=1e-5)
            leaves |= {int(t): (t + LEAST) ** EXPONENT for t in seen}
            largest = max(largest, *(leaves[int(t)] for t in seen))
            done += 1
    found = np.asarray(state.priorities.sums[-1]).ravel()[: CAPACITY + 1]
    expected = np.zeros(CAPACITY + 1)
    for t, x in leaves.items():
        expected[t % (CAPACITY + 1)] = x
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(state.priorities.largest, largest, rtol=1e-5)
    assert len(leaves) == CAPACITY


VALUES = np.array([row[-1] for row in ROOMS.values()], float)


@functools.cache
def learned(n_step: int, prioritised: bool) -> np.ndarray:
    """As in `test_probes`, with a target that follows."""
    env, network = rooms(), mlp((len(ROOMS),), (2,), hidden=())
    agent = make_agent(network, get_algorithm("dqn"), double=True, polyak=True)
    schedule = Schedule(3200, 32, 1, 40, n_step=n_step, prioritised=prioritised)
    loop = make_loop(env, agent, make_ring(256, env.time_limit), schedule)
    numbers = {"gamma": GAMMA, "learning_rate": 0.05, "epsilon": 1.0, "epsilon_end": 1.0}
    hp = make_hparams("dqn", **numbers, tau=0.05, total_steps=3200.0)

    @jax.jit
    def run(key):
        body = lambda state, _: (loop.period(state, hp, Numbers(0, 40, True, 1))[0], None)  # noqa: E731
        params = jax.lax.scan(body, loop.init(key), None, 80)[0].agent.params
        return jax.vmap(lambda x: network.apply(params, x))(jnp.eye(len(ROOMS)))

    return np.asarray(run(jax.random.key(0)))


@pytest.mark.parametrize("room", ROOMS)
def test_all_parts_learn_the_known_values(room):
    """A time limit bootstraps from the observation before the reset, also within three steps."""
    i = list(ROOMS).index(room)
    np.testing.assert_allclose(learned(3, True)[i], VALUES[i], rtol=0.05, atol=0.03)


PARTS = {"double": True, "dueling": True, "n_step": 3, "prioritised": True, "tau": 0.05}
SMALL = {
    "preset": "paper",
    "hidden": (8,),
    "steps": 120,
    "target_period": 40,
    "batch": 8,
    "buffer": 60,
    "seeds": 2,
    "time_limit": 15,
}


@pytest.mark.parametrize(("loop", "algo"), [("compiled", "pal"), ("host", "mdqn")])
def test_quantiles_take_every_part(loop, algo):
    """The scalar head is that of the other tests."""
    head = {"head": "quantile", "quantiles": 3}
    result = tsallax.train("CartPole-v1", algo=algo, loop=loop, **SMALL, **PARTS, **head)
    assert np.isfinite(result.metrics["loss"]).all()


def test_cells_apart_are_cells_together():
    """On the host, with weights: the programs of one cell after the other, or vmapped."""
    config = resolve(Config("CartPole-v1", loop="host", **SMALL | PARTS | {"tau": (0.05,)}))
    run = make_run(config)
    ends = []
    for apart in (False, True):
        learner = make_run(config).learner
        learner.programs = make_programs(run.agent, run.hp, learner.seeds, apart)
        *_, last = learner.train(learner.start(), lambda *_: None)
        ends.append(last.metrics)
    for name in ("loss", "max_q", "episodes"):
        np.testing.assert_allclose(*(getattr(x, name) for x in ends), rtol=1e-3)
