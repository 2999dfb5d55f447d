"""The evidence for a claim: final scores of settings, from the tables of one or more scales.

A score is the mean return over the last fifth of a run, on a scale that is the same for every
study: 0 is random play, measured by the study `random`, and 1 is a reference that is fixed in
advance, REFERENCE.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tsallax.experiments.exact_tests import Sample, Sentence
from tsallax.experiments.results import Curve, select
from tsallax.experiments.study import label_text
from tsallax.training.final import solved_return

NAMES = {
    "tsallis-dqn": "Tsallis-DQN", "mt-dqn": "MT-DQN", "tal": "TAL", "mdqn": "MDQN",
    "pal": "PAL", "sal": "SAL", "cvi": "CVI",
}  # fmt: skip

# The return that counts as solved, where Gymnasium defines no threshold.
REFERENCE = {
    # The game authors' DQN at 5 million frames, mean training return of 30 seeds, read off the
    # learning curves of Young and Tian (2019), "MinAtar: An Atari-inspired testbed for thorough
    # and reproducible reinforcement learning experiments", arXiv:1903.03176.
    "MinAtar/Asterix": 16.6, "MinAtar/Breakout": 10.1, "MinAtar/Freeway": 50.0,
    "MinAtar/Seaquest": 20.0, "MinAtar/SpaceInvaders": 44.0,
    # The human player of the human-normalised score, as DeepMind's dqn_zoo tabulates it
    # (dqn_zoo/atari_data.py).
    "ALE/Alien-v5": 7127.7, "ALE/Asterix-v5": 8503.3, "ALE/BeamRider-v5": 16926.5,
    "ALE/Breakout-v5": 30.5, "ALE/Enduro-v5": 860.5, "ALE/Freeway-v5": 29.6,
    "ALE/Hero-v5": 30826.4, "ALE/KungFuMaster-v5": 22736.3, "ALE/MsPacman-v5": 6951.6,
    "ALE/Pong-v5": 14.6, "ALE/Qbert-v5": 13455.0, "ALE/RoadRunner-v5": 7845.0,
    "ALE/Seaquest-v5": 42054.7, "ALE/SpaceInvaders-v5": 1668.7, "ALE/VideoPinball-v5": 17667.9,
}  # fmt: skip

# The values of the runs in a table where such a column is missing or blank.
DEFAULTS = {"policy": "paper", "choices": "paper", "log_weight": ""}

# A reward of 1 per step and a discount of 0.99.
LARGEST_RETURN = {"CartPole-v1": 1 / (1 - 0.99)}
DIVERGED = 10.0  # times the largest possible discounted return
SMALLEST_GAP = 1e-9  # relative, so that the logarithm exists if all values are equal


class Missing(Exception):  # noqa: N818 (not an error: the verdict is *cannot say*)
    """Something that a reading needs is missing."""


class NotRun(Missing):
    """Runs that a reading needs have not been run at this scale."""


class Measured(NamedTuple):
    """What the runs of one scale say about a reading."""

    sentences: list[Sentence]
    seeds: int  # of the smallest sample
    steps: int  # of the longest
    best: tuple[str, float]  # the best sample and its mean score: has anything been learned?
    notes: tuple[str, ...] = ()
    hours: float = 0.0  # core hours for one more seed of every sample


def measured(
    sentences: Iterable[Sentence],
    samples: Iterable[Sample],
    best: tuple[str, float] | None = None,
    notes: Sequence[str] = (),
) -> Measured:
    """The sentences with the seeds, steps and best score of their samples."""
    samples = list(samples)
    return Measured(
        list(sentences),
        min(sample.seeds for sample in samples),
        max(sample.steps for sample in samples),
        best or max(((s.name, s.mean) for s in samples), key=lambda pair: pair[1]),
        tuple(notes),
        sum(sample.hours for sample in samples),
    )


class Gaps(NamedTuple):
    """Action gaps relative to the values, in powers of ten."""

    sample: Sample  # of the runs that did not diverge
    diverged: int  # how many did


class Scale:
    """The tables of one scale by study, and the returns of random play by environment.

    `rates` are the core hours per environment step in each study, where known.
    """

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Sequence[Curve]],
        random: Mapping[str, float],
        rates: Mapping[str, float] | None = None,
    ):
        self.name, self.tables, self.random, self.rates = name, tables, random, rates or {}

    def sample(self, study: str, env: str, algo: str, **labels: Any) -> Sample:
        """The scores of a setting's runs on one environment."""
        curve = self.curve(study, env, algo, **labels)
        steps = int(curve.steps[-1])
        hours = steps * self.rates.get(study, 0.0)
        return Sample(NAMES.get(algo, algo), (self._scores(curve),), steps, hours)

    def games(self, study: str, algo: str, only: str = "") -> Sample:
        """The scores of an algorithm's runs on every game of a study, or on one."""
        found = [env for env in self.environments(study) if only in ("", env)]
        if not found:
            raise NotRun(f"no runs of {study}" + (f" on {only}" if only else ""))
        samples = [self.sample(study, env, algo) for env in found]
        strata = tuple(stratum for sample in samples for stratum in sample.strata)
        steps, hours = max(s.steps for s in samples), sum(s.hours for s in samples)
        return Sample(samples[0].name, strata, steps, hours)

    def best(self, study: str, env: str) -> tuple[str, float]:
        """The algorithm with the highest mean score in a study on an environment, and the score."""
        curves = select(self.tables.get(study, ()), env=env)
        scores = [(c.labels["algo"], float(self._scores(c).mean())) for c in curves]
        algo, score = max(scores, key=lambda pair: pair[1])
        return NAMES.get(algo, algo), score

    def relative_gaps(self, study: str, env: str, algo: str, **labels: Any) -> Gaps:
        """The logarithm of the action gap relative to the absolute value of the best action.

        Both are means over the last fifth of the run. A ratio of positive numbers differs between
        runs by factors, and the logarithm keeps one run from outweighing all others.

        A run has diverged if its numbers overflowed, or if this value is more than DIVERGED times
        the largest discounted return that the environment allows. The action gap itself is no sign
        of divergence: advantage learning widens it by 1/(1 - beta), which is its purpose.
        """
        curve = self.curve(study, env, algo, **labels)
        columns = {**curve.columns, "value": np.abs(curve.columns["max_q"])}
        gap, value = (curve._replace(columns=columns).final(c) for c in ("action_gap", "value"))
        bounded = (value > 0) & (value <= DIVERGED * LARGEST_RETURN[env])  # False for NaN
        sound = bounded & np.isfinite(gap) & np.all(curve.columns["diverged"] < 0, 1)
        gaps = np.log10(np.maximum(gap[sound] / value[sound], SMALLEST_GAP))
        sample = Sample(NAMES.get(algo, algo), (gaps,), int(curve.steps[-1]))
        return Gaps(sample, int(np.sum(~sound)))

    def curve(self, study: str, env: str, algo: str, **labels: Any) -> Curve:
        if algo != "mt-dqn" and "log_weight" in labels:
            labels["log_weight"] = ""  # only MT-DQN has a log-policy to weigh
        wanted = {"env": env, "algo": algo, **{n: label_text(value) for n, value in labels.items()}}
        curves = [
            curve
            for curve in self.tables.get(study, ())
            if all((curve.labels.get(n) or DEFAULTS.get(n, "")) == v for n, v in wanted.items())
        ]
        if len(curves) != 1:
            words = ", ".join([algo, env, *(f"{n} {v}" for n, v in labels.items() if v != "")])
            raise Missing(f"{words} is ambiguous") if curves else NotRun(f"no runs of {words}")
        return curves[0]

    def reference(self, env: str) -> tuple[float, float]:
        """The returns that have the scores 0 and 1."""
        if env not in self.random:
            raise Missing(f"no runs of random actions on {env}: tsallax reproduce random")
        solved = REFERENCE.get(env, solved_return(env))
        if solved is None:
            raise Missing(f"{env} has no return that counts as solved")
        if not self.random[env] < solved:
            raise Missing(f"random actions solve {env} in these results: there is no scale")
        return self.random[env], float(solved)

    def environments(self, study: str) -> list[str]:
        return list(dict.fromkeys(curve.labels["env"] for curve in self.tables.get(study, ())))

    def _scores(self, curve: Curve) -> np.ndarray:
        env, final = curve.labels["env"], curve.final()
        if not np.all(np.isfinite(final)):
            raise Missing(f"{curve.labels['algo']} on {env}: a run in which no episode ended")
        random, solved = self.reference(env)
        return (final - random) / (solved - random)


class Evidence:
    """The tables of several scales, `{scale: {study: curves}}`, and their cost per step."""

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Sequence[Curve]]],
        rates: Mapping[str, Mapping[str, float]] | None = None,
    ):
        self.tables, self.rates = tables, rates or {}

    @cached_property
    def scales(self) -> list[Scale]:
        random = self.random_play()
        return [
            Scale(name, tables, random, self.rates.get(name))
            for name, tables in self.tables.items()
        ]

    def random_play(self) -> dict[str, float]:
        """The mean return of random actions, from the longest runs of any scale."""
        curves = [c for tables in self.tables.values() for c in tables.get("random", ())]
        means = [(c, c.iterations("episode_return", 1)[1]) for c in curves]
        ended = [(c, mean[np.isfinite(mean)]) for c, mean in means if np.any(np.isfinite(mean))]
        longest = sorted(ended, key=lambda pair: pair[0].steps[-1])
        return {curve.labels["env"]: float(mean.mean()) for curve, mean in longest}
