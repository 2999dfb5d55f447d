"""Jobs: the settings of a study as runs with their own folders, which several studies can share."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tsallax.experiments.study import Setting
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import digest_of, read_about, status
from tsallax.storage.tables import read_timing
from tsallax.training.build import shape_of
from tsallax.training.build_agent import closed_q
from tsallax.training.config import CLOSED, NUMBERS, Config, grid, to_json


class Job(NamedTuple):
    """The work of one compiled program: a configuration, and the folder of its run."""

    config: Config
    path: Path

    @property
    def cells(self) -> int:
        return len(grid(self.config)) * self.config.seeds

    @property
    def steps(self) -> int:
        """Total environment steps of all cells."""
        return self.cells * self.config.steps

    @property
    def program(self) -> tuple[Config, float | None, int]:
        """The properties that the compiled program depends on."""
        return shape_of(self.config), closed_q(np.array(self.config.q)), self.cells

    def done(self) -> bool:
        return status(self.path, to_json(self.config)) == "done"

    def stopped(self) -> str:
        """Why cells of a finished run have no result; empty if all cells have one."""
        found = read_about(self.path).everything.get("stopped", {})
        return "; ".join(f"cell {cell} {why}" for cell, why in found.items())

    def step(self) -> int:
        """The step that it has reached according to its timing table; 0 if there is none."""
        try:
            with Directory(self.path) as folder:
                return max((step for step, *_ in read_timing(folder)), default=0)
        except (OSError, ValueError):
            return 0


def make_jobs(settings: Iterable[Setting], folder: Path, width: int = 0) -> list[Job]:
    """Make the jobs: every setting once, with all its seeds.

    Args:
        settings: the settings of one study or several.
        folder: the folder of all runs.
        width: the largest number of cells per job. More seeds are split between jobs, and settings
            that differ only in numbers are joined up to it; with 0 each setting is a separate job,
            so that studies can share it.
    """
    configs = list(dict.fromkeys(setting.config for setting in settings))
    if width:
        configs = join([part for config in configs for part in split(config, width)], width)
    return [Job(config, folder / folder_name(config)) for config in configs]


def split(config: Config, width: int) -> Iterator[Config]:
    """Split the seeds of a setting into parts of at most `width`, of nearly equal size."""
    parts = -(-config.seeds // width)
    first = config.first_seed
    for i in range(parts):
        seeds = config.seeds // parts + (i < config.seeds % parts)
        yield dataclasses.replace(config, seeds=seeds, first_seed=first)
        first += seeds


def join(configs: list[Config], width: int) -> list[Config]:
    """Join configurations that differ in one number into one with a grid, number by number.

    Those whose policy has a closed form are not joined with those that need the solver, nor those
    that do not give the number with those that do.
    """
    for name in NUMBERS:
        rest: dict[tuple[Config, bool, bool], list[Config]] = {}
        for config in configs:
            closed, given = name == "q" and set(config.q) <= CLOSED, bool(getattr(config, name))
            key = dataclasses.replace(config, **{name: ()}), closed, given
            rest.setdefault(key, []).append(config)
        configs = [joined for group in rest.values() for joined in _join(group, name, width)]
    return configs


def _join(group: list[Config], name: str, width: int) -> Iterator[Config]:
    if getattr(group[0], name) is None:  # derived from other numbers: nothing to combine
        yield from group
        return
    one = len(grid(group[0])) * group[0].seeds
    many = max(1, width // one)
    for start in range(0, len(group), many):
        values = [x for config in group[start : start + many] for x in getattr(config, name)]
        yield dataclasses.replace(group[start], **{name: tuple(values)})


def folder_name(config: Config) -> str:
    """A readable prefix and a suffix of the configuration's hash."""
    q = "-".join(f"q{x:g}" for x in config.q[:3])
    parts = (config.env.replace("/", "-").replace(":", "-"), config.algo, q, config.policy)
    return "-".join(p for p in (*parts, digest_of(to_json(config))[:12]) if p)
