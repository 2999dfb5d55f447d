"""The parts of an agent by hand: double estimates, n steps, weights, targets that follow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.agents import Agent, AgentState, make_agent
from tsallax.networks import Network
from tsallax.operators import (
    ALGORITHMS,
    action_values,
    get_algorithm,
    make_hparams,
    terms,
)
from tsallax.policies import make_policy
from tsallax.types import Bootstrap, Segment, Transition

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


# --- Double estimates -----------------------------------------------------------------------------


def test_double_dqn_golden():
    """Online at s' (4, 5, 0): its best is the second, which is worth 2 - 1 there by the frozen one.

    y = 10 + 1/2; the frozen network alone, (4, 1, 0): 10 + 4/2.
    """
    np.testing.assert_allclose(targets("dqn", STEP, double=True), [10.5])
    np.testing.assert_allclose(targets("dqn", STEP), [12])


def test_double_soft_golden():
    """The online network's policy, evaluated by the frozen one, with that policy's own entropy.

    Online (4, 5, 0)/alpha, alpha = 1/2: pi = softmax(8, 10, 0).
    """
    z = np.exp(np.array([8.0, 10.0, 0.0]))
    pi = z / z.sum()
    value = pi @ [4, 1, 0] - 0.5 * pi @ np.log(pi)
    np.testing.assert_allclose(targets("soft-dqn", STEP, double=True), [10 + value / 2], rtol=1e-6)


def test_double_tal_golden():
    """q = 2, k = 1/2, alpha = 1/2: pi = sparsemax(Q/alpha); the bonus stays the frozen network's.

    Online at s' (4, 5, 0)/0.5: the gap of 2 rules the first out, pi' = (0, 1, 0), worth 1.
    Frozen at s (1, -1, 2)/0.5: pi = (0, 0, 1), the advantage of action 0 is 1 - 2.
    y = 10 + 1/2 - 1/2; without double pi' = (1, 0, 0): 10 + 4/2 - 1/2.
    """
    np.testing.assert_allclose(targets("tal", STEP, double=True), [10], rtol=1e-6)
    np.testing.assert_allclose(targets("tal", STEP), [11.5], rtol=1e-6)


def test_double_quantiles_golden():
    """Means of online quantiles at s' (1, 3 + 3): the second action's frozen atoms (0, 4) - 1."""
    batch = STEP._replace(
        observation=jnp.zeros((1, 3, 2)),
        next_observation=jnp.array([[[0.0, 2.0], [0.0, 4.0], [0.0, 0.0]]]),
    )
    agent, state = agent_of("dqn", double=True)
    hp = make_hparams("dqn", **NUMBERS)
    _, loss, errors = agent.weighted_update(state, batch, hp, KEY, jnp.ones(1))
    # y = 10 + (-1, 3)/2 = (9.5, 11.5), prediction 0: quantile Huber, levels 1/4 and 3/4.
    np.testing.assert_allclose(errors, [10.5])
    np.testing.assert_allclose(loss, (1 / 4 + 3 / 4) * (9 + 11) / 2)


@functools.cache
def random_batch(atoms: tuple[int, ...]) -> Transition:
    rng = np.random.default_rng(0)
    seen, after = rng.normal(size=(2, 40, 3, *atoms)).astype(np.float32)
    reward = rng.normal(size=40).astype(np.float32)
    ends = rng.random(40) < 0.2
    return Transition(*map(jnp.asarray, (seen, np.arange(40) % 3, reward, ends, after)))


VALUES = {row.value: name for name, row in ALGORITHMS.items()}  # one algorithm for each value


@functools.cache
def errors_of(atoms: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Single and double, where the networks agree and where they do not: of every value."""
    batch = random_batch(atoms)

    def one(name, double, frozen):
        agent, state = agent_of(name, double=double)
        state = state._replace(target_params=frozen)
        hp = make_hparams(name, **NUMBERS, k=1.0)  # at which the value of MVI is a maximum
        return agent.weighted_update(state, batch, hp, KEY, jnp.ones(40))[2]

    def every(frozen):
        both = (False, True)
        return {name: jnp.stack([one(name, d, frozen) for d in both]) for name in VALUES.values()}

    return jax.jit(lambda: jax.lax.map(every, jnp.stack([ONLINE, FROZEN])))()


