"""From many small unit parts to a table's final parts: merged to a sensible size, repeated keys resolved.

Runs as Ray tasks when all units are done; only names, sizes and counts pass through the driver.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trust import tables
from trust.storage import Storage, join

if TYPE_CHECKING:
    from trust.runs import Run
    from trust.units import UnitStore

TARGET_BYTES = 128 * 2**20
BUCKET_ROWS = 4_000_000  # keys that one task compares


def compact(
    job: str,
    run: "Run",
    store: "UnitStore",
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
    made: dict[str, list[dict[str, Any]]] = {}
    moved = {"ok": 0, "failed": 0}
    late: list[dict[str, Any]] = []
    for table in sorted(parts):
        if table == "failed":
            continue
        paths = [store.path(part["name"]) for part in parts[table]]
        actions = _repeats(run.storage, paths, table, sum(p["rows"] for p in parts[table])) if table in unique else {}
        pending = []
        for index, group in enumerate(_groups(parts[table])):
            names = [store.path(part["name"]) for part in group]
            todo = {name: actions[name] for name in names if name in actions}
            out = join(table, f"{job}-{tag}-{index:05d}.parquet")
            pending.append(task.remote(run.storage, table, names, todo, run.root, out, job, compat))
        for reference in pending:
            part, failed = ray.get(reference)
            made.setdefault(table, []).append(part)
            late.extend(failed)
    names = [store.path(part["name"]) for part in parts.get("failed", [])]
    if names or late:
        out = join("failed", f"{job}-{tag}-00000.parquet")
        made["failed"] = [
            ray.get(ray.remote(num_cpus=1)(_merge_failed).remote(run.storage, names, late, run.root, out))
        ]
    moved["failed"] += len(late)
    moved["ok"] -= len(late)
    return {table: [p for p in made[table] if p["rows"]] for table in made}, moved


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


def _repeats(storage: Storage, paths: list[str], table: str, rows: int) -> dict[str, Any]:
    """Part -> what to do with rows whose key stands more than once, found bucket by bucket of the key space."""
    import ray

    from trust.prepare.duplicates import find_repeats

    buckets = -(-rows // BUCKET_ROWS)
    task = ray.remote(num_cpus=1)(find_repeats)
    actions: dict[str, Any] = {}
    for bucket in range(buckets):
        for part, found in ray.get(task.remote(paths, storage, table, bucket, buckets)).items():
            actions.setdefault(part, []).extend(found)
    return actions


def _merge(
    storage: Storage, table: str, paths: list[str], actions: dict[str, Any], root: str, out: str, job: str, compat: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    found, failed = [], []
    for path in paths:
        content = storage.read_table(path)
        if path in actions:
            from trust.prepare.duplicates import resolve

            content, rows = resolve(content, table, actions[path], job, compat)
            failed.extend(rows)
        found.append(content)
    merged = tables.sort(table, pa.concat_tables(found))
    size = storage.write_table(join(root, out), merged)
    return {"path": out, "rows": merged.num_rows, "bytes": size}, failed


def _merge_failed(
    storage: Storage, paths: list[str], late: list[dict[str, Any]], root: str, out: str
) -> dict[str, Any]:
    found = [storage.read_table(path) for path in paths]
    merged = tables.sort("failed", pa.concat_tables([*found, tables.to_table("failed", late)]))
    size = storage.write_table(join(root, out), merged)
    return {"path": out, "rows": merged.num_rows, "bytes": size}
