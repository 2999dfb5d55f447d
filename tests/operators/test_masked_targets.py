"""Actions that are not allowed: as if they were not there, for every algorithm and policy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.agents import make_agent
from tsallax.networks import Network
from tsallax.operators import ALGORITHMS, make_hparams
from tsallax.operators.targets import action_values
from tsallax.policies import METHODS, epsilon_greedy, make_policy, tsallis_policy
from tsallax.policies.closed import ruling_out
from tsallax.types import RULED_OUT, Bootstrap, Masked

STATES, ACTIONS, QUANTILES = 100_000, 6, 3
# The values of a state are a row of the parameters, and the observation is its number.
TABLE = Network(lambda key: jnp.zeros((2, 2)), lambda params, state: params[state])
NUMBERS = {"alpha": 0.3, "beta": 0.8, "gamma": 0.9, "value_floor": -3.0}


def masks(random, states, actions=ACTIONS):
    """Random ones that allow at least one action."""
    allowed = random.random((states, actions)) < random.random((states, 1))
    allowed[np.arange(states), random.integers(actions, size=states)] = True
    return allowed


def agent_of(name, **how):
    q = None if ALGORITHMS[name].policy else 2.0
    return make_agent(TABLE, ALGORITHMS[name], q=q, masks=True, **how)


class World:
    """Random transitions, each with the masks of its two ends and an action that was allowed."""

    def __init__(self, states, quantiles=0, seed=0, same=False):
        random = np.random.default_rng(seed)
        shape = (states, ACTIONS, *((quantiles,) if quantiles else ()))
        self.Z, self.Z_next = random.normal(size=(2, *shape)).astype(np.float32)
        self.allowed = masks(random, states)
        self.allowed_next = self.allowed if same else masks(random, states)
        self.action = np.argmax(self.allowed * random.random((states, ACTIONS)), 1)
        self.reward = random.normal(size=states).astype(np.float32)
        self.discount = np.where(random.random(states) < 0.1, 0, 0.9).astype(np.float32)

    def ends(self, agent, Z, Z_next):
        """What the agent's network says at both ends."""
        every = jnp.arange(len(Z))
        each = ((Z, self.allowed), (Z_next, self.allowed_next))
        return [agent.atoms(jnp.asarray(z), Masked(every, jnp.asarray(may))) for z, may in each]

    def terms(self, name, Z, Z_next, **how):
        """Value and bonus of every transition."""
        agent, hp = agent_of(name, **how), make_hparams(name, **NUMBERS)
        Z, Z_next = self.ends(agent, Z, Z_next)
        keys = jnp.broadcast_to(jax.random.key(1), (len(Z),))
        x = Bootstrap(
            jax.vmap(action_values)(Z),
            jnp.asarray(self.action),
            jnp.asarray(self.reward),
            jnp.asarray(self.discount),
            Z_next,
            keys,
        )
        value = jax.vmap(agent.value, (0, None))(Z_next, hp)
        return np.asarray(value), np.asarray(jax.vmap(agent.bonus, (0, None))(x, hp))


