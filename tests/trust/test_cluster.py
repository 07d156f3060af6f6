"""Preflight spells the sum out where the cluster is too small, and only there."""

import pytest

from trust import cluster
from trust.config import ClusterConfig
from trust.errors import PreflightError


@pytest.mark.usefixtures("ray_session")
class TestPreflight:
    def test_what_fits_passes(self) -> None:
        cluster.preflight(ClusterConfig(), cpus=1, gpus=0)

    def test_too_many_cpus_an_actor(self) -> None:
        with pytest.raises(PreflightError, match=r"1 actors of 1000 CPU each need 1000 CPU.*room for 0.*cannot grow"):
            cluster.preflight(ClusterConfig(), cpus=1000, gpus=0)

    def test_too_many_actors(self) -> None:
        with pytest.raises(PreflightError, match=r"cluster\.min_actors=5000 actors of 1 CPU"):
            cluster.preflight(ClusterConfig(min_actors=5000, max_actors=5000), cpus=1, gpus=0)

    def test_gpus_where_there_are_none(self) -> None:
        if cluster.offers_gpu():
            pytest.skip("this machine has a GPU")
        with pytest.raises(PreflightError, match="of 8 GPU each"):
            cluster.preflight(ClusterConfig(), cpus=1, gpus=8)

    def test_a_cluster_that_can_grow_is_not_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cluster, "_can_grow", lambda kind, each: kind == "GPU")
        cluster.preflight(ClusterConfig(), cpus=1, gpus=8)

    def test_cpus_of_a_node_are_shared_among_its_actors(self) -> None:
        one = cluster.node_cpus(ClusterConfig())
        assert one >= 1
        assert cluster.node_cpus(ClusterConfig(max_actors=1000)) == 1


def test_an_address_where_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: (_ for _ in ()).throw(ConnectionError("no")))
    with pytest.raises(PreflightError, match=r"cluster\.address=10\.0\.0\.1:6379: no Ray cluster answers"):
        cluster.connect(ClusterConfig(address="10.0.0.1:6379"))
