"""Work units, receipts and manifests: how a job shards, writes and resumes.

A unit's tables are written to `{run}/_units/{job}/{fingerprint}/`, last its receipt. When no unit is missing, the parts
are compacted into the tables' own folders and `{run}/manifests/{job}.json` is written. Readers take only what a manifest
names, so a killed job never leaves a table that looks whole; started again, it does the units without a receipt.
"""

import contextlib
import importlib
import io
import json
import logging
import platform
import posixpath
import threading
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from trust import tables
from trust.errors import JobStopped, PreflightError, StorageError, TrustError
from trust.storage import Storage, join

log = logging.getLogger("trust")

UNITS = 200  # of a job, as long as they stay small
IDENTITY = "identity"


@dataclass(frozen=True)
class Unit:
    """A part of a job's input that is worked on and written as a whole.

    Attributes:
        name: unique in the job, made of input part and row range; letters, digits, `-` and `_` only.
        source: what the worker needs to read its rows (plain JSON types).
        rows: how many rows it holds.
    """

    name: str
    source: dict[str, Any]
    rows: int


@dataclass
class UnitResult:
    """What a worker made of a unit.

    Attributes:
        tables: table name -> Arrow table by the schema of that name.
        counts: outcome -> rows (`ok`, `failed`, `scored`, `na`, ...), summed over units into the manifest.
        totals: other additive numbers (tokens, seconds, asks), summed over units into the manifest.
        sums: name -> int64 array, added over all units at the end (for intervals).
    """

    tables: dict[str, pa.Table]
    counts: dict[str, int] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    sums: dict[str, np.ndarray] = field(default_factory=dict)


class Worker(Protocol):
    """Lives in an actor; works on several units at once on one event loop. Built from plain config in the actor."""

    async def work(self, unit: Unit) -> UnitResult: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Receipt:
    """The commit mark of a unit.

    Attributes:
        parts: table -> {name, rows, bytes} of the unit's Parquet object, empty tables left out.
        sums: bytes of the unit's `.npz` of sums; 0 where it has none.
    """

    unit: str
    rows: int
    counts: dict[str, int]
    totals: dict[str, float]
    parts: dict[str, dict[str, Any]]
    sums: int


class UnitStore:
    """Where one job's units of one fingerprint lie."""

    def __init__(self, storage: Storage, run_root: str, job: str, fingerprint: str) -> None:
        self.storage = storage
        self.folder = join(run_root, "_units", job, fingerprint)

    def path(self, name: str) -> str:
        return join(self.folder, name)

    def finished(self) -> set[str]:
        """Names of the units that have a receipt."""
        return {name.removesuffix(".json") for name in self.storage.list_names(self.folder) if name.endswith(".json")}

    def whole(self) -> set[str]:
        """Names of the units that have a receipt and files beside it: of a finished job receipts alone are kept."""
        files = Counter(name.split(".")[0] for name in self.storage.list_names(self.folder))
        return {name for name in self.finished() if files[name] > 1}

    def keep_identity(self, identity: dict[str, Any]) -> None:
        """Writes down what the fingerprint stands for, so that another config can be told what differs."""
        self.storage.write_bytes(self.path(IDENTITY), json.dumps(identity).encode())

    def identity(self) -> dict[str, Any]:
        """What the fingerprint stands for; empty where it was never written down."""
        try:
            return dict(json.loads(self.storage.read_bytes(self.path(IDENTITY))))
        except FileNotFoundError:
            return {}

    def write(self, unit: Unit, result: UnitResult) -> Receipt:
        """Writes the unit's parts, then its sums, last its receipt."""
        parts = {}
        for table, content in result.tables.items():
            if content.num_rows:
                name = f"{unit.name}.{table}.parquet"
                size = self.storage.write_table(self.path(name), content)
                parts[table] = {"name": name, "rows": content.num_rows, "bytes": size}
        buffer = io.BytesIO()
        if result.sums:
            np.savez_compressed(buffer, allow_pickle=False, **result.sums)
            self.storage.write_bytes(self.path(f"{unit.name}.npz"), buffer.getvalue())
        receipt = Receipt(unit.name, unit.rows, result.counts, result.totals, parts, len(buffer.getvalue()))
        self.storage.write_bytes(self.path(f"{unit.name}.json"), json.dumps(receipt.__dict__).encode())
        return receipt

    def receipts(self, names: list[str]) -> Iterator[Receipt]:
        """The receipts of the units named, in that order, read a few at a time.

        Raises:
            StorageError: one of them is no receipt.
        """
        with ThreadPoolExecutor(8) as pool:
            for start in range(0, len(names), 64):
                block = [self.path(f"{name}.json") for name in names[start : start + 64]]
                for path, read in [(path, pool.submit(self.storage.read_bytes, path)) for path in block]:
                    try:
                        receipt = Receipt(**json.loads(read.result()))
                    except FileNotFoundError as error:
                        raise StorageError(f"{path} was there and is gone: did another process remove it?") from error
                    except (ValueError, TypeError) as error:
                        raise StorageError(
                            f"{path} is cut short or damaged: delete it, and its rows are done again"
                        ) from error
                    yield receipt

    def sums(self, unit: str) -> dict[str, np.ndarray]:
        path = self.path(f"{unit}.npz")
        data = self.storage.read_bytes(path)
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise StorageError(f"{path} is damaged: delete it, and its rows are done again") from error

    def sizes(self) -> dict[str, int]:
        """Name -> bytes of everything that lies here."""
        return {posixpath.basename(file.path): file.size for file in self.storage.list_files(self.folder)}

    def clear(self, keep_receipts: bool) -> None:
        for name in self.storage.list_names(self.folder):
            if not (keep_receipts and (name.endswith(".json") or name == IDENTITY)):
                self.storage.delete(self.path(name))


