"""Actor-critics on discrete actions: losses by hand, and where the exact policy is known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax import tabular
from tsallax.agents import AgentState
from tsallax.agents.actor_update import Weights
from tsallax.agents.discrete_actor import make_discrete_actor
from tsallax.networks import Network
from tsallax.operators import ACTOR_CRITICS, ALGORITHMS, make_hparams, one_step
from tsallax.operators.actor_losses import fenchel_young_loss, objective_loss, policy_of_logits
from tsallax.policies import make_policy, tsallis_policy, tsallis_value
from tsallax.types import Bootstrap, HParams, Transition

EXACT = make_policy("exact")
QS = (0.5, 1.0, 1.5, 2.0, 3.0)


def agent_of(algo: str, states: int, actions: int, **how):
    """A table in the place of each network: an observation is the number of a state."""
    table = Network(lambda key: jax.random.normal(key, (states, actions)) / 10, lambda Q, s: Q[s])
    row = ACTOR_CRITICS[algo]
    return make_discrete_actor(table, ALGORITHMS[row.discrete], **{"actor": row.actor, **how})


# The losses of one state. -----------------------------------------------------------------------


@pytest.mark.parametrize("q", QS)
def test_the_gradient_of_fenchel_and_young_is_the_difference_of_the_policies(q):
    """By differences of its value, and by the derivative of the regularised value itself."""
    with jax.enable_x64(True):
        k, alpha, h = 1.0 if q == 1 else 0.5, 0.3, 1e-5
        hp = HParams(*(jnp.asarray(x, jnp.float64) for x in make_hparams("tal", q=q, k=k)))
        hp = hp._replace(alpha=jnp.asarray(alpha))
        loss = jax.jit(jax.vmap(lambda z, Q: fenchel_young_loss(z, Q, hp, EXACT), (0, None)))
        slope = jax.jit(jax.grad(lambda z, Q: fenchel_young_loss(z, Q, hp, EXACT)))
        for seed in range(8):
            z, Q = np.random.default_rng(seed).normal(size=(2, 5))
            pi, best = tsallis_policy(z, q, 1.0, k), tsallis_policy(Q, q, alpha, k)
            np.testing.assert_allclose(slope(z, Q), pi - best, atol=1e-12)
            steps = h * np.eye(5)
            measured = (loss(z + steps, Q) - loss(z - steps, Q)) / (2 * h)
            np.testing.assert_allclose(measured, pi - best, atol=1e-6)
            value = jax.grad(lambda z: tsallis_value(z, q, 1.0, k))(jnp.asarray(z))
            np.testing.assert_allclose(slope(z, Q), value - best, atol=1e-12)
            at_zero = loss(np.stack([z, Q / alpha, Q / alpha + 3]), Q)
            assert at_zero[0] > 0
            np.testing.assert_allclose(at_zero[1:], 0, atol=1e-12)


def test_at_q_1_it_is_the_divergence_from_the_softmax():
    """`KL(pi* || pi)`, while the objective is `alpha KL(pi || pi*)` but for a constant.

    pi = (3/4, 1/4), pi* = (1/2, 1/2): `ln(2/3)/2 + ln(2)/2 = ln(4/3)/2 = 0.143841`.
    Objective, Q = 0: `-alpha H = 0.5 (3/4 ln(3/4) + 1/4 ln(1/4)) = -0.281168`.
    """
    hp = make_hparams("sac", alpha=0.5)
    z, Q = jnp.array([jnp.log(3.0), 0.0]), jnp.zeros(2)
    assert float(fenchel_young_loss(z, Q, hp, EXACT)) == pytest.approx(0.143841, abs=1e-6)
    assert float(objective_loss(z, Q, hp, EXACT)) == pytest.approx(-0.281168, abs=1e-6)


@pytest.mark.parametrize("q", [1.5, 2.0, 3.0])
def test_an_excluded_action_comes_back(q):
    """The best action has probability 0: the objective leaves it there."""
    hp = make_hparams("tal-ac", q=q, alpha=0.1)
    Q, start = jnp.array([0.0, 1.0, 0.2]), jnp.array([9.0, 0.0, 0.0])
    np.testing.assert_array_equal(policy_of_logits(start, hp, EXACT), [1, 0, 0])

    def descend(loss):
        slope = jax.grad(lambda z: loss(z, Q, hp, EXACT))
        return jax.jit(lambda z: jax.lax.fori_loop(0, 400, lambda _, z: z - 0.1 * slope(z), z))

    stuck, back = (descend(loss)(start) for loss in (objective_loss, fenchel_young_loss))
    np.testing.assert_array_equal(stuck, start)
    best = tsallis_policy(Q, q, 0.1, 0.5)
    assert float(best[1]) == 1
    np.testing.assert_allclose(policy_of_logits(back, hp, EXACT), best, atol=1e-3)


# The losses of an agent, by hand. ---------------------------------------------------------------


def by_hand(algo: str, logits: float, frozen: tuple[list, list], how=None, **numbers):
    """From state 0 by action 1 to state 1, reward 1, gamma 0.9, alpha 0.5.

    At state 0 the critics say (0, 2) and (1, 3), and the logits are (`logits`, 0); at state 1 the
    frozen critics say (1, 3) and (2, 2), and the logits are equal.
    """
    agent = agent_of(algo, 2, 2, **(how or {}))
    actor, rest = jnp.array([[logits, 0.0], [0.0, 0.0]]), [[1.0, 3.0], [2.0, 2.0]]
    critics = jnp.array([[0.0, 2.0], [9.0, 9.0]]), jnp.array([[1.0, 3.0], [9.0, 9.0]])
    target = tuple(jnp.array([here, there]) for here, there in zip(frozen, rest, strict=True))
    state = AgentState(Weights(actor, critics, jnp.zeros(())), target, None)
    batch = Transition(
        jnp.array([0]), jnp.array([1]), jnp.array([1.0]), jnp.array([False]), jnp.array([1])
    )
    hp = make_hparams(algo, gamma=0.9, alpha=0.5, **numbers)
    return jax.tree.map(float, agent.losses(state, batch, hp))


@pytest.mark.parametrize(
    ("algo", "numbers", "how"),
    [
        ("sac", {}, {}),
        ("tac", {"q": 1.0}, {"actor": "objective"}),
        ("tal-ac", {"q": 1.0, "beta": 0.0}, {"actor": "objective"}),
        ("munchausen-sac", {"beta": 0.0}, {}),
    ],
)
def test_losses_of_discrete_sac(algo, numbers, how):
    """Christodoulou's (2019) three losses, pi = (3/4, 1/4) and pi' = (1/2, 1/2).

    y = 1 + 0.9 (1/2 min(1,2) + 1/2 min(3,2) + 0.5 ln 2) = 1 + 0.9 (1.5 + 0.346574) = 2.661916.
    Critics: ((2 - y)^2 + (3 - y)^2)/2 = (0.438133 + 0.114301)/2 = 0.276217.
    Actor: <pi, 0.5 ln pi - (0, 2)> = 0.5 (-0.215762 - 0.346574) - 0.5 = -0.781168.
    Alpha: ln(0.5) (0.562335 - 0.98 ln 2) = -0.693147 (0.562335 - 0.679284) = 0.081063.
    """
    frozen = [0.0, 0.0], [0.0, 0.0]
    found = by_hand(algo, float(np.log(3)), frozen, how, target_entropy=0.98, **numbers)
    assert found["critic"] == pytest.approx(0.276217, abs=2e-6)
    assert found["actor"] == pytest.approx(-0.781168, abs=2e-6)
    assert found["alpha"] == pytest.approx(0.081063, abs=2e-6)


def test_losses_of_tal_ac():
    """q = 2, k = 1/2: pi = sparsemax(0.5, 0) = (3/4, 1/4), pi' = (1/2, 1/2), H_2(pi') = 1/4.

    Bonus: the frozen critics' smaller values at state 0 are (1, 3), 0.5 (3 - 1.5) = 0.75.
    y = 1 + 0.9 (1.5 + 0.5/4) + 0.75 = 3.2125; critics: (1.2125^2 + 0.2125^2)/2 = 0.757656.
    Actor: pi* = sparsemax((0, 2)/0.5) = (0, 1): max(<pi,z> + H) = 0.375 + 0.5 (1 - 0.625) = 0.5625,
    less <pi*,z> + H(pi*) = 0. Alpha: the target is H_2 of 2^0.5 actions, (1 - 2^-0.5)/2 = 0.146447;
    ln(0.5) (0.1875 - 0.146447) = -0.028456.
    """
    found = by_hand("tal-ac", 0.5, ([1.0, 4.0], [2.0, 3.0]), beta=0.5, q=2.0, target_entropy=0.5)
    assert found["critic"] == pytest.approx(0.757656, abs=2e-6)
    assert found["actor"] == pytest.approx(0.5625, abs=2e-6)
    assert found["alpha"] == pytest.approx(-0.028456, abs=2e-6)


def test_without_an_actor_the_target_is_that_of_tal():
    """The row of TAL on the smaller values of the frozen critics: (1, 3) and (1, 2)."""
    frozen = [1.0, 4.0], [2.0, 3.0]
    numbers = {"beta": 0.5, "q": 1.5}
    found = by_hand("tal-ac", 0.0, frozen, {"actor": "exact"}, **numbers)
    hp = make_hparams("tal", gamma=0.9, alpha=0.5, entropy=1.0, **numbers)
    Q, Q_next = jnp.array([1.0, 3.0]), jnp.array([1.0, 2.0])
    at = Bootstrap(Q, jnp.array(1), jnp.array(1.0), jnp.array(0.9), Q_next, jax.random.key(0))
    y = float(one_step(ALGORITHMS["tal"])(at, hp, EXACT))
    assert found["critic"] == pytest.approx(((2 - y) ** 2 + (3 - y) ** 2) / 2, rel=1e-6)
    assert found["actor"] == 0


# Where the exact regularised policy is known. ---------------------------------------------------


@functools.partial(jax.jit, static_argnames=("agent", "steps"))
def trained(agent, batch: Transition, hp: HParams, steps: int = 3000):
    """Q and pi of every state, after updates with every transition at once."""

    def step(state, _):
        return agent.update(state, batch, hp, jax.random.key(0))

    state, _ = jax.lax.scan(step, agent.init(jax.random.key(0)), None, steps)
    states = jnp.arange(state.params.critics[0].shape[0])
    return state, *jax.vmap(agent.policy, (None, 0, None))(state.params, states, hp)


def everything(mdp: tabular.MDP, over: bool = False) -> Transition:
    """Every state and action of an MDP that leaves nothing to chance."""
    S, A = mdp.r.shape
    s, a = (x.ravel() for x in np.mgrid[:S, :A])
    following = mdp.P[s, a].argmax(-1)
    np.testing.assert_allclose(mdp.P[s, a, following], 1)
    given = s, a, mdp.r[s, a].astype(np.float32), np.full(len(s), over), following
    return Transition(*map(jnp.asarray, given))


@pytest.mark.parametrize(
    "q",
    [
        1.0,
        2.0,
        pytest.param(1.5, marks=pytest.mark.slow),
        pytest.param(3.0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_actor_finds_the_policy_of_a_bandit(q, beta):
    """Rewards 0.5 and 0.4: the gap grows by 1/(1 - beta), from 0.1 to 0.2 at beta = 0.5."""
    bandit = tabular.make_mdp(np.ones((1, 2, 1)), np.array([[0.5, 0.4]]), 0.9)
    hp = make_hparams("tal-ac", q=q, beta=beta, alpha=0.3, learning_rate=0.01, tau=0.1)
    agent = agent_of("tal-ac", 1, 2)
    _, Q, pi = trained(agent, everything(bandit, over=True), hp)
    gap = 0.1 / (1 - beta)
    assert float(Q[0, 0] - Q[0, 1]) == pytest.approx(gap, abs=1e-3)
    best = tsallis_policy(np.array([gap, 0.0]), q, 0.3, 1.0 if q == 1 else 0.5)
    np.testing.assert_allclose(pi[0], best, atol=2e-3)


@pytest.mark.parametrize("actor", ["fenchel-young", "exact"])
@pytest.mark.parametrize("q", [pytest.param(1.0, marks=pytest.mark.slow), 2.0])
def test_the_actor_finds_the_policy_of_an_mdp(actor, q):
    """Four states, three actions; against TAL's operator, iterated in float64."""
    mdp = tabular.garnet(2, states=4, actions=3, branching=1, gamma=0.8)
    numbers = {"q": q, "beta": 0.5, "alpha": 0.6, "entropy": 1.0}
    known = tabular.solve(mdp, "tal", **numbers)
    assert (known.pi.max(-1) < 0.8).all()
    assert (known.pi == 0).any() == (q == 2)
    hp = make_hparams("tal-ac", gamma=0.8, learning_rate=0.01, tau=0.2, **numbers)
    agent = agent_of("tal-ac", 4, 3, actor=actor)
    _, Q, pi = trained(agent, everything(mdp), hp)
    np.testing.assert_allclose(Q, known.Q, atol=1e-2)
    np.testing.assert_allclose(pi, known.pi, atol=5e-3)


