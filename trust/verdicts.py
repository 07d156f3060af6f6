"""The verdict store: judged pairs are kept beside the runs and shared by metrics, modes, runs and models.

`{storage.root}/_verdicts/{judge fingerprint}/{lowest}~{highest}~{content}.parquet`, where lowest and highest are the sample
ids in the file, so that a unit opens only the files that can hold its samples. Many writers, readers and mergers at once
do no harm: a file is only ever added, or removed after its rows are in a new file of a name of its own, and a verdict
that stands twice is read once.

A verdict is found by the sample that asked for it: under every metric, mode, run and model that keeps the sample's id, and
not where the same texts come under another id (the same file under another `data.name`, say). Otherwise no unit could tell
which files to open.
"""

import contextlib
import hashlib
import logging
import threading
import time
import uuid
from bisect import insort
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trust import tables
from trust.runs import Manifest
from trust.storage import FileInfo, Storage, join

log = logging.getLogger("trust")

UNREADABLE = "unreadable:"  # in totals, before the address of a broken file

_KEY_BYTES = 40
_FRESH_S = 60.0  # what other runs add meanwhile is seen at the latest then
_TRIES = 10
_SMALL = 4 * 2**20  # bytes
_MERGED = 16 * 2**20
_MANY = 32
_AT_ONCE = 8


