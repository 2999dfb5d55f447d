"""The agent against its parts: targets and losses by hand, acting, the policy it reports."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tsallax.agents import OPTIMISERS, AgentState, make_agent
from tsallax.networks import Dense, Network, mlp
from tsallax.operators import ALGORITHMS, action_values, get_algorithm, make_hparams, one_step
from tsallax.policies import METHODS, make_policy, tsallis_policy
from tsallax.types import Bootstrap, HParams, Transition

SIZE, ACTIONS, ATOMS = 5, 3, 7
HEADS = {"scalar": (ACTIONS,), "quantile": (ACTIONS, ATOMS)}
NETWORKS = {head: mlp((4,), shape, hidden=(6,)) for head, shape in HEADS.items()}
KEY = jax.random.key(7)
RNG = np.random.default_rng(0)
BATCH = Transition(
    jnp.asarray(RNG.normal(size=(SIZE, 4)), jnp.float32),
    jnp.asarray([0, 2, 1, 0, 2]),
    jnp.asarray(RNG.normal(size=SIZE), jnp.float32),
    jnp.asarray([False, True, False, False, True]),
    jnp.asarray(RNG.normal(size=(SIZE, 4)), jnp.float32),
)
NUMBERS = {"alpha": 0.2, "beta": 0.7, "gamma": 0.9}


def make_params(outputs: int) -> list[Dense]:
    sizes = ((4, 6), (6, outputs))
    return [
        Dense(*(jnp.asarray(RNG.normal(size=shape), jnp.float32) for shape in (size, size[1:])))
        for size in sizes
    ]


def make_learner(head: str) -> AgentState:
    """A learner whose target network is not its network, with unused moments."""
    old, new = (make_params(math.prod(HEADS[head])) for _ in range(2))
    return AgentState(new, old, OPTIMISERS["rmsprop"]().init(new))


LEARNERS = {head: make_learner(head) for head in HEADS}


def targets_by_hand(head: str, algorithm, hp: HParams, keys) -> list[np.ndarray]:
    """One transition after another, straight through the algorithm's function."""
    apply, params = NETWORKS[head].apply, LEARNERS[head].target_params
    targets = []
    for i in range(SIZE):
        one = jax.tree.map(lambda x: x[i], BATCH)  # noqa: B023
        discount = jnp.float32(0 if one.terminated else hp.gamma)
        Q, Z = action_values(apply(params, one.observation)), apply(params, one.next_observation)
        x = Bootstrap(Q, one.action, one.reward, discount, Z, keys[i])
        targets.append(np.asarray(one_step(algorithm)(x, hp, make_policy("exact"))))
    return targets


def loss_of(prediction: np.ndarray, target: np.ndarray) -> float:
    """Squared error, or the quantile Huber loss as QR-DQN prints it, in float64."""
    prediction, target = np.float64(prediction), np.float64(target)
    if prediction.ndim == 0:
        return (target - prediction) ** 2
    total = 0.0
    for i in range(ATOMS):
        u = target - prediction[i]
        huber = np.where(np.abs(u) <= 1, u**2 / 2, np.abs(u) - 0.5)
        total += np.mean(np.abs((2 * i + 1) / (2 * ATOMS) - (u < 0)) * huber)
    return total


def loss_by_hand(head: str, targets: list[np.ndarray]) -> float:
    params = LEARNERS[head].params
    Z = [NETWORKS[head].apply(params, x) for x in BATCH.observation]
    chosen = [np.asarray(z[a]) for z, a in zip(Z, BATCH.action, strict=True)]
    return np.mean([loss_of(z, y) for z, y in zip(chosen, targets, strict=True)])