@pytest.mark.parametrize("atoms", [(), (5,)], ids=["scalar", "quantile"])
@pytest.mark.parametrize("name", VALUES.values())
def test_double_is_single_where_the_networks_agree(name, atoms):
    (single, double), (apart, other) = errors_of(atoms)[name]
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-6)
    assert np.abs(apart - other).max() > 0.1
    ends = random_batch(atoms).terminated
    np.testing.assert_allclose(apart[ends], other[ends])


@pytest.mark.parametrize("value", ["max_value", "soft_value", "q_soft_value", "mellowmax_value"])
def test_a_double_estimate_of_a_maximum_is_never_larger(value):
    """Where the value is the largest over all policies, another network's policy has less."""
    name = next(name for function, name in VALUES.items() if function.__name__ == value)
    single, double = errors_of(())[name][1]
    assert (double <= single + 1e-5).all()


def test_double_costs_nothing_when_it_is_off():
    """By the products in the program: the network is not looked at twice."""

    def products(**parts):
        agent = make_agent(
            Network(lambda key: jnp.ones((3, 3)), lambda params, x: params @ x),
            get_algorithm("dqn"),
            **parts,
        )
        hp, batch = make_hparams("dqn"), random_batch(())
        text = str(jax.make_jaxpr(agent.update)(agent.init(KEY), batch, hp, KEY))
        return text.count("dot_general")

    assert products(double=True) == products() + 1


# --- n steps --------------------------------------------------------------------------------------


def segments(n: int, atoms: tuple[int, ...]) -> Segment:
    """Every way in which n steps can be cut: not at all, or first in step t, by either end."""
    rng = np.random.default_rng(1)
    size = 2 * n + 1
    seen = rng.normal(size=(size, n, 3, *atoms)).astype(np.float32)
    cut = np.zeros((size, n), bool)
    terminated = np.zeros((size, n), bool)
    for t in range(n):
        cut[2 * t, t] = cut[2 * t + 1, t] = terminated[2 * t + 1, t] = True
        cut[2 * t, t + 1 :] = rng.random(n - t - 1) < 0.5  # of another episode
    action, reward = rng.integers(3, size=(size, n)), rng.normal(size=(size, n))
    last = rng.normal(size=(size, 3, *atoms)).astype(np.float32)
    fields = seen, action, reward.astype(np.float32), terminated, cut, last
    return Segment(*map(jnp.asarray, fields))


def by_recursion(name: str, batch: Segment, hp, i: int) -> np.ndarray:
    """`G = r + bonus + discount G'` from the end, one transition at a time."""
    n, policy = batch.cut.shape[1], make_policy("exact")
    ending = int(np.argmax([*np.asarray(batch.cut[i, :-1]), True]))
    Z = [ECHO.apply(FROZEN, x) for x in (*batch.observation[i], batch.next_observation[i])]
    Z[ending + 1] = Z[n]  # the state where it ends
    G = None
    for t in range(ending, -1, -1):
        discount = jnp.where(batch.terminated[i, t], 0.0, hp.gamma)
        r, a = batch.reward[i, t], batch.action[i, t]
        x = Bootstrap(action_values(Z[t]), a, r, discount, Z[t + 1], KEY)
        value, bonus = terms(get_algorithm(name), x, hp, policy)
        G = r + bonus + discount * (value if t == ending else G)
    return np.mean(G)


@functools.cache
def returns_of(n: int, atoms: tuple[int, ...]) -> dict[str, np.ndarray]:
    batch = segments(n, atoms)
    size = len(batch.reward)

    def one(name):
        agent, state = agent_of(name)
        hp = make_hparams(name, **NUMBERS)
        return agent.weighted_update(state, batch, hp, KEY, jnp.ones(size))[2]

    return jax.jit(lambda: {name: one(name) for name in ALGORITHMS})()


