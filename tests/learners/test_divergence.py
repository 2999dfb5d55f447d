"""A seed that goes bad is found at its first bad step and leaves the others alone."""

import jax
import numpy as np

from support.poison import SEEDS, STEP, outcome, same_but_for_the_sick
from tsallax.cli import display
from tsallax.cli.display import Display
from tsallax.learners import Period
from tsallax.training import driver
from tsallax.training.compile_time import add_span, compile_seconds
from tsallax.training.driver import Progress


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


def told(step, metrics):
    """A period as those who watch a run see it."""
    return Progress(Period(step, None, None, metrics, {}), None, speed=100.0)


def test_the_display_says_so_once(capsys):
    _, metrics = outcome(poison=STEP)
    metrics = jax.tree.map(np.asarray, metrics)
    with Display("title", [f"seed {i}" for i in range(SEEDS)], 80) as show:
        show(told(40, metrics))
        show(told(80, metrics))
    assert capsys.readouterr().out.count("seed 2: diverged at step 33") == 1


def test_a_resumed_run_is_not_credited_with_what_it_did_before(monkeypatch):
    """Nor charged with compilation: of 40 seconds, 30 are the compiler's."""
    now, compiled = iter([10.0, 50.0]), iter([5.0, 35.0])
    monkeypatch.setattr(driver.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(driver, "compile_seconds", lambda: next(compiled))
    speed = driver.Speed(SEEDS, 60)
    assert speed(80) == 20 * SEEDS / 10


def test_no_second_of_compilation_counts_twice():
    """Two programs inside one from 1 to 9, then one from 8 (by rounding) to 12: 11 seconds."""
    spans = []
    for begin, end in [(2.0, 4.0), (5.0, 6.0), (1.0, 9.0), (8.0, 12.0)]:
        add_span(spans, begin, end)
    assert spans == [(1, 9), (9, 12)]
    before = compile_seconds()
    jax.jit(lambda x: x * 3.25)(1.0)
    assert compile_seconds() > before


def test_the_time_left_is_that_of_all_cells(capsys, monkeypatch):
    monkeypatch.setattr(display, "EVERY", 0.0)
    metrics = jax.tree.map(np.asarray, outcome()[1])
    with Display("title", [f"seed {i}" for i in range(SEEDS)], 1000) as show:
        show.begin_at(60)
        show(told(80, metrics))  # 920 steps of four cells at 100 steps per second
    assert "80 / 1,000 steps   100 steps/s   37s left" in capsys.readouterr().out


def test_the_live_display_marks_it(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, metrics = outcome(poison=STEP)
    with Display("title", [f"seed {i}" for i in range(SEEDS)], 80) as show:
        show(told(40, jax.tree.map(np.asarray, metrics)))
    assert "diverged at step 33" in capsys.readouterr().out
