"""How the time of an update grows with seeds, capacity, batch, width and actions.

    python benchmarks/growth.py          # needs a quiet machine; prints and draws

All sizes of a row take turns within a round, so that ratios are taken within seconds. The slope is
that of a straight line through the logarithms: 0 for no growth, 1 for proportional growth.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import tyro
from matplotlib.ticker import NullLocator

from tsallax.agents import make_agent
from tsallax.cli.bench import loop_timer
from tsallax.networks import mlp
from tsallax.operators import get_algorithm, make_hparams
from tsallax.training.build import make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve
from updates import update_timer

FIGURE = Path(__file__).parents[1] / "docs/figures/growth.png"
GYM = {"env": "CartPole-v1", "preset": "paper", "steps": 10**6}
SIZES = {
    "seeds": (1, 2, 4, 8, 16, 32, 64),
    "buffer": (1_000, 10_000, 100_000, 1_000_000),
    "batch": (32, 64, 128, 256, 512),
    "width": (64, 128, 256, 512, 1024),
    "actions": (2, 4, 8, 16, 32, 64),
}
# A tenth of the preset's period and replay: turns are short, and a state is drawn as often.
SHORT = {"seeds": {"target_period": 100, "buffer": 5_000}}
SEED_ROUNDS = 2  # most rounds for seeds


def loop(name: str, size: int) -> Callable[[], float]:
    """Seconds per update of all seeds together, in the compiled loop of the gym preset."""
    own: dict[str, Any] = {"hidden": (size, size)} if name == "width" else {name: size}
    return loop_timer(make_run(resolve(Config(**GYM, **SHORT.get(name, {}), **own))))


def update(actions: int) -> Callable[[], float]:
    """Seconds per update alone of TAL at q = 3/2, with batch and network of the gym preset."""
    agent = make_agent(mlp((4,), (actions,)), get_algorithm("tal"), clip_gradient=False)
    hp = jax.tree.map(jnp.float32, make_hparams("tal", q=1.5))
    return update_timer(agent, hp, jax.ShapeDtypeStruct((4,), jnp.float32), 128, actions)


def slope(sizes, seconds) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(name: str, rounds: int) -> np.ndarray:
    """Seconds per update at each size, the shortest of all rounds."""
    timers = [update(n) if name == "actions" else loop(name, n) for n in SIZES[name]]
    rounds = min(rounds, SEED_ROUNDS) if name == "seeds" else rounds
    return np.min([[timer() for timer in timers] for _ in range(rounds)], 0)


def draw(axis: Any, name: str, milliseconds: np.ndarray, steepness: float) -> None:
    sizes = SIZES[name]
    axis.loglog(sizes, milliseconds, "o-", ms=4)
    axis.set_title(f"{name}, slope {steepness:.2f}", fontsize=10)
    shown = sizes if name == "buffer" else sizes[::2]
    axis.set_xticks(shown, [f"{n:,}" for n in shown], fontsize=9)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(alpha=0.3)


def main(rounds: int = 5, rows: tuple[str, ...] = tuple(SIZES)) -> None:
    """Measure, print and draw.

    Args:
        rounds: repetitions of a row, at most two for seeds; the least time of each size counts.
        rows: the rows to measure.
    """
    tall = -(-len(rows) // 2)
    figure, axes = plt.subplots(tall, 2, figsize=(6.4, 2.1 * tall), sharey=True, squeeze=False)
    print("| | sizes | ms per update | slope |\n|---|---|---|---|")
    for name, axis in zip(rows, axes.flat, strict=False):
        seconds = measure(name, rounds)
        steepness = slope(SIZES[name], seconds)
        sizes = ", ".join(map(str, SIZES[name]))
        times = ", ".join(f"{1e3 * x:.2f}" for x in seconds)
        print(f"| {name} | {sizes} | {times} | {steepness:.2f} |", flush=True)
        draw(axis, name, 1e3 * seconds, steepness)
    for spare in axes.flat[len(rows) :]:
        spare.set_axis_off()
    figure.supylabel("ms per update", fontsize=10)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=160)


if __name__ == "__main__":
    tyro.cli(main)
