"""The sweep: runs jobs on an executor until all are done.

A job is idempotent: its folder has its checkpoints, and gets the status `done` last. So a sweep has
no state of its own: when started again, it runs what is missing.
"""

import time
from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple, Protocol, runtime_checkable

from tsallax.experiments.jobs import Job

# Number of retries of a job without any progress: if it failed by itself, and if its worker was
# lost, by a kill or with its machine.
RETRIES = {"failed": 2, "lost": 10}
WAIT = 2.0  # seconds before a job that another process runs is retried


class Answer(NamedTuple):
    """How a job ended: `done`, `stopped`, `busy`; `failed`, or its worker `lost`, with a reason."""

    job: Job
    end: str
    why: str = ""


def read_answer(job: Job, found: dict[str, str]) -> Answer:
    """The answer in a worker's report about its job."""
    if "busy" in found:
        return Answer(job, "busy", found["busy"])
    return Answer(job, found.get("end", "failed"), found.get("error", ""))


@runtime_checkable
class Executor(Protocol):
    """Runs jobs in other processes."""

    @property
    def slots(self) -> int:
        """The number of jobs that it runs at a time."""
        ...

    def start(self, job: Job) -> None:
        """Start a job; at most `slots` run at a time."""

    def wait(self, seconds: float) -> list[Answer]:
        """Wait at most `seconds` for jobs to end; returns those that did, perhaps none."""
        ...

    def close(self) -> None:
        """End the jobs that are still running, after they have saved checkpoints."""


class Progress(NamedTuple):
    done: list[Job]
    running: list[Job]
    waiting: list[Job]
    failed: dict[Job, str]


def run(
    jobs: Iterable[Job],
    executor: Executor,
    show: Callable[[Progress], None] = lambda progress: None,
    asked: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = print,
) -> Progress:
    """Run every job to its end, or until it fails too often without progress (`RETRIES`).

    The sweep ends early, with everything saved, when `asked` returns true.
    """
    jobs = list(jobs)
    state = Progress([job for job in jobs if job.done()], [], [], {})
    done = set(state.done)
    left = [job for job in jobs if job not in done]
    # Long jobs first, so that none runs alone at the end; every setting before a second seed.
    state.waiting.extend(sorted(left, key=lambda job: (-job.steps, job.config.first_seed)))
    tries: dict[Job, tuple[int, int]] = {}  # the step, and the number of failures there
    later: dict[Job, float] = {}
    try:
        while (state.running or state.waiting) and not asked():
            while len(state.running) < executor.slots and (job := choose(state, later)):
                state.waiting.remove(job)
                state.running.append(job)
                executor.start(job)
            show(state)
            for answer in executor.wait(1.0):
                job = answer.job
                state.running.remove(job)
                if answer.end == "done":
                    state.done.append(job)
                    continue
                failed, at = tries.get(job, (0, -1))
                step = job.step()
                if answer.end == "busy":
                    later[job] = time.monotonic() + WAIT
                elif answer.end in RETRIES:
                    failed = 1 if step > at else failed + 1
                    tries[job] = failed, max(at, step)
                    say(f"{job.path.name}: {answer.why}")
                if failed > RETRIES.get(answer.end, failed):
                    state.failed[job] = answer.why
                else:
                    state.waiting.append(job)
        show(state)
    finally:
        executor.close()
    return state


def choose(state: Progress, later: dict[Job, float]) -> Job | None:
    """Choose the next job: if possible, one whose program no other worker is compiling."""
    now = time.monotonic()
    ready = [job for job in state.waiting if later.get(job, 0) <= now]
    compiling = {job.program for job in state.running if not job.step()}
    free = (job for job in ready if job.program not in compiling)
    return next(chain(free, ready), None)
