"""The sweep on a real Ray cluster of two nodes: the bits of a local one, whatever is killed."""

import os

import pytest

from support.faults import sweeps
from support.faults.sweeps import LONG, Meddler, carry_out, task_workers
from support.studies import STUDY
from tsallax.experiments.cluster import Ray
from tsallax.experiments.local import Local
from tsallax.storage.files import open_below

# Ray starts its processes by fork, where an earlier test may have started jax's threads.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # its warning of a change to come


@pytest.fixture
def cluster():
    """Two nodes of one CPU each, on the loopback."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    found = Cluster(initialize_head=True, head_node_args=node)
    found.second = found.add_node(num_cpus=1, object_store_memory=80 << 20)
    yield found
    found.shutdown()


@pytest.mark.slow
def test_the_same_bits_as_a_local_sweep(cluster, tmp_path):
    local, _ = carry_out(STUDY, tmp_path / "local", Local(open_below(tmp_path, "logs")))
    distributed, _ = carry_out(STUDY, tmp_path / "ray", Ray(address=cluster.address))
    assert distributed == local


def test_without_ray_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'tsallax\[cluster\]'"):
        Ray()


@pytest.mark.slow
def test_killed_workers_and_a_killed_node_lose_and_double_nothing(cluster, tmp_path):
    wanted, _ = carry_out(LONG, tmp_path / "local", Local(open_below(tmp_path, "logs")))

    def remove_second() -> None:
        cluster.remove_node(cluster.second, allow_graceful=False)
        cluster.second = None  # the first goes on alone

    with Meddler(tmp_path / "ray", 20, task_workers, after={8: remove_second}) as meddler:
        found, lost = carry_out(LONG, tmp_path / "ray", Ray(address=cluster.address))
    assert found == wanted
    assert len(meddler.faults) == 20
    assert cluster.second is None
    assert lost >= 20


@pytest.mark.slow
def test_a_cluster_of_our_own_is_on_the_loopback_and_outlives_its_workers(tmp_path):
    """SIGKILL to four of them; every port on which Ray listens is at 127.0.0.1."""
    assert sweeps.on_ray(4, tmp_path).endswith("all on the loopback")