class UnitActor:
    """Runs a worker's coroutines on one event loop; Ray calls it from several threads, one a unit in flight.

    The first unit that raises ends the job, and the actor with it: Ray lets an actor finish what it was handed, beside the
    next job even, and an endpoint would go on being asked, and paid.
    """

    def __init__(self, worker: str, config: dict[str, Any], store: UnitStore) -> None:
        import asyncio

        module, _, name = worker.partition(":")
        self._store = store
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="units").start()
        self._worker: Worker | None = None
        self._working: set[Future[UnitResult]] = set()
        self._error: Exception | None = None
        try:
            if not store.storage.exists(store.path(IDENTITY)):  # a node that came after the preflight
                raise PreflightError(
                    f"node {platform.node()} does not see {store.folder}, which the job wrote before it began: put "
                    "storage.root on a file system that every node shares, or use an s3:// address"
                )
            self._worker = getattr(importlib.import_module(module), name)(config)
        except Exception as error:  # raised with the first unit: an actor that cannot start is retried without a word
            self._error = error

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import asyncio

        if self._worker is None:
            raise self._error or RuntimeError("the worker was not built")
        unit = Unit(**json.loads(batch["unit"][0]))
        started = time.monotonic()
        work = asyncio.run_coroutine_threadsafe(self._worker.work(unit), self._loop)
        self._working.add(work)
        try:
            if self._error:
                work.cancel()
            result = work.result()
            result.totals["unit_seconds"] = time.monotonic() - started
            receipt = self._store.write(unit, result)
        except Exception as error:
            self._error = self._error or error
            for other in tuple(self._working):
                other.cancel()
            raise self._error from None
        finally:
            self._working.discard(work)
        return {"receipt": [json.dumps(receipt.__dict__)]}

    def __del__(self) -> None:
        import asyncio

        if worker := getattr(self, "_worker", None):
            asyncio.run_coroutine_threadsafe(worker.close(), self._loop).result(timeout=30)


