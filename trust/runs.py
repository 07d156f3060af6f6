"""What a job wants done, what it left, and the folder of a run.

`{run}/manifests/{job}.json` is written last. It names the parts of every table the job made; nothing else is read.
"""

import contextlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trust.config import JobConfig
from trust.errors import PreflightError, StorageError
from trust.fingerprint import fingerprint
from trust.storage import Storage, absolute, join, open_storage
from trust.tables import SCHEMA_VERSION
from trust.units import Unit

_BITS = 31


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
        path = self.path("manifests", f"{job}.json")
        try:
            return Manifest(**json.loads(self.storage.read_bytes(path)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise StorageError(
                f"{path} is cut short or damaged: delete it and start jobs.{job} again with overwrite=true"
            ) from error

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

    def each_sum(self, job: str, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, np.ndarray]]:
        """Sums over all units of a finished job, one by one, as exact Python integers (object arrays); none before it has
        finished.

        Args:
            wanted: whether the sums of a name are read.
        """
        for name, kept in self.halves(job, wanted):
            yield name, joined(kept)

    def sums(self, job: str) -> dict[str, np.ndarray]:
        """All of `each_sum` at once."""
        return dict(self.each_sum(job))

    def halves(self, job: str, wanted: Callable[[str], bool] = lambda _: True) -> Iterator[tuple[str, np.ndarray]]:
        """The same as they are kept (see `halves`)."""
        with self._kept(job) as arrays:
            for name in filter(wanted, sorted(arrays)):
                yield name, arrays[name]

    def sum_names(self, job: str) -> list[str]:
        """Names of the sums of a finished job."""
        with self._kept(job) as arrays:
            return sorted(arrays)

    @contextlib.contextmanager
    def _kept(self, job: str) -> Iterator[Mapping[str, np.ndarray]]:
        """The file of a job's sums, whose arrays are read one by one."""
        manifest = self.manifest(job)
        if not manifest or not manifest.sums:
            yield {}
            return
        path = self.path(manifest.sums)
        try:
            data = self.storage.read_bytes(path)
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                yield arrays
        except (FileNotFoundError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise StorageError(
                f"{path} is gone, cut short or damaged: start jobs.{job} again with overwrite=true"
            ) from error

    def write_sums(self, path: str, sums: dict[str, np.ndarray]) -> None:
        """Keeps what the `halves` of all units add up to, by name."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **sums)
        self.storage.write_bytes(self.path(path), buffer.getvalue())


def halves(sums: np.ndarray) -> np.ndarray:
    """int64 sums as two int64 each, shape (2, *sums.shape): all but the lower 31 bits, and these. What many units add up
    to may exceed 64 bits; of halves, four thousand million can be added."""
    return np.stack([sums >> _BITS, sums & (2**_BITS - 1)])


def joined(kept: np.ndarray) -> np.ndarray:
    """What `halves` took apart, as exact Python integers (an object array)."""
    high, low = kept.astype(object)
    return (high << _BITS) + low
