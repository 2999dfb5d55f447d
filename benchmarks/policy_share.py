"""The cost of the exact policy of a general q in TAL's update, relative to sparsemax.

    taskset -c 0 python benchmarks/policy_share.py          # needs a quiet machine

Both presets are measured. At q = 2 a run has the closed form, at q = 3/2 the general solver. They
alternate within a round, and ratios, with median and quartiles, are taken within a round. As the
difference of two updates is noisy, the policies are also measured alone, as a share of the update
at q = 2.
"""

from collections.abc import Callable

import jax
import numpy as np
import tyro

from tsallax import envs
from tsallax.cli.bench import loop_timer
from tsallax.policies import make_policy
from tsallax.training.build import closed_q, make_run
from tsallax.training.config import Config
from tsallax.training.resolve import resolve
from updates import policies_timer, update_timer

ENVS = ("CartPole-v1", "MinAtar/Breakout")
CLOSED, GENERAL = 2.0, 1.5
WHAT = ("update", "policies", "loop")


def timers(env: str, q: float) -> list[Callable[[], float]]:
    """Timers of the parts in `WHAT` for a run with this q."""
    run = make_run(resolve(Config(env, preset="paper", q=(q,), steps=10**6)))
    hp = jax.tree.map(lambda x: x[0], run.hp)
    sizes = run.config.batch, envs.make(env).num_actions
    policy = make_policy("exact", closed_q(run.hp.q))
    return [
        update_timer(run.agent, hp, run.observation, *sizes),
        policies_timer(policy, hp, *sizes),
        loop_timer(run),
    ]


def quartiles(x: np.ndarray, form: str) -> str:
    low, middle, high = np.percentile(x, (25, 50, 75))
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def rounds(closed: Callable[[], float], general: Callable[[], float], number: int) -> np.ndarray:
    """Seconds of both, measured alternately."""
    return np.array([(closed(), general()) for _ in range(number)]).T


def main(number: int = 60, loops: int = 15) -> None:
    """Measure and print.

    Args:
        number: rounds.
        loops: rounds of the whole loop.
    """
    print("| | q = 2, ms | q = 3/2, ms | ratio |\n|---|---|---|---|")
    for env in ENVS:
        pairs = zip(timers(env, CLOSED), timers(env, GENERAL), strict=True)
        numbers = (number, number, loops)
        found = [rounds(*pair, n) for pair, n in zip(pairs, numbers, strict=True)]
        for what, (closed, general) in zip(WHAT, found, strict=True):
            times = " | ".join(f"{1e3 * np.median(x):.3f}" for x in (closed, general))
            print(f"| {env}: {what} | {times} | {quartiles(general / closed, '.3f')} |")
        share = (found[1][1] - found[1][0]) / found[0][0]
        print(f"| {env}: what the policies add, of an update | | | {quartiles(share, '.1%')} |")


if __name__ == "__main__":
    tyro.cli(main)
