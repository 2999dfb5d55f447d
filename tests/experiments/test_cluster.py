"""The sweep on a real Ray cluster of two nodes: the bits of a local one, whatever is killed."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.faults.processes import environment
from support.faults.sweeps import newest, task_workers
from support.studies import STUDY
from tsallax.experiments import results, sweep
from tsallax.experiments.cluster import Ray
from tsallax.experiments.jobs import make_jobs
from tsallax.experiments.local import Local
from tsallax.experiments.study import parse, settings
from tsallax.storage.files import Directory, open_below

# Ray starts its processes by fork, where an earlier test may have started jax's threads.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # its warning of a change to come
LONG = STUDY.replace("[1.5, 3]", "[0.5, 1.5, 3, 4]").replace(
    "steps = 320", "steps = 100_000\nsave_seconds = 0.3"
)


@pytest.fixture
def cluster():
    """Two nodes of one CPU each, on the loopback."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=node)
    found.second = found.add_node(num_cpus=1, object_store_memory=80 << 20)
    yield found
    found.shutdown()


def carry_out(text: str, folder: Path, executor) -> tuple[dict[str, bytes], int]:
    """The files that must not depend on who ran it, and how often a job was lost."""
    study, lost = parse(text, "small"), []
    jobs = make_jobs(settings(study), folder / "runs", width=1)
    state = sweep.run(jobs, executor, say=lost.append)
    assert (len(state.done), state.failed) == (len(jobs), {})
    with Directory(folder) as opened:
        results.collect(study, settings(study), jobs, opened)
    names = ("metrics.csv", "weights.safetensors")
    found = {f"{j.path.name}/{n}": (j.path / n).read_bytes() for j in jobs for n in names}
    return {**found, "table": (folder / "metrics.csv").read_bytes()}, len(lost)


@pytest.mark.slow
def test_the_same_bits_as_a_local_sweep(cluster, tmp_path):
    local, _ = carry_out(STUDY, tmp_path / "local", Local(open_below(tmp_path, "logs")))
    distributed, _ = carry_out(STUDY, tmp_path / "ray", Ray(address=cluster.address))
    assert distributed == local


def test_without_ray_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'tsallax\[cluster\]'"):
        Ray()


OWN_CLUSTER = """
import json, os
from support.faults.sweeps import listening
from tsallax.experiments.cluster import Ray

executor = Ray(workers=1)
try:
    places = sorted(listening())
    niceness = executor.ray.get(executor.ray.remote(lambda: os.nice(0)).remote())
finally:
    executor.close()
print(json.dumps([places, niceness]))
"""


@pytest.mark.slow
def test_ones_own_cluster_listens_here_only_and_has_the_priority_of_the_sweep(tmp_path):
    """Ray adds 15 to the niceness: beside any other work the tasks would get no time.

    In a process of its own, as Ray reads where to listen when it is imported.
    """
    script = [sys.executable, "-c", OWN_CLUSTER]
    done = subprocess.run(script, stdout=subprocess.PIPE, env=environment(tmp_path), check=True)
    places, niceness = json.loads(done.stdout.splitlines()[-1])
    assert places
    assert [place for place in places if not place.startswith("127.")] == []
    assert niceness == os.nice(0)


@pytest.mark.slow
def test_killed_workers_and_a_killed_node_lose_and_double_nothing(cluster, tmp_path):
    wanted, _ = carry_out(LONG, tmp_path / "local", Local(open_below(tmp_path, "logs")))
    draw, kills, over = random.Random(0), [], threading.Event()

    def meddle() -> None:
        """Kill a worker at some moment after each checkpoint, however fast the machine is."""
        while len(kills) < 20 and not over.wait(0.02):
            if newest(tmp_path / "ray") <= (kills[-1] if kills else 0):
                continue
            time.sleep(draw.uniform(0, 0.5))
            if workers := task_workers():
                os.kill(draw.choice(workers), signal.SIGKILL)
                kills.append(time.time_ns())
            if len(kills) == 8 and cluster.second is not None:
                cluster.remove_node(cluster.second, allow_graceful=False)
                cluster.second = None  # the first goes on alone

    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        found, lost = carry_out(LONG, tmp_path / "ray", Ray(address=cluster.address))
    finally:
        over.set()
        thread.join()
    assert found == wanted
    assert len(kills) == 20
    assert cluster.second is None
    assert lost >= 20
