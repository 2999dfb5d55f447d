"""The shared part of `tsallax sweep` and `tsallax reproduce`: studies to tables and figures."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from tsallax.experiments import provenance, results, sweep
from tsallax.experiments.jobs import Job, make_jobs
from tsallax.experiments.local import usable_cores
from tsallax.experiments.study import Setting, Study, settings
from tsallax.spelling import counted, duration, printable
from tsallax.storage.files import open_below
from tsallax.training.interrupt import Interrupt

RUNS, LOGS = "runs", "logs"


@dataclass(frozen=True)
class Where:
    """Where the runs are executed.

    Args:
        executor: one pinned process per core, or Ray tasks.
        workers: jobs at a time; 0 for one per core.
        width: runs side by side in one program. 1 is fastest on a CPU; use many on a GPU.
        address: address of a Ray cluster; by default one started here.
        gpus: GPUs per Ray task.
        draw_only: run nothing; make tables and pictures of finished runs.
        seeds: seeds per setting; finished ones are kept.
        only: a part, such as q=2,3; the table keeps the rest.
    """

    executor: Literal["local", "ray"] = "local"
    workers: int = 0
    width: int = 1
    address: str = ""
    gpus: float = 0.0
    draw_only: bool = False
    seeds: int = 0
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="FIELD=X ...")] = ()


class Board:
    """The display of a sweep: live on a terminal, else a line every half minute."""

    def __init__(self, jobs: Sequence[Job], every: float = 30.0):
        self.jobs, self.every = jobs, every
        self.total = sum(job.steps for job in jobs)
        self.console = Console()
        self.live = Live(console=self.console, auto_refresh=False)
        self.bar = Progress(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(40),
            TextColumn("{task.fields[note]}"),
        )
        self.task = self.bar.add_task("", total=self.total, note="")
        self.begin, self.last, self.before = time.monotonic(), 0.0, -1
        self.note = ""

    def __enter__(self) -> "Board":
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def stopping(self) -> None:
        """Called by a signal handler, which must not print in the middle of another print."""
        self.note = "stopping: each worker ends its period and saves; press again to stop at once"
        if not self.console.is_terminal:
            os.write(2, f"{self.note}\n".encode())

    def __call__(self, state: sweep.Progress) -> None:
        now = time.monotonic()
        steps = sum(job.steps for job in state.done)
        steps += sum(job.step() * job.cells for job in (*state.running, *state.waiting))
        if self.before < 0:
            self.before = steps
        speed = (steps - self.before) / max(now - self.begin, 1e-9)
        left = duration((self.total - steps) / speed) if speed > 0 else "?"
        runs = f"{len(state.done)} of {counted(len(self.jobs), 'run')}"
        note = f"{runs}   {speed:,.0f} steps/s   {left} left"
        if state.failed:
            note += f"   {len(state.failed)} failed"
        self.bar.update(self.task, completed=steps, note=note)
        if self.console.is_terminal:
            table = Table(box=None, pad_edge=False, show_header=False)
            for job in state.running:
                share = job.step() / job.config.steps
                table.add_row(printable(job.path.name), f"{100 * share:.0f} %")
            self.live.update(Group(self.bar, table, Text(self.note, style="dim")), refresh=True)
        elif now - self.last >= self.every or not (state.running or state.waiting):
            self.last = now
            self.console.print(f"{100 * steps / self.total:.0f} %   {note}", highlight=False)


def check(where: Where) -> None:
    if min(where.workers, where.width, where.gpus, where.seeds) < 0:
        raise ValueError("--workers, --width, --gpus and --seeds cannot be negative")
    if where.executor != "ray" and (where.address or where.gpus):
        raise ValueError("--address and --gpus are Ray's: give --executor ray as well")


def carry_out(studies: Sequence[Study], scale: str, out: Path, where: Where, command: str) -> int:
    """Run every study at a scale: tables and figures under `out`, runs shared between studies.

    Args:
        studies: the studies.
        scale: the name of a scale of all of them; empty for a study without scales.
        out: the folder of the results.
        where: where the runs are executed.
        command: the command that makes a study's table, with {} for its name.
    """
    check(where)
    plans = {study.name: settings(study, scale, where.seeds) for study in studies}
    archives = {}
    for study in studies:
        name = study.name
        archives[name] = provenance.read_archive(study, plans[name], out / scale / name)
        plans[name] = provenance.with_archived_seeds(study, plans[name], archives[name])
    jobs = {name: make_jobs(plan, out / RUNS, where.width) for name, plan in plans.items()}
    wanted = {name: results.by_part(plan) for name, plan in plans.items()}
    every = list(dict.fromkeys(job for own in jobs.values() for job in own))
    missing = {  # in the table of a study that needs them
        job
        for study in studies
        for job in jobs[study.name]
        if not archives[study.name].holds(study, wanted[study.name], job)
    }
    refuse_links(out, every)
    kept = {job for job in every if job not in missing and not job.done()}
    chosen = results.only(studies, plans, where.only)
    runnable = [
        job
        for job in every
        if job not in kept and (job.done() or results.settings_of(job.config, chosen))
    ]
    todo = [job for job in runnable if not job.done()]
    there = f"; {len(kept)} in the tables already" if kept else ""
    print(
        f"{counted(len(every), 'run')}, {counted(sum(job.cells for job in every), 'cell')}; "
        f"{len(todo)} to be done{there}"
    )
    state = sweep.Progress(runnable, [], [], {})
    if todo and not where.draw_only:
        workers = executor(where, out)  # before jax starts threads, as Ray forks
        estimate(todo, where)
        with Board(runnable) as board, Interrupt(board.stopping) as interrupt:
            state = sweep.run(runnable, workers, board, lambda: interrupt.asked)
    state.failed.update((job, why) for job in runnable if job.done() and (why := job.stopped()))
    for study in studies:
        made = provenance.Made(study, scale, command.replace("{}", study.name))
        write(made, plans[study.name], jobs[study.name], out, state.failed, archives[study.name])
    for job, why in state.failed.items():
        print(f"failed: {printable(job.path)}: {printable(why)}")
    if state.waiting or state.running:
        print("stopped: the same command resumes from here")
        return 130
    return 1 if state.failed else 0


def refuse_links(out: Path, jobs: Sequence[Job]) -> None:
    """Refuse links in the folder of the runs, which would lead outside it."""
    if not os.path.lexists(out / RUNS):
        return
    with open_below(out, RUNS) as folder:
        for job in jobs:
            if folder.has(job.path.name):
                folder.subfolder(job.path.name).close()


def estimate(jobs: Sequence[Job], where: Where) -> None:
    """Print a lower bound of the remaining time, which excludes compilation and environments."""
    from tsallax.experiments.estimate import core_hours

    hours = core_hours(jobs)
    cores = min(where.workers or len(usable_cores()), len(jobs))  # a job has one
    here = f", {duration(3600 * hours / cores)} on {cores}" if where.executor == "local" else ""
    print(f"at least {duration(3600 * hours)} on one core{here}, by the updates alone")


def executor(where: Where, out: Path) -> sweep.Executor:
    if where.executor == "ray":
        from tsallax.experiments.cluster import Ray

        return Ray(where.workers, where.address, where.gpus)
    from tsallax.experiments.local import Local

    return Local(open_below(out, LOGS), where.workers)


def write(
    made: provenance.Made,
    plan: list[Setting],
    jobs: list[Job],
    out: Path,
    failed: dict[Job, str],
    archive: provenance.Archive,
) -> None:
    """Write the table of the jobs that are done, its figure and its provenance."""
    study = made.study
    here = [job for job in jobs if job.done()]
    there, wanted = set(here), results.by_part(plan)
    done = [job for job in jobs if job in there or archive.holds(study, wanted, job)]
    if not done:
        print(f"{printable(study.name)}: nothing is done yet")
        return
    own = {job: why for job, why in failed.items() if job in jobs}
    from tsallax.report.figure import draw_study

    with open_below(out, *filter(None, [made.scale]), study.name) as folder:
        results.collect(study, plan, here, folder, archive.rows)
        provenance.write_about(folder, made, plan, jobs, done, own, archive)
        for picture in draw_study(study, results.read_table(folder.path / results.METRICS), folder):
            print(f"{printable(study.name)}: {printable(picture)}")
