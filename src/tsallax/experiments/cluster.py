"""The executor for a Ray cluster: a job is a task. All nodes must share the folder of the runs.

Ray does not retry: a lost job is reported as lost, and the sweep starts it again from its last
checkpoint.
"""

import contextlib
import os
import time
from typing import Any

from tsallax.experiments.jobs import Job
from tsallax.experiments.sweep import Answer, read_answer
from tsallax.experiments.worker import work
from tsallax.spelling import install
from tsallax.storage.run_folder import plain
from tsallax.training.config import to_json

# Options of a cluster started here. It listens on loopback only, and has a small object store, as a
# job is one line of JSON.
OWN = {"address": "local", "object_store_memory": 100 << 20, "include_dashboard": False}
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # despite its name, also on Linux
# Ray would add 15: beside any other work on the machine, the tasks would get no time at all.
NICENESS = "RAY_worker_niceness", "0"
ONE_THREAD = {"NPROC": "1"}  # for XLA: one core per task, so results equal a local sweep's bitwise


class Ray:
    """Tasks on a cluster.

    Args:
        workers: most tasks at a time; by default one per CPU of the cluster.
        address: address of the cluster; by default one is started here and ended with the sweep.
        gpus: GPUs per task.
    """

    def __init__(self, workers: int = 0, address: str = "", gpus: float = 0.0):
        if not address:
            # Read when Ray is imported, and by its processes.
            os.environ.update(LOOPBACK)
            os.environ.setdefault(*NICENESS)
        try:
            import ray
        except ImportError:
            raise ValueError(f"Ray is not installed: {install('cluster')}") from None
        self.ray, self.most, self.gpus = ray, workers, gpus
        own: dict[str, Any] = {"address": address} if address else OWN
        ray.init(**own, log_to_driver=False)
        options = {"num_cpus": 1, "num_gpus": gpus, "max_retries": 0}
        environment = {} if gpus else {"env_vars": ONE_THREAD}
        self.task = ray.remote(**options, runtime_env=environment)(work)
        self.under_way: dict[Any, Job] = {}
        if not self.slots:
            want = f"a task of one CPU and {gpus:g} GPUs"
            if not address:
                ray.shutdown()
                raise ValueError(f"this machine has no room for {want}")
            print(f"the cluster has no room for {want} yet: waiting for a node that has")

    @property
    def slots(self) -> int:
        """The number of tasks that the cluster has room for now, as nodes may come and go."""
        if not self.ray.is_initialized():
            return 0
        there = self.ray.cluster_resources()
        room = there.get("CPU", 0)
        if self.gpus:
            room = min(room, there.get("GPU", 0) / self.gpus)
        return min(int(room), self.most or int(room))

    def start(self, job: Job) -> None:
        config = plain(to_json(job.config))
        self.under_way[self.task.remote(config, str(job.path.resolve()))] = job

    def wait(self, seconds: float) -> list[Answer]:
        if not self.under_way:
            time.sleep(seconds)
            return []
        ready, _ = self.ray.wait(list(self.under_way), timeout=seconds)
        return [self._answer(ref) for ref in ready]

    def _answer(self, ref: Any) -> Answer:
        job = self.under_way.pop(ref)
        try:
            found = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            own = self.ray.exceptions.RayTaskError, self.ray.exceptions.OutOfMemoryError
            end = "failed" if isinstance(error, own) else "lost"
            return Answer(job, end, f"{type(error).__name__}: {str(error).splitlines()[0]}")
        return read_answer(job, found)

    def close(self) -> None:
        """End the tasks, each of which saves a checkpoint, and a cluster that was started here."""
        for ref in self.under_way:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.cancel(ref, force=False)
        if self.under_way:
            refs = list(self.under_way)
            with contextlib.suppress(KeyboardInterrupt):  # stop waiting
                self.ray.wait(refs, num_returns=len(refs), timeout=None)
        self.ray.shutdown()