class VerdictStore:
    """Verdicts of one judge.

    Args:
        root: `storage.root`.
        judge: the judge's fingerprint.

    Attributes:
        unreadable: files that hold no readable table (cut short, say); they are passed over, and their pairs asked again.
    """

    def __init__(self, storage: Storage, root: str, judge: str) -> None:
        self._storage = storage
        self.judge = judge
        self._folder = join(root, "_verdicts", judge)
        self._lock = threading.Lock()
        self._names: list[str] = []
        self._listed: float | None = None
        self.unreadable: set[str] = set()

    def load(self, sample_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Known verdicts of these samples, as rows of the verdicts table; one for each sample and pair."""
        wanted = sorted(set(sample_ids))
        if not wanted:
            return []
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        read: set[str] = set()
        for _ in range(_TRIES):
            if self._load(wanted, rows, read):
                break
            self._listed = None  # files were merged meanwhile: their rows are in a file that is not listed yet
        return list(rows.values())

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Keeps verdicts that were asked now; failed ones are not kept, so that they are asked again."""
        good = [row for row in rows if row["status"] == "ok"]
        if not good:
            return
        keys = sorted((row["sample_id"], row["hash"]) for row in good)
        content = hashlib.sha256("".join(f"{sample}\0{key}\0" for sample, key in keys).encode()).hexdigest()[:16]
        name = _name(keys[0][0], keys[-1][0], content)
        self._storage.write_table(join(self._folder, name), tables.to_table("verdicts", good))
        with self._lock:
            if name not in self._names:
                insort(self._names, name)

    def merge_small(self) -> None:
        """Merges small files, where there are many, into few that are sorted; in Ray tasks."""
        import ray

        small = [file for file in self._storage.list_files(self._folder) if file.size < _SMALL]
        if len(small) < _MANY:
            return
        task = ray.remote(num_cpus=1)(merge_files)
        ray.get([task.remote(self._storage, self._folder, names) for names in _groups(small)])

    def _load(self, wanted: list[str], rows: dict[tuple[str, str], dict[str, Any]], read: set[str]) -> bool:
        """Reads what was not read yet; False where a listed file is gone."""
        low, high = _key(wanted[0]), _key(wanted[-1])
        only = tables.of_samples(wanted)
        for name in self._list():
            first, _, rest = name.partition("~")
            if name in read or first > high or rest.partition("~")[0] < low:
                continue
            path = join(self._folder, name)
            if path in self.unreadable:
                continue
            try:
                found = read_file(self._storage, path, only)
            except FileNotFoundError:
                return False
            if found is None:
                self.unreadable.add(path)
                continue
            for row in tables.to_rows(found):
                rows.setdefault((row["sample_id"], row["hash"]), row)
            read.add(name)
        return True

    def _list(self) -> list[str]:
        with self._lock:
            if self._listed is None or time.monotonic() - self._listed >= _FRESH_S:
                self._names = self._storage.list_names(self._folder)
                self._listed = time.monotonic()
            return list(self._names)


def used_verdicts(rows: Iterable[Mapping[str, Any]], verdicts: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the verdicts table: one for each sample and pair that it asked, whichever sample's ask it was that was sent.

    Args:
        rows: with `sample_id` and `asks` (the trail of what was asked, with hashes).
        verdicts: hash -> row of the verdicts table.
    """
    keys = {(row["sample_id"], ask["hash"]): None for row in rows for ask in row["asks"]}
    columns = tables.SCHEMAS["verdicts"].names
    return [
        {column: verdicts[pair].get(column) for column in columns} | {"sample_id": sample}
        for sample, pair in keys
        if pair in verdicts
    ]


def care_for(store: VerdictStore, manifest: Manifest) -> None:
    """Says which files of the store are broken, and merges its small ones; neither is worth failing a finished job for."""
    from ray.exceptions import RayError

    for path in (key.removeprefix(UNREADABLE) for key in manifest.totals if key.startswith(UNREADABLE)):
        log.warning("%s cannot be read: its pairs were asked again and stand in other files; delete it", path)
    try:
        store.merge_small()
    except (OSError, RayError) as error:
        log.warning("the verdict store could not be merged, nothing is lost: %s", " ".join(str(error).split())[-300:])


def read_file(storage: Storage, path: str, only: pc.Expression | None = None) -> pa.Table | None:
    """Rows of one file of the store; None where it holds no readable table.

    Raises:
        FileNotFoundError: it is gone.
        OSError: the storage does not answer.
    """
    try:
        return storage.read_table(path, filters=only)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException):
        data = storage.read_bytes(path)  # tells a broken file from a storage that is out of reach
    with contextlib.suppress(OSError, pa.ArrowException):
        return pq.read_table(pa.BufferReader(data), filters=only, page_checksum_verification=True)
    return None


def merge_files(storage: Storage, folder: str, names: list[str]) -> None:
    """Writes the rows of these files to one new file, each sample and pair once, then removes them.

    Interrupted at any point it leaves every row in at least one file. A broken file is left where it is.
    """

    def read(path: str) -> pa.Table | None:
        with contextlib.suppress(FileNotFoundError):
            return read_file(storage, path)
        return None

    paths = [join(folder, name) for name in names]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = {path: content for path, content in zip(paths, pool.map(read, paths), strict=True) if content}
        if len(found) < 2:
            return
        merged = tables.unrepeated("verdicts", tables.sort("verdicts", pa.concat_tables(found.values())))
        ids = merged.column("sample_id")
        # A name that no other merger can make: none of them removes what it has not read.
        storage.write_table(join(folder, _name(ids[0].as_py(), ids[-1].as_py(), uuid.uuid4().hex[:16])), merged)
        list(pool.map(storage.delete, found))


def _groups(files: list[FileInfo]) -> list[list[str]]:
    """Names of neighbours in the order of their lowest ids, of about `_MERGED` bytes together."""
    groups: list[list[str]] = []
    size = _MERGED
    for file in files:
        if size + file.size > _MERGED:
            groups.append([])
            size = 0
        groups[-1].append(file.path.rsplit("/", 1)[-1])
        size += file.size
    return groups


def _name(lowest: str, highest: str, content: str) -> str:
    return f"{_key(lowest)}~{_key(highest)}~{content}.parquet"


def _key(sample_id: str) -> str:
    """A file-name-safe key that sorts as the id's first bytes do."""
    return sample_id.encode()[:_KEY_BYTES].hex()
