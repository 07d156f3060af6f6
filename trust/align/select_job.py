"""The most severe share of the table `errors`, over its parts, in tasks; only counts pass through the driver."""

from functools import partial
from typing import Any

import numpy as np
import pyarrow.compute as pc

from trust.align import select
from trust.config import ClusterConfig
from trust.prepare.job import on_cluster
from trust.storage import Storage

CLASSES = {"answerable": True, "unanswerable": False}
_COLUMNS = ["sample_id", "model", "prompt", "draw", "severity"]


def with_error() -> pc.Expression:
    """A filter for rows that have an error."""
    return (pc.field("status") == "ok") & (pc.field("severity") > 0)


def select_most_severe(
    parts: list[str], keep: float, storage: Storage, cluster: ClusterConfig
) -> dict[str, dict[str, Any]]:
    """For answerable and for unanswerable questions, which responses are the most severe share `keep` of those with an error.

    Args:
        parts: of the table errors, full paths.

    Returns:
        `answerable` and `unanswerable` -> `with_error` (rows), `kept` (rows), `last` (hex of the key of the last one that is
        kept; None without any).
    """

    def over_parts(function: Any, answerable: bool, prefix: bytes) -> Any:
        tasks = ((storage, path, answerable, prefix) for path in parts)
        return on_cluster(cluster, cluster.actor_cpus or 1, function, tasks)

    def count(answerable: bool, prefix: bytes) -> np.ndarray:
        total = np.zeros(select.DIGITS, np.int64)
        for found in over_parts(count_part, answerable, prefix):
            total += found
        return total

    def collect(answerable: bool, prefix: bytes) -> list[bytes]:
        return [key for found in over_parts(collect_part, answerable, prefix) for key in found]

    made = {}
    for name, answerable in CLASSES.items():
        rows = int(count(answerable, b"").sum())
        kept = select.size(rows, keep)
        last = select.kth(kept, partial(count, answerable), partial(collect, answerable)).hex() if kept else None
        made[name] = {"with_error": rows, "kept": kept, "last": last}
    return made


def count_part(storage: Storage, path: str, answerable: bool, prefix: bytes) -> np.ndarray:
    """trust.align.select.count over the responses of a part that have an error."""
    return select.count(_keys(storage, path, answerable), prefix)


def collect_part(storage: Storage, path: str, answerable: bool, prefix: bytes) -> list[bytes]:
    """trust.align.select.collect over the same."""
    return select.collect(_keys(storage, path, answerable), prefix)


def _keys(storage: Storage, path: str, answerable: bool) -> np.ndarray:
    found = storage.read_table(path, _COLUMNS, with_error() & (pc.field("answerable") == answerable))
    *key, severities = (found[column].to_pylist() for column in _COLUMNS)
    return select.keys(severities, list(zip(*key, strict=True)))