@pytest.mark.parametrize("q", [pytest.param(1.0, marks=pytest.mark.slow), 2.0])
def test_the_automatic_alpha_reaches_the_target_of_each_q(q):
    """Three arms: the entropy is that of 3^0.6 = 1.93 equally likely actions, whatever q."""
    bandit = tabular.make_mdp(np.ones((1, 3, 1)), np.array([[1.0, 0.8, 0.0]]), 0.9)
    hp = make_hparams("tal-ac", q=q, beta=0.0, alpha=1.0, learning_rate=0.01, tau=0.1)
    hp = hp._replace(target_entropy=0.6)
    agent = agent_of("tal-ac", 1, 3, automatic_alpha=True)
    state, _, pi = trained(agent, everything(bandit, over=True), hp)
    m = 3**0.6
    wanted = np.log(m) if q == 1 else (1 - 1 / m) / 2
    p = np.asarray(pi[0], np.float64)
    found = -np.sum(p * np.log(p)) if q == 1 else (1 - np.sum(p**2)) / 2
    assert found == pytest.approx(wanted, abs=0.01)
    metrics = agent.metrics(state, jnp.zeros(4, int), hp)
    assert float(metrics["temperature"]) == pytest.approx(float(jnp.exp(state.params.log_alpha)))
    assert float(metrics["kl"]) == pytest.approx(0, abs=1e-2)
