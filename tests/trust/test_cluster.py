"""Preflight spells the sum out where the cluster is too small, and only there; it asks an autoscaler before it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nodes import Nodes
from trust import cluster
from trust.config import ClusterConfig
from trust.errors import PreflightError


@pytest.mark.usefixtures("ray_session")
class TestPreflight:
    def test_what_fits_passes(self) -> None:
        cluster.preflight(ClusterConfig(), cpus=1, gpus=0)

    def test_too_many_cpus_an_actor(self) -> None:
        with pytest.raises(PreflightError, match=r"1 actors of 1000 CPU each need 1000 CPU.*room for 0.*none is being"):
            cluster.preflight(ClusterConfig(), cpus=1000, gpus=0)

    def test_too_many_actors(self) -> None:
        with pytest.raises(PreflightError, match=r"cluster\.min_actors=5000 actors of 1 CPU each need 5000 CPU"):
            cluster.preflight(ClusterConfig(min_actors=5000, max_actors=5000), cpus=1, gpus=0)

    def test_more_gpus_than_there_are(self) -> None:
        with pytest.raises(PreflightError, match=r"of 1 CPU and 1000 GPU each.*nodes have \d+ CPU and \d+ GPU"):
            cluster.preflight(ClusterConfig(), cpus=1, gpus=1000)

    def test_cpus_of_a_node_are_shared_among_its_actors(self) -> None:
        one = cluster.node_cpus(ClusterConfig())
        assert one >= 1
        assert cluster.node_cpus(ClusterConfig(max_actors=1000)) == 1


def test_an_address_where_nothing_listens_is_refused_at_once(repo: Path) -> None:
    code = "from trust import cluster; from trust.config import ClusterConfig\n"
    code += "cluster.connect(ClusterConfig(address='127.0.0.1:9'))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo, capture_output=True, text=True, timeout=60, check=False
    )
    assert "cluster.address=127.0.0.1:9: no Ray cluster answers there" in done.stderr


GROWING = """
import json, sys
from dataclasses import replace
from pathlib import Path
import ray
from tests.trust.test_execute import make
from trust import cluster
from trust.config import ClusterConfig
from trust.errors import PreflightError
from trust.execute import execute

cluster.AUTOSCALER_S = 10.0
plan, run, config = make(Path(sys.argv[1]), units=2)
cluster.connect(config.cluster)
nodes = len(ray.nodes())
try:
    cluster.preflight(ClusterConfig(), cpus=1, gpus=2)
except PreflightError as error:
    refused = str(error)
counts = execute(replace(plan, gpus=1), run, config).counts
print(json.dumps({"refused": refused, "before": nodes, "after": len(ray.nodes()), "counts": counts}))
"""


@pytest.mark.parametrize(
    "version", ["0", pytest.param("1", marks=pytest.mark.slow)], ids=["autoscaler_1", "autoscaler_2"]
)
def test_a_cluster_that_can_grow_is_refused_only_what_it_never_holds(tmp_path: Path, repo: Path, version: str) -> None:
    nodes = Nodes(env={"RAY_enable_autoscaler_v2": version}, grows_by={"CPU": 1, "GPU": 1})
    try:
        done = subprocess.run(
            [sys.executable, "-c", GROWING, str(tmp_path)],
            cwd=repo,
            env=nodes.env | {"RAY_ADDRESS": nodes.address},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        nodes.close()
    told = json.loads(done.stdout.splitlines()[-1])
    assert "1 actors of 1 CPU and 2 GPU each need 1 CPU and 2 GPU" in told["refused"]
    assert "this cluster's nodes have 1 CPU and 0 GPU, which is room for 0, and none is being added" in told["refused"]
    assert told["counts"] == {"ok": 20}
    assert (told["before"], told["after"]) == (1, 2)
