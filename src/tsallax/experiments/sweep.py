"""The sweep: hand jobs to workers until all are done, whoever the workers are.

A job is idempotent: its folder holds its checkpoints, and says `done` last. So a sweep has no state
of its own: started again it does what is missing.
"""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from tsallax.experiments.jobs import Job

# How often a job is tried again without any progress: one that failed by itself, and one whose
# worker was taken away, by a kill or with its machine.
RETRIES = {"failed": 2, "lost": 10}
WAIT = 2.0  # seconds before a job that another process holds is tried again


class Answer(NamedTuple):
    """How a job ended: `done`, `stopped`, `busy`; `failed`, or its worker `lost`, with a reason."""

    job: Job
    end: str
    why: str = ""


def read_answer(job: Job, found: dict[str, str]) -> Answer:
    """What a worker reported about its job."""
    if "busy" in found:
        return Answer(job, "busy", found["busy"])
    return Answer(job, found.get("end", "failed"), found.get("error", ""))


@runtime_checkable
class Executor(Protocol):
    """Runs jobs in other processes."""

    @property
    def slots(self) -> int:
        """How many jobs it takes at a time."""
        ...

    def start(self, job: Job) -> None:
        """Begin a job; at most `slots` run at a time."""

    def wait(self, seconds: float) -> list[Answer]:
        """The jobs that ended; after some time, perhaps none."""
        ...

    def close(self) -> None:
        """End the jobs that still run, after they saved their checkpoints."""


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

    It ends early, with everything saved, when it is `asked` to stop.
    """
    jobs = list(jobs)
    state = Progress([job for job in jobs if job.done()], [], [], {})
    done = set(state.done)
    left = [job for job in jobs if job not in done]
    # Long jobs first, so that none runs alone at the end; every setting before a second seed.
    state.waiting.extend(sorted(left, key=lambda job: (-job.steps, job.config.first_seed)))
    tries: dict[Job, tuple[int, int]] = {}  # the step, and how often it failed there
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
    """The next job: if possible, one whose program no other worker is compiling."""
    now = time.monotonic()
    ready = [job for job in state.waiting if later.get(job, 0) <= now]
    compiling = {job.program for job in state.running if not job.step()}
    free = [job for job in ready if job.program not in compiling]
    return next(iter(free or ready), None)
