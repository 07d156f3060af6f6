"""From many small unit parts to a table's final parts: merged to a sensible size, repeated keys resolved.

Runs as Ray tasks when all units are done; only names, sizes and counts pass through the driver.
"""

from typing import Any

import pyarrow as pa

from trust import tables
from trust.runs import Run
from trust.storage import Storage, join
from trust.units import UnitStore

TARGET_BYTES = 64 * 2**20  # compressed; merging takes about ten times as much memory
BUCKET_ROWS = 4_000_000  # keys that one task compares


def compact(
    job: str,
    run: Run,
    store: UnitStore,
    parts: dict[str, list[dict[str, Any]]],
    unique: tuple[str, ...],
    compat: str,
    mark: str = "",
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """Merges the units' parts of every table into final parts.

    Args:
        parts: table -> the units' parts (name, rows, bytes), in unit order.
        unique: tables in which a key may stand only once over all parts.
        mark: goes into the names of the final parts.

    Returns:
        Table -> final parts (path relative to the run, rows, bytes), and how outcome counts changed.
    """
    import ray

    task = ray.remote(num_cpus=1)(_merge)
    tag = store.folder.rsplit("/", 1)[-1][:12] + mark
    pending = []
    for table in sorted(parts):
        repeats = _repeats(run.storage, store, table, parts[table]) if table in unique else []
        for index, group in enumerate(_groups(parts[table])):
            names = [store.path(part["name"]) for part in group]
            out = f"{job}-{tag}-{index:05d}"
            pending.append((table, task.remote(run.storage, table, names, run.root, out, job, compat, *repeats)))
    made: dict[str, list[dict[str, Any]]] = {}
    moved = {"ok": 0, "failed": 0}
    for table, reference in pending:
        part, out_of_it = ray.get(reference)
        if part["rows"]:
            made.setdefault(table, []).append(part)
        if out_of_it["rows"]:
            made.setdefault("failed", []).append(out_of_it)
            moved["failed"] += out_of_it["rows"]
            moved["ok"] -= out_of_it["rows"]
    return made, moved


def _groups(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Runs of neighbouring parts of about `TARGET_BYTES` together."""
    groups: list[list[dict[str, Any]]] = []
    size = TARGET_BYTES
    for part in parts:
        if size + part["bytes"] > TARGET_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += part["bytes"]
    return groups


def _repeats(storage: Storage, store: UnitStore, table: str, parts: list[dict[str, Any]]) -> list[Any]:
    """References to what is to be done with rows whose key stands more than once, one a bucket of the key space."""
    import ray

    from trust.prepare.duplicates import find_repeats

    buckets = -(-sum(part["rows"] for part in parts) // BUCKET_ROWS)
    task = ray.remote(num_cpus=1)(find_repeats)
    paths = ray.put([store.path(part["name"]) for part in parts])
    return [task.remote(paths, storage, table, bucket, buckets) for bucket in range(buckets)]


def _merge(
    storage: Storage, table: str, paths: list[str], root: str, out: str, job: str, compat: str, *repeats: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The final part of `table`, and one of `failed` with the rows that were taken out for their keys."""
    from trust.prepare.duplicates import resolve

    found, late = [], []
    for path in paths:
        content = storage.read_table(path)
        if todo := [repeat for bucket in repeats for repeat in bucket.get(path, ())]:
            content, rows = resolve(content, table, todo, job, compat)
            late += rows
        found.append(content)
    merged = tables.sort(table, pa.concat_tables(found).replace_schema_metadata(None))
    if table == "verdicts":  # units that share a sample may share its verdicts
        merged = tables.unrepeated(table, merged)
    return (
        _write(storage, merged, root, join(table, f"{out}.parquet")),
        _write(storage, tables.to_table("failed", late), root, join("failed", f"{out}-{table}.parquet")),
    )


def _write(storage: Storage, content: pa.Table, root: str, path: str) -> dict[str, Any]:
    """The part as a manifest names it; without rows nothing is written."""
    size = storage.write_table(join(root, path), content) if content.num_rows else 0
    return {"path": path, "rows": content.num_rows, "bytes": size}