@pytest.mark.parametrize("atoms", [(), (4,)], ids=["scalar", "quantile"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_n_steps_are_the_recursion_of_the_algorithms_terms(name, atoms):
    """Three steps, with every kind of end in every place."""
    batch, hp = segments(3, atoms), make_hparams(name, **NUMBERS)
    Q = [action_values(ECHO.apply(ONLINE, x[0]))[a[0]] for x, a in zip(*batch[:2], strict=True)]
    for i in range(len(batch.reward)):
        expected = by_recursion(name, batch, hp, i)
        np.testing.assert_allclose(returns_of(3, atoms)[name][i] + Q[i], expected, rtol=2e-4)


def test_n_steps_golden():
    """DQN, gamma = 1/2, rewards (1, 2, 4); the frozen network's best at the end is 8.

    Whole:                      1 + 2/2 + 4/4 + 8/8 = 4
    truncated after two steps:  1 + 2/2 + 8/4 = 4
    terminated after two steps: 1 + 2/2 = 2
    """
    no, yes = False, True
    batch = Segment(
        jnp.full((3, 3, 3), 99.0),
        jnp.zeros((3, 3), int),
        jnp.array([[1.0, 2, 4]] * 3),
        jnp.array([[no, no, no], [no, no, yes], [no, yes, no]]),
        jnp.array([[no, no, no], [no, yes, no], [no, yes, no]]),
        jnp.array([[8.0, 0, 0]] * 3),
    )
    np.testing.assert_allclose(targets("dqn", batch), [4, 4, 2])
    # Double: the online network adds 3 to the second action and so chooses the first all the same.
    np.testing.assert_allclose(targets("dqn", batch, double=True), [4, 4, 2])
    near = batch._replace(next_observation=jnp.array([[8.0, 6, 0]] * 3))  # 9 online, 5 frozen
    np.testing.assert_allclose(targets("dqn", near, double=True), [3 + 5 / 8, 2 + 5 / 4, 2])


@pytest.mark.parametrize("name", ["tal", "pal"])
def test_one_step_in_a_row_is_a_transition(name):
    batch = random_batch(())
    s, a, r, ends, after = batch
    row = Segment(s[:, None], a[:, None], r[:, None], ends[:, None], ends[:, None], after)
    np.testing.assert_allclose(targets(name, row), targets(name, batch), rtol=1e-5, atol=1e-6)


# --- Weights, and targets that follow -------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_weights_scale_each_loss_golden(loss):
    """Errors 3 and -1/2 with weights 1/2 and 1.

    Squared: (9/2 + 1/4)/2. Huber: ((3 - 1/2)/2 + 1/8)/2. The step follows the weighted gradient.
    """
    agent = make_agent(
        Network(lambda key: jnp.zeros(1), lambda params, x: x * params),
        get_algorithm("dqn"),
        loss=loss,
        optimiser="rmsprop",
        optimiser_eps=1e6,  # its step is then the gradient over 1e6
    )
    batch = Transition(
        jnp.array([[1.0], [2.0]]), jnp.zeros(2, int), jnp.array([3.0, -0.5]),
        jnp.ones(2, bool), jnp.zeros((2, 1)),
    )  # fmt: skip
    hp = make_hparams("dqn", learning_rate=1e6)
    weights = jnp.array([0.5, 1.0])
    state, found, errors = agent.weighted_update(agent.init(KEY), batch, hp, KEY, weights)
    np.testing.assert_allclose(errors, [3, -0.5])
    expected = (9 / 2 + 1 / 4) / 2 if loss == "squared" else (2.5 / 2 + 1 / 8) / 2
    np.testing.assert_allclose(found, expected)
    slope = (-2 * 3 / 2 + 2) / 2 if loss == "squared" else (-1 / 2 + 1) / 2  # 2 x 1/2 x 2 = 2
    np.testing.assert_allclose(state.params, [-slope], rtol=1e-4)
    # With equal weights it is the plain update, to the bit.
    plain = agent.update(agent.init(KEY), batch, hp, KEY)
    ones = agent.weighted_update(agent.init(KEY), batch, hp, KEY, jnp.ones(2))
    jax.tree.map(np.testing.assert_array_equal, plain, ones[:2])


def test_the_frozen_copy_follows_golden():
    """t + tau (p - t) with the new p, at every update; and it is never copied."""
    agent, state = agent_of("dqn", polyak=True)
    hp = make_hparams("dqn", **NUMBERS, tau=0.25)
    after, _ = agent.update(state, STEP, hp, KEY)
    assert np.abs(after.params - state.params).max() > 0.05
    expected = 0.75 * np.asarray(FROZEN) + 0.25 * np.asarray(after.params)
    np.testing.assert_allclose(after.target_params, expected, rtol=1e-6)
    np.testing.assert_array_equal(agent.copy_target(after).target_params, after.target_params)
    # The whole of it is the copy; nothing of it a target that never moves.
    whole, _ = agent.update(state, STEP, hp._replace(tau=1.0), KEY)
    np.testing.assert_allclose(whole.target_params, whole.params, rtol=1e-6)
    still, _ = agent.update(state, STEP, hp._replace(tau=0.0), KEY)
    np.testing.assert_array_equal(still.target_params, FROZEN)
