"""The executor of one machine: one process per core, pinned to it."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

from tsallax.experiments.jobs import Job
from tsallax.experiments.sweep import Answer, read_answer
from tsallax.storage.run_folder import plain
from tsallax.training.config import to_json


class Worker:
    """One process, started when it is given its first job."""

    def __init__(self, core: int, log: Path):
        self.core, self.log = core, log
        self.process: subprocess.Popen[str] | None = None
        self.job: Job | None = None

    def start(self, job: Job, answered: "queue.SimpleQueue[Answer]") -> None:
        """Give it a job; the answer goes into the queue."""
        if self.process is None or self.process.poll() is not None:
            self.end()
            command = [sys.executable, "-m", "tsallax.experiments.worker", str(self.core)]
            with self.log.open("a") as log:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    bufsize=1,
                    start_new_session=True,  # Ctrl-C is for the sweep, which then stops its workers
                )
        assert self.process.stdin is not None
        self.job = job
        order = {"config": plain(to_json(job.config)), "path": str(job.path)}
        with contextlib.suppress(BrokenPipeError):  # noticed when its output ends
            print(json.dumps(order), file=self.process.stdin)
        # A thread, because pipes cannot be waited for together on every system.
        threading.Thread(target=lambda: answered.put(self._answer()), daemon=True).start()

    def _answer(self) -> Answer:
        """The answer to its current job; waits for it."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.job is not None
        line, job = self.process.stdout.readline(), self.job
        if not line:
            code = self.process.wait()
            how = f"killed by signal {-code}" if code < 0 else f"ended with {code}"
            return Answer(job, "failed", f"its worker was {how}; see {self.log}")
        return read_answer(job, json.loads(line))

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self) -> None:
        """Wait for the process to save its checkpoint and end."""
        if self.process is None:
            return
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process = None


def usable_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Local:
    """Workers on the cores this process may use.

    Args:
        logs: the folder of their logs.
        workers: how many; one per core if 0.
    """

    def __init__(self, logs: Path, workers: int = 0):
        cores = usable_cores()
        if workers > len(cores):
            raise ValueError(f"{workers} workers want as many cores; there are {len(cores)}")
        logs.mkdir(parents=True, exist_ok=True)
        chosen = cores[: workers or None]
        self.workers = [Worker(core, logs / f"worker-{core}.log") for core in chosen]
        self.slots = len(self.workers)
        self.answered: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    def start(self, job: Job) -> None:
        next(worker for worker in self.workers if worker.job is None).start(job, self.answered)

    def wait(self, seconds: float) -> list[Answer]:
        try:
            answers = [self.answered.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self.answered.empty():
            answers.append(self.answered.get())
        ended = {answer.job for answer in answers}
        for worker in self.workers:
            if worker.job in ended:
                worker.job = None
        return answers

    def close(self) -> None:
        """Each worker saves a checkpoint and ends; a second Ctrl-C ends them at once."""
        for worker in self.workers:
            worker.stop()
        try:
            for worker in self.workers:
                worker.end()
        except KeyboardInterrupt:
            for worker in self.workers:
                if worker.process is not None:
                    worker.process.kill()
            raise