def unit_size(rows: int, configured: int | None, most: int) -> int:
    """Rows of a unit in a job of `rows` rows: as configured, else 1/200 of them, at least 1 and at most `most`.

    It follows from the rows alone, not from the cluster: a job started again on another cluster finds its units.
    """
    return configured or min(most, max(1, -(-rows // UNITS)))


def row_units(parts: list[dict[str, Any]], unit_rows: int | None, most: int) -> list[Unit]:
    """Units over table parts by row ranges, planned from row counts alone.

    Args:
        parts: as a manifest names them: `path` and `rows`.
        unit_rows, most: see `unit_size`.
    """
    unit_rows = unit_size(sum(part["rows"] for part in parts), unit_rows, most)
    units = []
    for index, part in enumerate(parts):
        for start in range(0, part["rows"], unit_rows):
            rows = min(unit_rows, part["rows"] - start)
            name = f"{index:05d}-{start:09d}-{rows}"
            units.append(Unit(name, {"path": part["path"], "start": start}, rows))
    return units


def read_rows(unit: Unit, storage: Storage) -> list[dict[str, Any]]:
    """The rows of a unit made by `row_units`, as dicts."""
    return tables.to_rows(storage.read_range(unit.source["path"], unit.source["start"], unit.rows))


def run_pending(
    store: UnitStore,
    units: list[Unit],
    worker: str,
    worker_config: dict[str, Any],
    pool: dict[str, Any],
    on_receipt: Callable[[Receipt], None],
) -> None:
    """Maps an actor pool over `units`; each writes its own parts and receipt, and returns the receipt only.

    Args:
        pool: `min_actors`, `max_actors`, `units_in_flight`, `max_restarts`, and `num_cpus`, `num_gpus` of one actor.
    """
    import ray
    from ray.data import ActorPoolStrategy, DataContext

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.max_errored_blocks = 0
    context.print_on_execution_start = False
    context.raise_original_map_exception = True
    for name in ("ray.data", "ray.data._internal.execution"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what it says of a failure is said by JobStopped
    rows = [{"unit": json.dumps(unit.__dict__)} for unit in units]
    actors = max(1, min(pool["max_actors"], len(units)))
    dataset = ray.data.from_items(rows, override_num_blocks=min(len(rows), 20_000))
    with warnings.catch_warnings():
        # Without a bound, an actor that always dies is started again for ever. Ray has no other way to give one yet.
        warnings.filterwarnings("ignore", message=".*ray_remote_args.*")
        dataset = dataset.map_batches(
            UnitActor,
            fn_constructor_args=(worker, worker_config, store),
            batch_size=1,
            compute=ActorPoolStrategy(
                min_size=min(pool["min_actors"], actors),
                max_size=actors,
                max_concurrent_calls_per_actor=pool["units_in_flight"],
                max_tasks_in_flight_per_actor=2 * pool["units_in_flight"],
                enable_true_multi_threading=True,
            ),
            num_cpus=pool["num_cpus"],
            num_gpus=pool.get("num_gpus") or None,
            max_restarts=pool["max_restarts"],
            # As often as it takes: each try at an actor on a node that is gone counts, until Ray sees that it is gone.
            max_task_retries=-1,
        )
    for row in dataset.iter_rows():
        on_receipt(Receipt(**json.loads(row["receipt"])))


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """What goes wrong in Ray's tasks and actors, and with the storage, comes out as JobStopped, in one line."""
    from ray.exceptions import RayError

    try:
        yield
    except (RayError, StorageError) as error:
        raise JobStopped(
            f"the job stopped: {_root_cause(error)}. "
            "What is finished is kept: start it again with the same words to go on"
        ) from error


def _root_cause(error: BaseException) -> str:
    """The innermost error that Ray wrapped and that says something, in one line; below one of ours nothing is clearer."""
    from ray.exceptions import RayError

    told = error
    # Ray's copy of one of our errors is one of ours too, but its text is a traceback.
    while isinstance(error, RayError) or not isinstance(error, TrustError):
        inner = getattr(error, "cause", None) or error.__cause__
        if not inner:
            break
        error = inner
        if str(error).strip():
            told = error
    text = " ".join(str(told).split("\nFailed to apply UDF")[0].split())[-500:]
    return text if isinstance(told, TrustError) else f"{type(told).__name__}: {text}"
