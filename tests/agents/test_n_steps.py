"""Targets of n steps in a row, by hand and by the recursion of the algorithm's terms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from support.parts import ECHO, FROZEN, KEY, NUMBERS, ONLINE, agent_of, random_batch, targets
from tsallax.operators import ALGORITHMS, action_values, get_algorithm, make_hparams, terms
from tsallax.policies import make_policy
from tsallax.types import Bootstrap, Segment


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
