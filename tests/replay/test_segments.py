"""n steps in a row, from both rings, against a list of everything that happened."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tsallax.replay.host import HostRing
from tsallax.replay.ring import make_ring


def story(length: int, time_limit: int | None, ending: float, seed: int = 0) -> list[tuple]:
    """Steps `(s, a, r, terminated, truncated, final, next)`; no two observations are equal."""
    rng, number = np.random.default_rng(seed), iter(range(1, 10_000))
    steps, now, age = [], float(next(number)), 0
    for _ in range(length):
        final, age = float(next(number)), age + 1
        terminated = bool(rng.random() < ending)
        truncated = time_limit is not None and age >= time_limit and not terminated
        over = terminated or truncated
        following = float(next(number)) if over else final
        step = now, int(rng.integers(9)), np.float32(rng.normal()), terminated, truncated
        steps.append((*step, final, following))
        now, age = following, 0 if over else age
    return steps


def walk(steps: list[tuple], i: int, n: int) -> tuple:
    """What counts of n steps from the i-th: states, actions, rewards, how and where it ends."""
    seen = []
    for step in steps[i : i + n]:
        seen.append(step[:3])
        if step[3] or step[4]:
            break
    last = steps[i + len(seen) - 1]
    return tuple(seen), last[3], None if last[3] else last[5]


def found(batch) -> list[tuple]:
    """The same of what a ring gave; what comes after the first cut is left out."""
    out = []
    for s, a, r, terminated, cut, last in zip(*map(np.asarray, batch), strict=True):
        count = int(np.argmax([*cut[:-1], True])) + 1
        seen = zip(s.reshape(len(cut)), a, r, strict=True)
        rows = tuple((float(s), int(a), np.float32(r)) for s, a, r in seen)[:count]
        assert not terminated[: count - 1].any()
        end = bool(terminated[count - 1])
        out.append((rows, end, None if end else float(last.item())))
    return out


@functools.cache
def program(capacity: int, time_limit: int | None, n: int):
    """A ring of all of a story, and a segment from each of its transitions."""
    ring = make_ring(capacity, time_limit)

    @jax.jit
    def run(first, told):
        def add(state, step):
            state = ring.add(state, *step)
            i = (state.added - 1 - jnp.arange(capacity)) % (capacity + 1)
            return state, ring.segment(state, ring.chain(state, i, n), first)

        return jax.lax.scan(add, ring.init(first), told)[1]

    return run


CASES = [(7, 3, 0.2), (5, None, 0.3), (4, 1, 0.3), (6, 2, 0.0), (9, 20, 0.0)]


@pytest.mark.parametrize(
    "n", [3, pytest.param(2, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("capacity", "time_limit", "ending"), CASES)
def test_segments_on_the_device_are_what_happened(capacity, time_limit, ending, n):
    """After every step, through several laps, from every transition that is held."""
    steps = story(4 * capacity + 3, time_limit, ending)
    _, a, r, terminated, truncated, final, following = map(np.array, zip(*steps, strict=True))
    told = a, r.astype(np.float32), terminated, truncated
    told += tuple(x.astype(np.float32)[:, None] for x in (final, following))
    first = jnp.full(1, steps[0][0])
    batches = program(capacity, time_limit, n)(first, tuple(map(jnp.asarray, told)))
    for t in range(len(steps)):
        so_far = steps[: t + 1]
        held = [i for i in range(t, t - capacity, -1) if i >= 0]
        rows = found(jax.tree.map(lambda x: x[t][: len(held)], batches))  # noqa: B023
        assert rows == [walk(so_far, i, n) for i in held]


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize(("capacity", "time_limit", "ending"), CASES)
@pytest.mark.parametrize("prioritised", [False, True])
def test_segments_on_the_host_are_what_happened(capacity, time_limit, ending, n, prioritised):
    """Two cells, each at its own place; drawn either way."""
    stories = [story(4 * capacity + 3, time_limit, ending, seed) for seed in range(2)]
    ring = HostRing(2, capacity, (1,), np.float32, 0, prioritised=prioritised)
    ring.begin(np.array([[steps[0][0]] for steps in stories], np.float32))
    draw = ring.draw_by_priority if prioritised else ring.draw
    for t, both in enumerate(zip(*stories, strict=True)):
        columns = [np.array(x) for x in zip(*both, strict=True)]
        _, a, r, terminated, truncated, final, following = columns
        ring.add(
            np.ones(2, bool), a, r, terminated, truncated, terminated | truncated,
            final[:, None], following[:, None],
        )  # fmt: skip
        at = draw([np.random.default_rng((t, cell)) for cell in range(2)], 64)
        batch = ring.segments(at[0] if prioritised else at, n)
        for cell, steps in enumerate(stories):
            so_far = steps[: t + 1]
            known = {walk(so_far, i, n) for i in range(max(0, t + 1 - capacity), t + 1)}
            rows = set(found(tuple(x[cell] for x in batch)))
            assert rows <= known
            assert walk(so_far, t, n) in rows


def test_stacks_of_a_segment_are_those_of_its_steps():
    """Also where the ring wraps, and where an episode begins within the stack."""
    ring = HostRing(1, 10, (1,), np.float32, 3)
    ring.begin(np.ones((1, 1), np.float32))
    for t in range(2, 40):
        over = np.array([t % 7 == 0])
        frame = np.full((1, 1), t, np.float32)
        action, none = np.full(1, t), np.zeros(1, bool)
        ring.add(~none, action, np.zeros(1), over, none, over, frame, frame)
    at = ring.draw([np.random.default_rng(0)], 200)
    batch, alone = ring.segments(at, 2), ring.take(at)
    np.testing.assert_array_equal(batch.observation[:, :, 0], alone.observation)
    whole = ~batch.cut[0, :, 0]
    np.testing.assert_array_equal(batch.observation[0, whole, 1], alone.next_observation[0, whole])
    assert 0 < whole.sum() < 200
