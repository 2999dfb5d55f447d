"""The executor for one machine: one process per core, pinned to it."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from tsallax.experiments.jobs import Job
from tsallax.experiments.sweep import Answer, read_answer
from tsallax.storage.files import Directory
from tsallax.storage.run_folder import plain
from tsallax.training.config import to_json

BEAT = 5.0  # seconds between two heartbeats of a worker
SILENCE = 60.0  # seconds without a heartbeat after which a worker is killed
SENT = (-signal.SIGTERM, -9)  # signals from outside; 9 is SIGKILL, which Windows does not name


class Worker:
    """One process, started with its first job.

    It is killed if there is no heartbeat for `SILENCE`: its job has then failed, and is retried
    from its last checkpoint.
    """

    def __init__(self, core: int, logs: Directory):
        self.core, self.logs, self.name = core, logs, f"worker-{core}.log"
        self.silent = 0.0  # seconds
        self.process: subprocess.Popen[str] | None = None
        self.job: Job | None = None

    def start(self, job: Job, answered: "queue.SimpleQueue[Answer]") -> None:
        """Start a job; its answer is put into the queue."""
        if self.process is None or self.process.poll() is not None:
            self.end()
            command = [
                sys.executable,
                "-m",
                "tsallax.experiments.worker",
                str(self.core),
                str(BEAT),
            ]
            with self.logs.open_to_append(self.name) as log:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    bufsize=1,
                    start_new_session=True,  # Ctrl-C reaches only the sweep, which stops workers
                )
        assert self.process.stdin is not None
        self.job, self.silent = job, 0.0
        order = {"config": plain(to_json(job.config)), "path": str(job.path)}
        with contextlib.suppress(BrokenPipeError):  # detected when its output ends
            print(json.dumps(order), file=self.process.stdin)
        # A thread, because not every system can wait for several pipes at once.
        threading.Thread(target=lambda: answered.put(self._answer()), daemon=True).start()

    def _answer(self) -> Answer:
        """Wait for the answer to the current job, and return it."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert self.job is not None
        job = self.job
        for line in self.process.stdout:
            self.silent = 0.0
            if found := json.loads(line):  # an empty answer is a heartbeat
                return read_answer(job, found)
        code = self.process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        if self.silent > SILENCE:
            how = f"gave no sign of life for {SILENCE:g} s and was killed"
        lost = code in SENT and self.silent <= SILENCE
        why = f"its worker {how}; see {self.logs.path / self.name}"
        return Answer(job, "lost" if lost else "failed", why)

    def wait_longer(self, seconds: float) -> None:
        """Add `seconds` without a heartbeat; kill the process after too many."""
        self.silent += seconds
        if self.silent > SILENCE and self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self) -> None:
        """Wait for the process to save its checkpoint and end, if it is alive."""
        if self.process is None:
            return
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # or it would wait for another job if it has just finished
        while self.process.poll() is None:
            try:
                self.process.wait(1.0)
            except subprocess.TimeoutExpired:
                self.wait_longer(1.0)
        self.process.stdout.close()
        self.process = None


def usable_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Local:
    """Workers on the cores this process may use.

    Args:
        logs: the folder of their logs, which is closed with the executor.
        workers: number of workers; 0 for one per core.
    """

    def __init__(self, logs: Directory, workers: int = 0):
        cores = usable_cores()
        if workers > len(cores):
            raise ValueError(f"{workers} workers want as many cores; there are {len(cores)}")
        self.logs = logs
        self.workers = [Worker(core, logs) for core in cores[: workers or None]]
        self.slots = len(self.workers)
        self.answered: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    def start(self, job: Job) -> None:
        next(worker for worker in self.workers if worker.job is None).start(job, self.answered)

    def wait(self, seconds: float) -> list[Answer]:
        begin = time.monotonic()
        try:
            answers = [self.answered.get(timeout=seconds)]
        except queue.Empty:
            # At most twice the timeout: the sweep itself may have been suspended meanwhile.
            waited = min(time.monotonic() - begin, 2 * seconds)
            for worker in self.workers:
                if worker.job is not None:
                    worker.wait_longer(waited)
            return []
        while not self.answered.empty():
            answers.append(self.answered.get())
        ended = {answer.job for answer in answers}
        for worker in self.workers:
            if worker.job in ended:
                worker.job = None
        return answers

    def close(self) -> None:
        """End the workers, each of which saves a checkpoint; a second Ctrl-C ends them at once."""
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
        finally:
            self.logs.close()
