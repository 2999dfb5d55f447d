"""The parts of an agent by hand: double estimates, weights, targets that follow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.parts import FROZEN, KEY, NUMBERS, ONLINE, STEP, agent_of, random_batch, targets
from tsallax.agents import make_agent
from tsallax.networks import Network
from tsallax.operators import (
    ALGORITHMS,
    get_algorithm,
    make_hparams,
)
from tsallax.types import Transition

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
