"""A sweep over q: every index and every seed in parallel in one compiled program.

python examples/train_q.py [FOLDER]
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import tsallax
from tsallax.api import Result

QS = (1.0, 1.5, 2.0, 3.0, float("inf"))


def sweep(q: tuple[float, ...] = QS, seeds: int = 2, steps: int = 20_000, **fields: Any) -> Result:
    """TAL on CartPole with small layers; k = 1/2 for every q, so that only q differs."""
    fields = {"preset": "paper", "k": 0.5, "hidden": (64, 64), "progress": True} | fields
    return tsallax.train("CartPole-v1", algo="tal", q=q, seeds=seeds, steps=steps, **fields)


def table(result: Result, last: int = 10) -> str:
    """Means over the last periods: return (and its spread over seeds), gap, support."""
    lines = [f"{'q':>4} {'return':>8} {'spread':>8} {'gap':>8} {'support':>8}"]
    for setting, returns, gaps, supports in zip(
        result.settings,
        *(result.metrics[name] for name in ("episode_return", "action_gap", "support")),
        strict=True,
    ):
        by_seed = np.nanmean(returns[:, -last:], -1)
        numbers = (
            by_seed.mean(),
            by_seed.std(),
            gaps[:, -last:].mean(),
            supports[:, -last:].mean(),
        )
        lines.append(f"{setting['q']:4.1f} " + " ".join(f"{x:8.2f}" for x in numbers))
    return "\n".join(lines)


def main(folder: Path) -> None:
    result = sweep()
    result.save(folder)  # metrics, weights and curves.png, as `tsallax train` leaves them
    print(table(result))
    setting, score = result.best()
    print(f"best: q = {setting['q']:g} with a return of {score:.1f}; see {folder / 'curves.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/train-q"))
