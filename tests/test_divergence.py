"""A seed that goes bad is found at its first bad step and leaves the others alone."""

import jax
import jax.numpy as jnp
import numpy as np

from probe_envs import clock
from tsallax.agents import make_agent
from tsallax.cli.display import Display
from tsallax.envs.base import Environment
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.replay import make_ring
from tsallax.training.loop import Period, RunState, Schedule, make_loop

SEEDS, SICK, STEP = 4, 2, 33


def poisoned() -> Environment:
    """The clock, whose reward is NaN once, at the step its state tells."""

    def reset(key):
        return jnp.zeros(2), jnp.int32(-1)

    def step(state, action, key):
        time, poison = state
        after, outcome = clock().step(time, action, key)
        bad = after[0].astype(jnp.int32) == poison
        return (after, poison), outcome._replace(reward=jnp.where(bad, jnp.nan, outcome.reward))

    return clock()._replace(reset=reset, step=step, observe=lambda state: state[0] / 100)


LOOP = make_loop(
    poisoned(),
    make_agent(mlp((2,), (3,), (8,)), get_algorithm("tal")),
    make_ring(100, None),
    Schedule(8, 2),
)


@jax.jit
@jax.vmap
def run(seed, poison, rate):
    hp = make_hparams("tal", learning_rate=rate, epsilon=0.5)
    state: RunState = LOOP.init(jax.random.key(seed))
    state = state._replace(env=(state.env[0], poison))
    state, _ = LOOP.cycle(state, hp, Period(10, 0, True, 2, most=10))
    return LOOP.cycle(state, hp, Period(0, 10, True, 2, most=10))


def outcome(poison=-1, rate=1e-3):
    poisons = np.full(SEEDS, -1, np.int32)
    rates = np.full(SEEDS, 1e-3, np.float32)
    poisons[SICK], rates[SICK] = poison, rate
    state, metrics = run(np.arange(SEEDS), poisons, rates)
    return state._replace(key=jax.random.key_data(state.key)), metrics


def same_but_for_the_sick(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        others = np.arange(SEEDS) != SICK
        np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])


def test_a_bad_reward_is_found_at_its_step():
    clean, bad = outcome(), outcome(poison=STEP)
    np.testing.assert_array_equal(clean[1].diverged, [-1] * SEEDS)
    np.testing.assert_array_equal(bad[1].diverged, [-1, -1, STEP, -1])
    same_but_for_the_sick(clean, bad)


def test_a_bad_loss_is_found_at_its_step():
    """The first update, at step 22, makes weights of 1e30; the loss after them overflows."""
    clean, bad = outcome(), outcome(rate=1e30)
    np.testing.assert_array_equal(bad[1].diverged, [-1, -1, 24, -1])
    same_but_for_the_sick(clean, bad)


def test_the_display_says_so_once(capsys):
    _, metrics = outcome(poison=STEP)
    metrics = jax.tree.map(np.asarray, metrics)
    with Display("title", [f"seed {i}" for i in range(SEEDS)], 80) as show:
        show(40, metrics)
        show(80, metrics)
    assert capsys.readouterr().out.count("seed 2: diverged at step 33") == 1


def test_a_resumed_run_is_not_credited_with_what_it_did_before():
    metrics = jax.tree.map(np.asarray, outcome()[1])
    with Display("title", [f"seed {i}" for i in range(SEEDS)], 80) as show:
        show.begin -= 10.0  # seconds ago
        show.begin_at(60)
        assert 0.9 * 20 * SEEDS / 10 < show(80, metrics) <= 20 * SEEDS / 10


def test_the_live_display_marks_it(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, metrics = outcome(poison=STEP)
    with Display("title", [f"seed {i}" for i in range(SEEDS)], 80) as show:
        show(40, jax.tree.map(np.asarray, metrics))
    assert "diverged at step 33" in capsys.readouterr().out
