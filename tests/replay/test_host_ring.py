"""The host's replay against a list of everything that happened."""

import numpy as np
import pytest

from tsallax.replay.host import HostRing

CELLS = 2


class Story:
    """Random episodes; frames are numbered from 1, so that a frame tells where it stood."""

    def __init__(self, stack, capacity, steps, seed=0):
        self.stack = stack
        self.random = np.random.default_rng(seed)
        self.ring = HostRing(CELLS, capacity, (1,), np.float32, stack)
        self.number = 0
        self.episodes = [[] for _ in range(CELLS)]
        self.transitions = [[] for _ in range(CELLS)]
        first = self.frames()
        self.ring.begin(first)
        for cell in range(CELLS):
            self.episodes[cell] = [first[cell]]
        for _ in range(steps):
            self.step()

    def frames(self):
        self.number += CELLS
        return np.arange(self.number - CELLS + 1, self.number + 1, dtype=np.float32)[:, None]

    def see(self, frames):
        """The last frames of an episode, zeros before it."""
        if not self.stack:
            return frames[-1]
        return np.array([[0.0]] * (self.stack - 1) + frames)[-self.stack :]

    def step(self):
        terminated = self.random.random(CELLS) < 0.1
        truncated = self.random.random(CELLS) < 0.1
        over = terminated | truncated
        action = self.random.integers(3, size=CELLS)
        reward = self.random.normal(size=CELLS).astype(np.float32)
        final, start = self.frames(), self.frames()
        observation = np.where(over[:, None], start, final)
        cut = truncated & ~terminated
        self.ring.add(
            np.ones(CELLS, bool), action, reward, terminated, cut, over, final, observation
        )
        for cell in range(CELLS):
            before = self.see(self.episodes[cell])
            self.episodes[cell].append(final[cell])
            after = self.see(self.episodes[cell])
            self.transitions[cell].append(
                (before, action[cell], reward[cell], terminated[cell], after)
            )
            if over[cell]:
                self.episodes[cell] = [start[cell]]


@pytest.mark.parametrize("stack", [0, 1, 4])
@pytest.mark.parametrize(("capacity", "steps"), [(2, 30), (50, 20), (50, 500), (64, 64)])
def test_every_draw_is_a_transition_that_happened(stack, capacity, steps):
    story = Story(stack, capacity, steps)
    batch = story.ring.sample([np.random.default_rng(cell) for cell in range(CELLS)], 3000)
    for cell in range(CELLS):
        rows = {tuple(before.ravel()): row for row in story.transitions[cell] for before in row[:1]}
        seen = set()
        for i in range(3000):
            row = rows[tuple(batch.observation[cell, i].ravel())]
            seen.add(tuple(row[0].ravel()))
            assert batch.action[cell, i] == row[1]
            assert batch.reward[cell, i] == row[2]
            assert batch.terminated[cell, i] == row[3]
            if not row[3]:  # nothing is bootstrapped from a terminated one
                np.testing.assert_array_equal(batch.next_observation[cell, i], row[4])
        # All of the newest come up, and nothing older than the ring.
        finals = sum(
            not row[3] and not np.array_equal(row[4], following[0])
            for row, following in zip(
                story.transitions[cell][:-1], story.transitions[cell][1:], strict=True
            )
        )
        recent = [tuple(row[0].ravel()) for row in story.transitions[cell]][-capacity:]
        assert seen <= set(recent)
        assert len(seen) >= min(capacity, steps) - finals - 1
        assert recent[-1] in seen


@pytest.mark.parametrize("stack", [0, 3])
def test_current_is_what_will_be_replayed(stack):
    story = Story(stack, 30, 0)
    for _ in range(100):
        story.step()
        for cell in range(CELLS):
            np.testing.assert_array_equal(
                story.ring.current()[cell], story.see(story.episodes[cell])
            )


def test_draws_are_uniform():
    story = Story(0, 40, 200)
    batch = story.ring.sample([np.random.default_rng(cell) for cell in range(CELLS)], 40_000)
    for cell in range(CELLS):
        _, counts = np.unique(batch.observation[cell], return_counts=True)
        expected = 40_000 / len(counts)
        assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_a_dead_cell_stays_as_it_was():
    story = Story(4, 30, 50)
    alive = np.array([True, False])
    frozen = {name: x[1].copy() for name, x in vars(story.ring).items() if np.ndim(x)}
    for _ in range(10):
        frame = story.frames()
        none = np.zeros(CELLS, bool)
        story.ring.add(alive, np.ones(CELLS, int), np.ones(CELLS), none, none, none, frame, frame)
    for name, x in frozen.items():
        np.testing.assert_array_equal(getattr(story.ring, name)[1], x)


def test_a_million_atari_frames_fit():
    """By shape: the pages are taken as the ring fills."""
    ring = HostRing(1, 1_000_000, (84, 84), np.uint8, 4)
    assert sum(x.nbytes for x in vars(ring).values() if isinstance(x, np.ndarray)) <= 7.5e9
