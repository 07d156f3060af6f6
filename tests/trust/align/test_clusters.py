"""Clusters of hand-made vectors."""

import numpy as np
import pytest

from trust.align.clusters import ClusteringOptions, by_size, cluster
from trust.errors import ConfigError


def groups(sizes: list[int], spread: float = 0.02, width: int = 8) -> np.ndarray:
    """Vectors of length 1 around one axis each, group after group."""
    random = np.random.default_rng(0)
    made = np.concatenate([np.eye(width)[n] + random.normal(0, spread, (size, width)) for n, size in enumerate(sizes)])
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_every_label_is_a_cluster_whether_or_not_there_is_noise() -> None:
    # pitfalls.md B76: with no -1 the last cluster was lost.
    assert by_size(np.array([0, 0, 1, 1, 2])).tolist() == [0, 0, 1, 1, 2]
    assert by_size(np.array([-1, 0, 1, 1, -1])).tolist() == [-1, 1, 0, 0, -1]
    assert by_size(np.array([], np.int64)).tolist() == []


def test_hdbscan_finds_groups() -> None:
    options = ClusteringOptions(method="hdbscan", min_samples=3, min_cluster_size=5)
    labels, places = cluster(groups([10, 20, 7]), options)
    assert labels.tolist() == [1] * 10 + [0] * 20 + [2] * 7
    assert places.shape == (37, 2)


def test_umap_and_dbscan_find_groups_and_are_seeded() -> None:
    vectors = groups([30, 40, 20])
    options = ClusteringOptions(min_samples=5, eps=1.0, neighbors=10)
    labels, places = cluster(vectors, options)
    assert labels.tolist() == [1] * 30 + [0] * 40 + [2] * 20
    again, same = cluster(vectors, options)
    assert (labels == again).all()
    assert (places == same).all()


@pytest.mark.parametrize("method", ["umap_dbscan", "hdbscan"])
@pytest.mark.parametrize("rows", [0, 1, 3, 6])
def test_few_rows_are_noise(method: str, rows: int) -> None:
    labels, places = cluster(groups([rows]), ClusteringOptions(method=method))
    assert labels.tolist() == [-1] * rows
    assert places.shape == (rows, 2)
    assert np.isfinite(places).all()


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"clustering\.method=kmeans: unknown value"):
        ClusteringOptions(method="kmeans")
    with pytest.raises(ConfigError, match=r"clustering\.eps=0: a distance above 0"):
        ClusteringOptions(eps=0)
    with pytest.raises(ConfigError, match=r"clustering\.neighbors=1: must be at least 2"):
        ClusteringOptions(neighbors=1)
