"""`retry_failed`: of a finished job, the rows that failed are done again, and no others.

A retry unit is a unit of the job with what it left before in its `source`; its worker does the failed rows of that unit
again and returns these rows, and counts, totals and sums as what they change. They are added to the manifest's, and the rows
take the place of those with the same key. Killed on the way, a retry goes on where it was.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from trust import tables
from trust.runs import Manifest, Run
from trust.storage import Storage, join
from trust.units import Unit, UnitStore

_KEY = "retry"
_MARK = "-retry"


def retry_units(units: list[Unit], store: UnitStore, run: Run, manifest: Manifest) -> list[Unit]:
    """A unit for each of `units` that still has failed rows, in the job's next round of retries."""
    done = manifest.retries
    finished = store.finished()
    names = [unit.name for unit in units]
    failed: Counter[str] = Counter()
    for number in range(done + 1):
        there = {_name(name, number): name for name in names if _name(name, number) in finished}
        for receipt in store.receipts(list(there)):
            failed[there[receipt.unit]] += receipt.counts.get("failed", 0)
    before = {table: [run.path(part["path"]) for part in parts] for table, parts in manifest.tables.items()}
    return [
        replace(unit, name=_name(unit.name, done + 1), source=unit.source | {_KEY: before})
        for unit in units
        if failed[unit.name]
    ]


def failed_before(unit: Unit, storage: Storage, table: str, sample_ids: Iterable[str]) -> list[dict[str, Any]] | None:
    """The rows of `table` that a retry unit is to do again, as they failed; None where the unit is not a retry."""
    if _KEY not in unit.source:
        return None
    wanted = tables.of_samples(sample_ids) & (pc.field("status") == "failed")
    found = [storage.read_table(path, filters=wanted) for path in unit.source[_KEY].get(table, [])]
    return [row for content in found for row in tables.to_rows(content)]


def retry_round(unit: Unit) -> int:
    """The round of retries that a unit belongs to, from 1; 0 where it is none."""
    return int(unit.name.rpartition(_MARK)[2]) if _KEY in unit.source else 0


def changed(new: dict[str, int], old: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How outcome counts change when rows with the counts `new` take the place of the rows `old`."""
    counts = Counter(new)
    counts.subtract(row["status"] for row in old)
    return dict(counts)


def replace_rows(
    run: Run, table: str, parts: list[dict[str, Any]], new: list[dict[str, Any]], mark: str
) -> list[dict[str, Any]]:
    """The parts of `table` without the rows whose keys stand in the parts `new`, and the new ones.

    Args:
        parts, new: as in a manifest, paths relative to the run.
        mark: goes into the names of the parts that are written anew.
    """
    import ray

    task = ray.remote(num_cpus=1)(_without)
    others = [run.path(part["path"]) for part in new]
    kept = [task.remote(run.storage, run.root, table, part, others, mark) for part in parts]
    return [part for reference in kept if (part := ray.get(reference))["rows"]] + new


def _without(
    storage: Storage, root: str, table: str, part: dict[str, Any], others: list[str], mark: str
) -> dict[str, Any]:
    """`part`, or a new one without the keys of `others` where it holds any of them."""
    keys = tables.SORT_KEYS[table]
    content = storage.read_table(join(root, part["path"]))
    gone = pa.concat_tables([storage.read_table(path, columns=keys) for path in others])
    index = pa.array(range(content.num_rows), pa.int64())
    kept = content.select(keys).append_column("row", index).join(gone, keys, join_type="left anti")
    if kept.num_rows == content.num_rows:
        return part
    left = content.take(kept["row"].combine_chunks().sort())
    path = f"{part['path'].removesuffix('.parquet')}-{mark}.parquet"
    return {"path": path, "rows": left.num_rows, "bytes": storage.write_table(join(root, path), left)}


def _name(unit: str, number: int) -> str:
    return f"{unit}{_MARK}{number}" if number else unit
