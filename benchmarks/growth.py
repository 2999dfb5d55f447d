"""How the time of an update grows with seeds, capacity, batch, width and actions.

    python benchmarks/growth.py          # wants a quiet machine; prints and draws

All sizes of a row take turns within a round, so that a ratio is taken within seconds. The slope is
that of a straight line through the logarithms: 0 for no growth, 1 for growth in proportion.
"""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import tyro

from tsallax.agents import make_agent
from tsallax.cli.bench import loop_timer
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.training.config import Config, resolve
from tsallax.training.run import make_run
from tsallax.types import Transition

FIGURE = Path(__file__).parents[1] / "docs/figures/growth.png"
GYM = {"env": "CartPole-v1", "steps": 10**6}
SIZES = {
    "seeds": (1, 2, 4, 8, 16, 32, 64),
    "buffer": (1_000, 10_000, 100_000, 1_000_000),
    "batch": (16, 32, 64, 128, 256, 512),
    "width": (64, 128, 256, 512, 1024),
    "actions": (2, 4, 8, 16, 32, 64),
}
UPDATES = 25  # of a turn


def loop(name: str, size: int) -> Callable[[], float]:
    """Seconds an update, of all seeds together, in the compiled loop of the gym preset."""
    own = {"hidden": (size, size)} if name == "width" else {name: size}
    return loop_timer(make_run(resolve(Config(**GYM, **own))))


def update(actions: int) -> Callable[[], float]:
    """Seconds an update of TAL at q = 3/2, batch and network of the gym preset, alone."""
    agent = make_agent(mlp((4,), (actions,)), get_algorithm("tal"))
    hp = jax.tree.map(jnp.float32, make_hparams("tal", q=1.5))
    key = jax.random.key(0)
    rows = jax.random.normal(key, (128, 4))
    zeros = jnp.zeros(128)
    batch = Transition(rows, zeros.astype(jnp.int32), zeros, zeros > 1, rows[::-1])

    @jax.jit
    def program(learner):
        def body(_, learner):
            return agent.update(learner, batch, hp, key)[0]

        return jax.lax.fori_loop(0, UPDATES, body, learner)

    return timer(program, agent.init(key))


def timer(program: Callable, state) -> Callable[[], float]:
    jax.block_until_ready(program(state))

    def measure() -> float:
        begin = perf_counter()
        jax.block_until_ready(program(state))
        return (perf_counter() - begin) / UPDATES

    return measure


def slope(sizes, seconds) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main(rounds: int = 5, rows: tuple[str, ...] = tuple(SIZES)) -> None:
    """Measure, print and draw.

    Args:
        rounds: repetitions of a row; the least time of each size counts.
        rows: which.
    """
    figure, axes = plt.subplots(1, len(rows), figsize=(2.7 * len(rows), 2.8), sharey=True)
    for name, axis in zip(rows, np.atleast_1d(axes), strict=True):
        sizes = SIZES[name]
        timers = [update(n) if name == "actions" else loop(name, n) for n in sizes]
        seconds = np.min([[measure() for measure in timers] for _ in range(rounds)], 0)
        milliseconds = " ".join(f"{1e3 * x:.2f}" for x in seconds)
        print(f"{name:8} {sizes} ms an update: {milliseconds}   slope {slope(sizes, seconds):.2f}")
        axis.loglog(sizes, 1e3 * seconds, "o-", ms=4)
        axis.set_title(f"{name}: slope {slope(sizes, seconds):.2f}", fontsize=9)
        axis.set_xlabel(name)
        axis.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("ms an update")
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=120)


if __name__ == "__main__":
    tyro.cli(main)
