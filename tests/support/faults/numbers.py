"""A seed that is poisoned, and what a checkpoint costs."""

import time
from pathlib import Path

import jax
import numpy as np

from support import poison
from support.configs import paper
from tsallax.training.build import make_run
from tsallax.training.driver import make_folder


def poisoned_seed(root: Path) -> str:
    """A NaN reward in one seed of eight: found at its step, the other seven to the bit."""
    del root
    clean, bad = poison.outcome(seeds=8), poison.outcome(poison=33, seeds=8)
    found = np.flatnonzero(bad[1].diverged >= 0)
    assert found.tolist() == [poison.SICK]
    assert bad[1].diverged[poison.SICK] == 33
    poison.same_but_for_the_sick(clean, bad)
    return "found at step 33, 7 of 7 to the bit"


def save_costs(root: Path) -> str:
    """Seconds of one checkpoint: the gym preset, and a full MinAtar replay of 1e5."""
    found = []
    for env in ("CartPole-v1", "MinAtar/Breakout"):
        config = paper(env, steps=200_000)
        run = make_run(config)
        state = run.learner.start()
        folder = make_folder(root / env.replace("/", "-"), run)
        jax.block_until_ready(state.agent)
        times = []
        for step in range(1, 6):
            begin = time.monotonic()
            folder.save_checkpoint(step, *run.learner.save(state))
            times.append(time.monotonic() - begin)
        found.append(float(np.median(times)))
    share = 100 * found[0] / 60
    return f"{found[0]:.2f} s ({share:.2f} % of 60), {found[1]:.2f} s"