@functools.cache
def losses(head: str) -> dict[str, np.ndarray]:
    """Of every algorithm, also where s' of the terminated transitions is some other one.

    That is what the replay gives there. One program for all algorithms: compiling is what costs.
    """
    elsewhere = jnp.where(BATCH.terminated[:, None], 3.0, BATCH.next_observation)
    batches = jax.tree.map(
        lambda *x: jnp.stack(x), BATCH, BATCH._replace(next_observation=elsewhere)
    )

    def loss(name, batch):
        agent = make_agent(NETWORKS[head], get_algorithm(name), optimiser="rmsprop")
        return agent.update(LEARNERS[head], batch, make_hparams(name, **NUMBERS), KEY)[1]

    def every(batch):
        return {name: loss(name, batch) for name in ALGORITHMS}

    return jax.jit(lambda: jax.lax.map(every, batches))()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_loss_is_that_of_the_algorithms_targets(name, head):
    algorithm, hp = get_algorithm(name), make_hparams(name, **NUMBERS)
    loss, elsewhere = losses(head)[name]
    expected = loss_by_hand(head, targets_by_hand(head, algorithm, hp, [KEY] * SIZE))
    np.testing.assert_allclose(loss, expected, rtol=2e-5)
    assert loss == elsewhere


def test_sal_draws_once_an_update_or_once_a_sample():
    algorithm, hp = get_algorithm("sal"), make_hparams("sal", **NUMBERS)

    def loss(shared):
        agent = make_agent(NETWORKS["scalar"], algorithm, optimiser="rmsprop", shared_draw=shared)
        return agent.update(LEARNERS["scalar"], BATCH, hp, KEY)[1]

    once, each = jax.jit(lambda: (loss(True), loss(False)))()
    keys = jax.random.split(KEY, SIZE)
    expected = loss_by_hand("scalar", targets_by_hand("scalar", algorithm, hp, keys))
    np.testing.assert_allclose(each, expected, rtol=2e-5)
    np.testing.assert_allclose(once, losses("scalar")["sal"][0], rtol=2e-5)
    assert abs(once - each) > 1e-3


@pytest.mark.parametrize("head", HEADS)
def test_step_follows_the_gradient_of_the_loss_with_the_targets_held(head):
    """By finite differences; RMSprop's first step is `g/(sqrt(0.05 g^2 - 0.0025 g^2) + 0.01)`."""
    algorithm, hp = get_algorithm("tal"), make_hparams("tal", learning_rate=0.01, **NUMBERS)
    agent = make_agent(NETWORKS[head], algorithm, optimiser="rmsprop")
    before = LEARNERS[head]
    after, _ = jax.jit(lambda: agent.update(before, BATCH, hp, KEY))()
    targets = targets_by_hand(head, algorithm, hp, [KEY] * SIZE)

    def loss_at(shift: float) -> float:
        """The loss where the last layer's first active bias is moved."""
        Z = np.stack([NETWORKS[head].apply(before.params, x) for x in BATCH.observation])
        Z = np.float64(Z).reshape(SIZE, -1)
        Z[:, 0] += shift
        Z = Z.reshape(SIZE, *HEADS[head])
        return np.mean([loss_of(z[a], y) for z, a, y in zip(Z, BATCH.action, targets, strict=True)])

    g = (loss_at(1e-4) - loss_at(-1e-4)) / 2e-4
    step = g / (math.sqrt(0.05 * 0.95 * g**2) + 0.01)
    moved = before.params[-1].bias[0] - after.params[-1].bias[0]
    np.testing.assert_allclose(moved, 0.01 * step, rtol=2e-4)
    jax.tree.map(np.testing.assert_array_equal, after.target_params, before.target_params)
    copied = agent.copy_target(after)
    jax.tree.map(np.testing.assert_array_equal, copied.target_params, after.params)
    jax.tree.map(np.testing.assert_array_equal, copied.moments, after.moments)


def test_update_under_vmap_over_numbers_is_a_loop():
    """Every number that stands in an update may be a row of a grid."""
    agent = make_agent(NETWORKS["scalar"], get_algorithm("mdqn"), optimiser="rmsprop")
    grid = HParams(
        alpha=jnp.array([0.1, 0.2, 0.3, 0.5]),
        beta=jnp.array([0.0, 0.5, 0.9, 1.0]),
        gamma=jnp.array([0.0, 0.9, 0.99, 1.0]),
        clip=jnp.array([-1.0, -0.5, -jnp.inf, -0.1]),
        learning_rate=jnp.array([1e-3, 1e-2, 1e-1, 1.0]),
        max_grad_norm=jnp.array([10.0, 0.1, jnp.inf, 1.0]),
    )
    axes = HParams(**{name: 0 if jnp.ndim(x) else None for name, x in grid._asdict().items()})
    update = jax.jit(jax.vmap(agent.update, (None, None, axes, None)))
    together = update(LEARNERS["scalar"], BATCH, grid, KEY)
    update = jax.jit(agent.update)
    for i in range(4):
        hp = jax.tree.map(lambda x: x[i] if jnp.ndim(x) else x, grid)  # noqa: B023
        alone = update(LEARNERS["scalar"], BATCH, hp, KEY)
        for one, many in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(many[i], one, rtol=1e-5, atol=1e-6)


