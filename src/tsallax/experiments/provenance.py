"""The provenance of a study's table, in `about.json`, and which of its rows are still valid.

A table outlives the folders of its runs. Its settings are not run again, as long as `about.json`
records the same configuration for them: to run them again, delete the table.
"""

import dataclasses
import json
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tsallax.experiments.jobs import Job
from tsallax.experiments.results import (
    ABOUT,
    COLUMNS,
    METRICS,
    Known,
    read_provenance,
    settings_of,
)
from tsallax.experiments.study import Setting, Study, label_texts
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import digest_of, read_about
from tsallax.storage.tables import open_rows, read_timing
from tsallax.training.config import Config, to_json


class Made(NamedTuple):
    """The study and scale of a table, and the command that makes it."""

    study: Study
    scale: str
    command: str


class Archive(NamedTuple):
    """The existing rows of a study's table, and its provenance."""

    rows: Known
    about: dict[str, Any]

    def holds(self, study: Study, wanted: Mapping[Config, list[Setting]], job: Job) -> bool:
        """Whether all rows of a job are there; the settings are given `by_part`."""
        own = settings_of(job.config, wanted) if self.rows else []
        seeds = range(job.config.first_seed, job.config.first_seed + job.config.seeds)
        return bool(own) and all(
            seed in self.rows.get(label_texts(study, setting), {})
            for setting in own
            for seed in seeds
        )


def read_archive(study: Study, settings: Iterable[Setting], path: Path) -> Archive:
    """The complete runs in the table at `path` whose configuration is still that of the study."""
    names, at = [*study.keys, "seed", "step", *COLUMNS], len(study.keys)
    rows: Known = {}
    try:
        with Directory(path) as folder:
            about = read_provenance(folder)
            recorded = dict(about["settings"])
            with open_rows(folder, METRICS, names) as table:
                order = [table.names.index(name) for name in names]
                for row in ([row[i] for i in order] for row in table):
                    rows.setdefault(tuple(row[:at]), {}).setdefault(int(row[at]), []).append(row)
    except (OSError, ValueError, KeyError, TypeError):
        return Archive({}, {})
    if table.bad or len(table.names) != len(names):
        return Archive({}, {})
    kept: Known = {}
    for setting in settings:
        named, last = label_texts(study, setting), str(setting.config.steps)
        if recorded.get(_name(named)) == digest(setting):
            kept[named] = {s: r for s, r in rows.get(named, {}).items() if r[-1][at + 1] == last}
    return Archive(kept, about)


def with_archived_seeds(
    study: Study, settings: Iterable[Setting], archive: Archive
) -> list[Setting]:
    """The settings, each with the further seeds that the table already holds.

    They are counted in the provenance, although fewer were asked for this time.
    """

    def longer(setting: Setting) -> Setting:
        config, there = setting.config, archive.rows.get(label_texts(study, setting), {})
        seeds = config.seeds
        while config.first_seed + seeds in there:
            seeds += 1
        return setting._replace(config=dataclasses.replace(config, seeds=seeds))

    return [longer(setting) for setting in settings]


def _name(named: Sequence[str]) -> str:
    return " ".join(named)


def digest(setting: Setting) -> str:
    """The digest of a setting's configuration, regardless of its seeds."""
    config = dataclasses.replace(setting.config, seeds=1, first_seed=0)
    return digest_of(to_json(config))[:12]


def write_about(
    folder: Directory,
    made: Made,
    settings: Iterable[Setting],
    jobs: Sequence[Job],
    done: Sequence[Job],
    failed: dict[Job, str],
    archive: Archive | None = None,
) -> None:
    """Write the provenance of a table: command, versions, time, and what is missing.

    Args:
        folder: the folder of the table.
        made: the study, scale and command that make it.
        settings: the settings of the study.
        jobs: all jobs.
        done: the jobs that are done, with or without a folder.
        failed: the errors of other jobs.
        archive: the previous contents of the table.
    """
    here = [job for job in done if job.done()]
    archived = set(done) - set(here)
    before: Mapping[str, Any] = archive.about if archive and archived else {}
    found = [read_about(job.path).everything.get("versions", {}) for job in here]
    found += [before["versions"]] if before else []
    names = dict.fromkeys(name for versions in found for name in versions)
    share = sum(job.steps for job in archived) / max(1, before.get("environment steps", 1))
    hours = sum(map(_seconds, here)) / 3600 + (share * before["core hours"] if before else 0)
    ended = {*done, *failed}
    about = {
        "study": made.study.name,
        "title": made.study.title,
        "scale": made.scale,
        "command": made.command,
        "written": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": {n: _several(v.get(n, "?") for v in found) for n in names},
        "machine": f"{platform.machine()}, {platform.system()}",
        "jobs": len(jobs),
        "done": len(done),
        "environment steps": sum(job.steps for job in done),
        "core hours": round(hours, 2),
        "failed": {job.path.name: why for job, why in failed.items()},
        "unfinished": [job.path.name for job in jobs if job not in ended],
        "settings": {_name(label_texts(made.study, s)): digest(s) for s in settings},
    }
    folder.write(ABOUT, (json.dumps(about, indent=1) + "\n").encode())


def _several(versions: Iterable[str]) -> str:
    return ", ".join(sorted({one for some in versions for one in some.split(", ")}))


def _seconds(job: Job) -> float:
    """Total seconds of training; the timing of a resumed run starts from 0 again."""
    with Directory(job.path) as folder:
        times = [seconds for _, seconds, _ in read_timing(folder)]
    gaps = (t - before if t >= before else t for before, t in pairwise([0.0, *times]))
    return sum(gaps, 0.0)