@pytest.mark.parametrize("quantiles", [0, pytest.param(QUANTILES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_what_is_not_allowed_does_not_count(name, quantiles):
    """Over 1e5 states, NaN in the place of every forbidden value changes no bit of a target."""
    world = World(STATES, quantiles)
    poisoned = [
        np.where(allowed.reshape(allowed.shape + (1,) * (Z.ndim - 2)), Z, np.nan)
        for Z, allowed in ((world.Z, world.allowed), (world.Z_next, world.allowed_next))
    ]
    value, bonus = world.terms(name, world.Z, world.Z_next)
    assert np.isfinite(value).all()
    assert np.isfinite(bonus).all()
    same = world.terms(name, *poisoned)
    np.testing.assert_array_equal(value, same[0])
    np.testing.assert_array_equal(bonus, same[1])


def compact(allowed, *arrays):
    """Each row's allowed actions alone; all rows must allow equally many."""
    order = np.argsort(~allowed, 1, kind="stable")[:, : allowed[0].sum()]
    return [
        jnp.asarray(np.take_along_axis(x, order.reshape(order.shape + (1,) * (x.ndim - 2)), 1))
        for x in arrays
    ]


@pytest.mark.parametrize("quantiles", [0, pytest.param(QUANTILES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_as_if_the_forbidden_actions_were_not_there(name, quantiles):
    """The algorithm on the actions that are left, with the same ones allowed at s and at s'."""
    world = World(300, quantiles, same=True)
    value, bonus = world.terms(name, world.Z, world.Z_next)
    row, hp, policy = ALGORITHMS[name], make_hparams(name, **NUMBERS), make_policy("exact", 2.0)
    key = jax.random.key(1)
    for count in (1, 3, ACTIONS - 1):
        chosen = np.flatnonzero(world.allowed.sum(1) == count)[:20]
        allowed, action = world.allowed[chosen], world.action[chosen]
        Z, Z_next = compact(allowed, world.Z[chosen], world.Z_next[chosen])
        place = np.cumsum(allowed, 1)[np.arange(len(chosen)), action] - 1
        numbers = (jnp.asarray(x[chosen]) for x in (world.reward, world.discount))
        Q, keys = jax.vmap(action_values)(Z), jnp.broadcast_to(key, (len(chosen),))
        x = Bootstrap(Q, jnp.asarray(place), *numbers, Z_next, keys)
        wanted = jax.vmap(lambda Z: row.value(action_values(Z), Z, hp, policy))(Z_next)
        np.testing.assert_allclose(value[chosen], wanted, rtol=1e-6, atol=1e-6)
        wanted = jax.vmap(lambda x: row.bonus(x, hp, policy))(x)
        np.testing.assert_allclose(bonus[chosen], wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["pal", "pal-atari"])
def test_what_cannot_be_repeated_does_not_persist(name):
    """Where a is not allowed at s', PAL is AL; after a termination nothing changes."""
    world = World(1000)
    _, bonus = world.terms(name, world.Z, world.Z_next)
    _, plain = world.terms("al", world.Z, world.Z_next)
    repeatable = world.allowed_next[np.arange(1000), world.action]
    ended = world.discount == 0
    assert (bonus[~repeatable & ~ended] == plain[~repeatable & ~ended]).all()
    assert (bonus[repeatable & ~ended] > plain[repeatable & ~ended]).any()
    assert (bonus[ended] == 0).all()


def test_mellowmax_by_hand():
    """Q = 1, 3 and a forbidden 9, alpha = 2: W = 2 ln((e^.5 + e^1.5)/2) = 2.240."""
    agent, hp = agent_of("cvi-mellowmax"), make_hparams("cvi-mellowmax", alpha=2.0, beta=1.0)
    Z = jnp.array([1.0, RULED_OUT, 3.0])
    np.testing.assert_allclose(agent.value(Z, hp), 2.240, atol=1e-3)
    Q, nothing = jnp.asarray(Z), jnp.zeros(())
    x = Bootstrap(Q, jnp.int32(0), nothing, nothing, Z, jax.random.key(0))
    np.testing.assert_allclose(agent.bonus(x, hp), 1 - 2.240, atol=1e-3)


INDICES = np.array([0.05, 0.3, 0.9, 1.0, 1.2, 1.7, 2.0, 2.5, 4.0, 30.0, np.inf], np.float32)


def policies_of(method, Q, q, alpha):
    """The masked policy of each row, by numbers of its own."""
    hp = make_hparams("tal", q=jnp.asarray(q), alpha=alpha)
    hp = jax.tree.map(lambda x: jnp.broadcast_to(jnp.float32(x), len(Q)), hp)
    return np.asarray(jax.jit(jax.vmap(ruling_out(make_policy(method))))(Q, hp))


@pytest.mark.parametrize("method", METHODS)
def test_no_policy_gives_anything_to_a_forbidden_action(method):
    """Over 1e5 states, every kind of q and six decades of alpha."""
    random = np.random.default_rng(1)
    allowed = masks(random, STATES)
    Q = jnp.asarray(np.where(allowed, random.normal(size=allowed.shape), RULED_OUT), jnp.float32)
    q, alpha = random.choice(INDICES, STATES), np.float32(10.0 ** random.uniform(-4, 2, STATES))
    pi = policies_of(method, Q, q, alpha)
    assert (pi[~allowed] == 0).all()
    assert (pi >= 0).all()
    if method in ("exact", "linear", "paper-normalised"):
        np.testing.assert_allclose(pi.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_the_policy_of_the_actions_that_are_left(method):
    random = np.random.default_rng(2)
    allowed = masks(random, 400)
    Q = random.normal(size=allowed.shape).astype(np.float32)
    q = random.choice(INDICES, 400)
    pi = policies_of(method, jnp.asarray(np.where(allowed, Q, RULED_OUT)), q, 0.3)
    for count in (1, 3):  # each is another program
        chosen = np.flatnonzero(allowed.sum(1) == count)
        left, given = compact(allowed[chosen], Q[chosen], pi[chosen])
        wanted = tsallis_policy(left, q[chosen], 0.3, np.where(q[chosen] == 1, 1, 0.5), method)
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("acting", ["pi", "argmax"])
@pytest.mark.parametrize("name", ["tal", "dqn", "mdqn"])  # each kind of policy: own and Tsallis
def test_no_forbidden_action_is_taken(name, acting):
    """Over 1e5 states, from greedy to uniformly random; uniform means over the allowed ones."""
    world = World(STATES)
    agent, hp = agent_of(name, acting=acting), make_hparams(name, **NUMBERS)
    seen = Masked(jnp.arange(STATES), jnp.asarray(world.allowed))
    keys = jax.random.split(jax.random.key(0), STATES)
    act = jax.jit(jax.vmap(agent.act, (None, 0, None, None, 0)))
    for epsilon in (0.0, 0.1, 1.0):
        action = np.asarray(act(jnp.asarray(world.Z), seen, jnp.asarray(epsilon), hp, keys))
        assert world.allowed[np.arange(STATES), action].all()
    pairs = world.allowed.sum(1) == 2
    first = np.argmax(world.allowed[pairs], 1) == action[pairs]
    assert abs(first.mean() - 0.5) < 5 * 0.5 / np.sqrt(pairs.sum())


def test_uniform_over_the_allowed_actions_by_hand():
    """(1 - .4) (.5, .5, 0, 0) + .4 (1/3, 0, 1/3, 1/3)."""
    pi, allowed = jnp.array([0.5, 0.5, 0.0, 0.0]), jnp.array([True, False, True, True])
    wanted = [0.3 + 0.4 / 3, 0.3, 0.4 / 3, 0.4 / 3]
    np.testing.assert_allclose(epsilon_greedy(pi, 0.4, allowed), wanted, rtol=1e-6)


def test_a_gradient_of_what_is_allowed_alone():
    """The values of forbidden actions are not learned, and what they are changes nothing."""
    world = World(64, quantiles=QUANTILES)
    agent = agent_of("tal")
    seen = Masked(jnp.arange(64), jnp.asarray(world.allowed))
    y = jnp.zeros((64, QUANTILES))

    def loss(params):
        atoms = agent.atoms(params, seen)
        return jnp.sum((atoms[jnp.arange(64), world.action] - y) ** 2)

    slope = np.asarray(jax.grad(loss)(jnp.where(world.allowed[..., None], world.Z, jnp.nan)))
    assert (slope[~world.allowed] == 0).all()
    assert np.isfinite(slope).all()
    assert (slope[np.arange(64), world.action] != 0).all()