# Acting. The observation is the row of action values itself.

ECHO = Network(lambda key: jnp.zeros(()), lambda params, x: x + params)
Q = jnp.array([0.1, 0.5, -1.0, 0.45])  # q = 2, alpha = 0.2: pi = (0, 0.625, 0, 0.375)


@functools.cache
def make_act(acting: str):
    agent = make_agent(ECHO, get_algorithm("tal"), acting=acting)
    hp = make_hparams("tal", q=2.0, alpha=0.2)
    act = jax.vmap(lambda epsilon, key: agent.act(jnp.zeros(()), Q, epsilon, hp, key), (None, 0))
    return jax.jit(act)


def actions(epsilon: float, acting: str) -> np.ndarray:
    """How often each action is taken in 4,000 draws."""
    keys = jax.random.split(jax.random.key(3), 4000)
    return np.bincount(make_act(acting)(jnp.float32(epsilon), keys), minlength=4)


@pytest.mark.parametrize("acting", ["pi", "argmax"])
def test_epsilon_one_is_uniform(acting):
    assert stats.chisquare(actions(1.0, acting)).pvalue > 1e-3


def test_argmax_acting_is_greedy_whatever_the_policy():
    np.testing.assert_array_equal(actions(0.0, "argmax"), [0, 4000, 0, 0])


def test_acting_on_pi_never_leaves_its_support():
    counts = actions(0.0, "pi")
    assert counts[0] == counts[2] == 0
    assert stats.chisquare(counts[[1, 3]], 4000 * np.array([0.625, 0.375])).pvalue > 1e-3


def test_epsilon_mixes_with_the_uniform_policy():
    expected = 4000 * (0.6 * np.array([0, 0.625, 0, 0.375]) + 0.4 / 4)
    assert stats.chisquare(actions(0.4, "pi"), expected).pvalue > 1e-3


@pytest.mark.parametrize("name", ALGORITHMS)
def test_policy_is_the_algorithms_own(name):
    """Greedy for the hard ones, Boltzmann for Shannon's, else Tsallis: and always normalised."""
    algorithm = get_algorithm(name)
    hp = make_hparams(name, q=1.5, alpha=0.2)
    own = algorithm.policy or make_policy("exact")
    values, pi = make_agent(ECHO, algorithm).policy(jnp.zeros(()), Q, hp)
    np.testing.assert_array_equal(values, Q)
    np.testing.assert_allclose(pi, own(Q, hp), atol=1e-6)
    if name in ("dqn", "al", "pal", "pal-atari", "sal", "sal-printed"):
        np.testing.assert_array_equal(pi, [0, 1, 0, 0])


@pytest.mark.parametrize("method", METHODS)
def test_policy_of_an_approximation_is_normalised(method):
    """The paper's approximation does not sum to one; what acts does, in the same proportions."""
    hp = make_hparams("tal", q=3.0, alpha=0.2)
    _, pi = make_agent(ECHO, get_algorithm("tal"), method=method).policy(jnp.zeros(()), Q, hp)
    raw = tsallis_policy(Q, 3.0, 0.2, method=method)
    np.testing.assert_allclose(jnp.sum(pi), 1, rtol=1e-6)
    np.testing.assert_allclose(pi, raw / jnp.sum(raw), atol=1e-6)


def test_quantile_heads_act_on_their_means():
    """The second action has the larger mean, the first the larger top atom."""
    agent = make_agent(ECHO, get_algorithm("dqn"), acting="argmax")
    Z = jnp.array([[0.0, 9.0, 0.0], [4.0, 4.0, 4.0]])
    values, pi = agent.policy(jnp.zeros(()), Z, HParams())
    np.testing.assert_allclose(values, [3, 4])
    np.testing.assert_array_equal(pi, [0, 1])
    assert agent.act(jnp.zeros(()), Z, jnp.float32(0), HParams(), KEY) == 1
