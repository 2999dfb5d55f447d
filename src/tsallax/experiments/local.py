"""The executor of one machine: a process a core, pinned to it."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tsallax.experiments.jobs import Job
from tsallax.experiments.sweep import Answer, read_answer
from tsallax.training.folder import plain


class Worker:
    """One process, started when it has something to do."""

    def __init__(self, core: int, log: Path):
        self.core, self.log = core, log
        self.process: subprocess.Popen[str] | None = None
        self.job: Job | None = None

    def start(self, job: Job) -> None:
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
                    start_new_session=True,  # Ctrl-C is the sweep's, which tells its workers
                )
        assert self.process.stdin is not None
        self.job = job
        order = {"config": plain(asdict(job.config)), "path": str(job.path)}
        with contextlib.suppress(BrokenPipeError):  # seen as its end
            print(json.dumps(order), file=self.process.stdin)

    def answer(self) -> Answer:
        """Of the job under way; waits for it."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.job is not None
        job, self.job = self.job, None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            how = f"killed by signal {-code}" if code < 0 else f"ended with {code}"
            return Answer(job, "failed", f"its worker was {how}; see {self.log}")
        return read_answer(job, json.loads(line))

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self) -> None:
        """Wait for the process, which saves its checkpoint, and forget it."""
        if self.process is None:
            return
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.process = None


class Local:
    """Workers on the cores this process may use.

    Args:
        logs: the folder of their logs.
        workers: how many; one a core if left open.
    """

    def __init__(self, logs: Path, workers: int = 0):
        cores = sorted(os.sched_getaffinity(0))
        if workers > len(cores):
            raise ValueError(f"{workers} workers want as many cores; there are {len(cores)}")
        logs.mkdir(parents=True, exist_ok=True)
        chosen = cores[: workers or None]
        self.workers = [Worker(core, logs / f"worker-{core}.log") for core in chosen]
        self.slots = len(self.workers)

    def start(self, job: Job) -> None:
        next(worker for worker in self.workers if worker.job is None).start(job)

    def wait(self, seconds: float) -> list[Answer]:
        busy = [worker for worker in self.workers if worker.job is not None]
        with selectors.DefaultSelector() as selector:
            for worker in busy:
                assert worker.process is not None
                assert worker.process.stdout is not None
                selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            return [key.data.answer() for key, _ in selector.select(seconds)]

    def close(self) -> None:
        """Each worker saves what it has, and ends; if one cannot wait for that, at once."""
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
