"""Clusters of vectors: as published UMAP to two dimensions, then DBSCAN on the projection; or HDBSCAN on the vectors.

UMAP follows the last digits of its input: with vectors that differ by 1e-7, because their questions were embedded in
other batches, 48 questions fell into 7 clusters instead of 9. So questions are embedded one at a time (conf/curate.yaml)
and clustered by one thread, unless told otherwise. HDBSCAN measures the distance of every two rows, one after the other.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from trust.config import one_of
from trust.errors import ConfigError

METHODS = ("umap_dbscan", "hdbscan", "skip")
NOISE = -1


@dataclass(frozen=True)
class ClusteringOptions:
    """How questions are clustered.

    Attributes:
        method: `umap_dbscan` as published, `hdbscan` on the embeddings, or `skip`: no clusters and no ratings.
        neighbors, min_dist: of UMAP (its own defaults; published code gives none).
        eps, min_samples: of DBSCAN. Published: 0.3 and 20 for ASQA, 0.2 and 50 for QAMPARI. HDBSCAN takes min_samples too.
        min_cluster_size: of HDBSCAN.
        noise: what lies in no cluster is dropped (`drop`, as published), or is kept as a cluster of its own, number -1 (`keep`).
        seed: of UMAP.
    """

    method: str = "umap_dbscan"
    neighbors: int = 15
    min_dist: float = 0.1
    eps: float = 0.3
    min_samples: int = 20
    min_cluster_size: int = 20
    noise: str = "drop"
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("clustering.method", self.method, METHODS)
        one_of("clustering.noise", self.noise, ("drop", "keep"))
        for key, least in (("neighbors", 2), ("min_samples", 1), ("min_cluster_size", 2)):
            if (value := getattr(self, key)) < least:
                raise ConfigError(f"clustering.{key}={value}: must be at least {least}")
        if not self.eps > 0:
            raise ConfigError(f"clustering.eps={self.eps:g}: a distance above 0")
        if not 0 <= self.min_dist <= 1:
            raise ConfigError(f"clustering.min_dist={self.min_dist:g}: a distance from 0 to 1")


def cluster(vectors: np.ndarray, options: ClusteringOptions) -> tuple[np.ndarray, np.ndarray]:
    """Cluster numbers, and where each row lies in two dimensions.

    Args:
        vectors: float32, shape (rows, width), of length 1, in an order that does not change.

    Returns:
        Labels, int64, shape (rows,): 0 is the largest cluster, -1 what is in none; places, float64, shape (rows, 2): the
        projection that was clustered, or for HDBSCAN, which needs none, the two main components.
    """
    from sklearn.cluster import DBSCAN, HDBSCAN

    if options.method == "umap_dbscan":
        places = project(vectors, options)
        found = DBSCAN(eps=options.eps, min_samples=options.min_samples).fit_predict(places) if len(places) else []
    else:
        places = _main_components(vectors)
        enough = len(vectors) >= max(options.min_cluster_size, options.min_samples)
        settings = {"min_cluster_size": options.min_cluster_size, "min_samples": options.min_samples, "copy": True}
        found = HDBSCAN(**settings).fit_predict(vectors) if enough else [NOISE] * len(vectors)
    return by_size(np.asarray(found, np.int64)), places


def project(vectors: np.ndarray, options: ClusteringOptions) -> np.ndarray:
    """UMAP's projection by cosine, float64, shape (rows, 2)."""
    if len(vectors) < 4:  # too few for UMAP, and for a cluster that says anything
        return _main_components(vectors)
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread, and few rows few neighbours
        made = umap.UMAP(
            n_neighbors=min(options.neighbors, len(vectors) - 1),
            min_dist=options.min_dist,
            n_components=2,
            metric="cosine",
            random_state=options.seed,
            init="spectral" if len(vectors) > 10 else "random",
        ).fit_transform(vectors)
    return np.asarray(made, np.float64)


def by_size(labels: np.ndarray) -> np.ndarray:
    """The labels numbered anew: 0 for the largest cluster, of equal ones for that of the first row; noise stays -1.

    Every label from 0 on is a cluster, whether or not there is noise (pitfalls.md B76).
    """
    names, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = sorted((-size, at, name) for name, at, size in zip(names, first, sizes, strict=True) if name != NOISE)
    made = np.full(len(labels), NOISE, np.int64)
    for number, (_, _, name) in enumerate(order):
        made[labels == name] = number
    return made


def _main_components(vectors: np.ndarray) -> np.ndarray:
    """The two main components, each with its largest entry positive, so that there is one answer."""
    made = np.zeros((len(vectors), 2))
    if len(vectors) < 2:
        return made
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    for column, axis in enumerate(axes.T[::-1][:2]):
        made[:, column] = centred @ (axis * np.sign(axis[np.abs(axis).argmax()]))
    return made
