"""The evidence for a claim: final scores of settings, from the tables of one scale."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

from tsallax.experiments.results import Curve, select

ENOUGH = 0.01  # of the paper's steps, below which nothing is said
CLEAR = 3.0  # standard errors of the return of random actions
PAPER_STEPS = {"MinAtar/": 10_000_000, "ALE/": 30_000_000, "": 500_000}


class Missing(Exception):  # noqa: N818 (not an error: a verdict is left open)
    """Runs that a claim needs are not there, or too short."""


class Evidence:
    """The tables of one scale, by study."""

    def __init__(self, tables: Mapping[str, Sequence[Curve]]):
        self.tables = tables

    def scores(
        self, study: str, env: str, algo: str, column: str = "episode_return", **labels: Any
    ) -> Float[np.ndarray, "seeds"]:
        """Final scores of a setting's seeds; returns are scaled from random (0) to solved (1)."""
        curve = self.curve(study, env, algo, **labels)
        final = curve.final(column)
        returns = column == "episode_return"
        if not np.all(np.isfinite(final)):
            why = "no episode ended" if returns else f"{column} is not finite"
            raise Missing(f"{algo} on {env}: a run in which {why}")
        if not returns:
            return final
        low, high = self.span(study, env)
        return (final - low) / (high - low)

    def curve(self, study: str, env: str, algo: str, **labels: Any) -> Curve:
        there = self.tables.get(study, ())
        keys = there[0].labels if there else {}
        wanted = {n: v for n, v in labels.items() if n in keys}
        if algo != "mt-dqn" and "log_weight" in wanted:
            wanted["log_weight"] = ""
        found = select(there, env=env, algo=algo, **wanted)
        words = ", ".join([algo, env, *(f"{n} {v}" for n, v in labels.items() if v != "")])
        if len(found) != 1:
            raise Missing(f"no runs of {words}" if not found else f"{words} is ambiguous")
        paper = next(steps for start, steps in PAPER_STEPS.items() if env.startswith(start))
        if found[0].steps[-1] < ENOUGH * paper:
            raise Missing(f"{words}: {found[0].steps[-1]:,} of the paper's {paper:,} steps")
        return found[0]

    def span(self, study: str, env: str) -> tuple[float, float]:
        """The returns of random actions and of a solved task: Gymnasium's threshold or the best.

        The best must be clearly above random actions: noise is no scale.
        """
        chance = select(self.tables.get("random", ()), env=env)
        if not chance:
            raise Missing(f"no runs of random actions on {env}: tsallax reproduce random")
        random = chance[0].iterations("episode_return", 1)[1]
        low = float(np.nanmean(random))
        spec = gymnasium.registry.get(env)
        high = spec.reward_threshold if spec is not None else None
        if high is None:
            every = select(self.tables[study], env=env)
            high = max(float(np.nanmean(curve.final())) for curve in every)
            error = float(np.nanstd(random)) / np.sqrt(random.size)
            if high <= low + CLEAR * error:
                raise Missing(f"{env}: no algorithm is clearly above random actions")
        return low, float(high)

    def envs(self, study: str, start: str) -> list[str]:
        found = dict.fromkeys(c.labels["env"] for c in self.tables.get(study, ()))
        return [env for env in found if env.startswith(start)]
