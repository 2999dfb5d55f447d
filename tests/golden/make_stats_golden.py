"""Writes stats.npz: rliable's aggregates and intervals, with the resamples they were taken on.

rliable 1.2.0 does not import on a fresh install: arch 7.2.0 calls a private function of pandas
that pandas 3 changed. Run with a Python that has

    pip install rliable==1.2.0 arch==7.2.0 "numpy<2" "pandas<3"

`python tests/golden/make_stats_golden.py`. It is not needed for the tests, which read the file
only. rliable draws its resamples from numpy's global state, whatever `random_state` says, so they
are noted down as they are drawn.
"""

from pathlib import Path

import numpy as np

# Runs of X, runs of Y, tasks, decimals of the scores; one decimal makes ties.
CASES = {
    "few": (3, 4, 2, 1),
    "odd": (7, 5, 3, 1),
    "one_task": (10, 10, 1, 1),
    "fine": (8, 6, 5, 17),
}
RESAMPLES, LEVELS = 100, {"95": 0.95, "80": 0.8}
TAUS = np.linspace(-1.0, 2.0, 13)


def noting(bootstrap, drawn):
    """`bootstrap`, with the run numbers of each resample appended to `drawn`."""

    class Noting(bootstrap):
        def update_indices(self):
            indices = super().update_indices()
            # One sample: (runs, tasks); several: ([(runs, tasks), ...], {}).
            several = isinstance(indices[0], list)
            drawn.append([i[0] for i in indices[0]] if several else [indices[0]])
            return indices

    return Noting


def main() -> None:
    from rliable import library, metrics

    drawn = []
    for name in ("StratifiedBootstrap", "StratifiedIndependentBootstrap"):
        setattr(library, name, noting(getattr(library, name), drawn))

    def aggregates(x):
        return np.array(
            [
                metrics.aggregate_iqm(x),
                metrics.aggregate_mean(x),
                metrics.aggregate_median(x),
                metrics.aggregate_optimality_gap(x, gamma=0.5),
            ]
        )

    def improvement(x, y):
        return np.array([metrics.probability_of_improvement(x, y)])

    def profile(x):
        return library.score_distributions(x, TAUS)

    generator = np.random.default_rng(0)
    np.random.seed(0)  # noqa: NPY002, the state that rliable draws from
    arrays = {"taus": TAUS}
    for case, (runs_x, runs_y, tasks, decimals) in CASES.items():
        x = generator.normal(0.5, 1.0, (runs_x, tasks)).round(decimals)
        y = generator.normal(0.2, 1.0, (runs_y, tasks)).round(decimals)
        arrays |= {f"{case}/x": x, f"{case}/y": y}
        for name, statistic, scores in (
            ("aggregates", aggregates, x),
            ("improvement", improvement, [x, y]),
            ("profile", profile, x),
        ):
            for tag, level in LEVELS.items():
                drawn.clear()
                points, intervals = library.get_interval_estimates(
                    {case: scores}, statistic, reps=RESAMPLES, confidence_interval_size=level
                )
                key = f"{case}/{name}/{tag}"
                arrays |= {f"{key}/value": points[case], f"{key}/interval": intervals[case]}
                for i, sample in enumerate(zip(*drawn, strict=True)):
                    arrays[f"{key}/indices{i}"] = np.stack(sample).astype(np.int8)
    np.savez_compressed(Path(__file__).parent / "stats.npz", **arrays)


if __name__ == "__main__":
    main()
