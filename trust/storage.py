"""The one door to paths: local, file:// and s3://."""

import contextlib
import fnmatch
import importlib.resources
import os
import posixpath
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from trust.errors import ConfigError, PreflightError, StorageError, TrustError
from trust.faults import explain
from trust.s3 import S3
from trust.s3 import errors as s3_errors

_CODECS = {".gz": "gzip", ".zst": "zstd"}
_COPIED = 16 * 2**20  # bytes a request
_ROW_GROUP = 1024  # rows; a unit reads only the groups that hold its rows, and Arrow's default is a million


@dataclass
class StorageConfig:
    """Where tables lie: `{root}/{run}/{table}/...`.

    Attributes:
        root: a folder or an s3:// address.
        endpoint: of an S3-compatible store; null reads AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, then the AWS profile.
        region: null reads AWS_REGION, AWS_DEFAULT_REGION, then the AWS profile.
        virtual_hosts: whether that store is asked at bucket.host instead of host/bucket.
    """

    root: str = "runs"
    endpoint: str | None = None
    region: str | None = None
    virtual_hosts: bool = False

    def __post_init__(self) -> None:
        if not self.root.strip():
            raise ConfigError("storage.root is empty: give a folder or an s3:// address")


@dataclass(frozen=True)
class FileInfo:
    """A file, its size in bytes, and when it was written, in nanoseconds."""

    path: str
    size: int
    written: int


class Storage:
    """Reads and writes whole objects by path: absolute local paths or s3:// addresses.

    A write is seen whole or not at all: a rename on local disks, one PUT on S3.
    """

    def __init__(self, endpoint: str | None = None, region: str | None = None, virtual_hosts: bool = False) -> None:
        self.s3 = S3(endpoint, region, virtual_hosts)

    def arrow(self, path: str) -> tuple[pafs.FileSystem, str]:
        """The pyarrow filesystem for `path`, and the path as it wants it."""
        if is_s3(path):
            return self.s3.arrow, path.removeprefix("s3://")
        return pafs.LocalFileSystem(), path

    def exists(self, path: str) -> bool:
        if not is_s3(path):
            return os.path.exists(path)
        with _told("look for", path):
            return bool(self.s3.objects.exists(path))

    def read_bytes(self, path: str) -> bytes:
        """The whole object. Raises FileNotFoundError."""
        with _told("read", path):
            if is_s3(path):
                # Without a limit of one it first asks for the size.
                return bytes(self.s3.objects.cat_file(path, max_concurrency=1))
            return Path(path).read_bytes()

    def write_bytes(self, path: str, data: bytes) -> None:
        with _told("write", path):
            if is_s3(path):
                self.s3.objects.pipe_file(path, data)
            else:
                _write_local(Path(path), data)

    def delete(self, path: str) -> None:
        """Removes one object; no error where it is gone already."""
        with contextlib.suppress(FileNotFoundError), _told("delete", path):
            if is_s3(path):
                self.s3.objects.rm_file(path)
            else:
                os.unlink(path)

    def list_names(self, folder: str) -> list[str]:
        """Names of the objects right in `folder`, sorted; empty where there is none. Unfinished writes are left out."""
        if is_s3(folder):
            names = [posixpath.basename(info["name"]) for info in self._listing(folder) if info["type"] == "file"]
        elif os.path.isdir(folder):
            names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
        else:
            return []
        return sorted(name for name in names if name and not name.startswith("."))

    def list_folders(self, folder: str) -> list[str]:
        """Names of the folders right in `folder`, sorted; empty where there is none."""
        if is_s3(folder):
            found = [info["name"] for info in self._listing(folder) if info["type"] == "directory"]
            return sorted(posixpath.basename(name) for name in found)
        return sorted(e.name for e in os.scandir(folder) if e.is_dir()) if os.path.isdir(folder) else []

    def _listing(self, folder: str) -> list[dict[str, Any]]:
        with contextlib.suppress(FileNotFoundError), _told("list", folder):
            return list(self.s3.objects.ls(folder, detail=True, refresh=True))
        return []

    def list_files(self, path: str) -> list[FileInfo]:
        """The files at `path` (a file, a folder with all below it, or a glob), sorted by path. Hidden ones left out.

        A path that is there as it stands is no glob, whatever marks its name holds.
        """
        with _told("list", path):
            return self._list_files(path)

    def _list_files(self, path: str) -> list[FileInfo]:
        base, pattern = path, False
        fs, root = self.arrow(base)
        info = fs.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            base, pattern = _split_glob(path)
            fs, root = self.arrow(base)
            info = fs.get_file_info(root)
        if info.type == pafs.FileType.File:
            return [FileInfo(base, info.size, info.mtime_ns)]
        if info.type == pafs.FileType.NotFound and not is_s3(path):
            return []
        selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        prefix = "s3://" if is_s3(path) else ""
        found = [
            FileInfo(prefix + item.path, item.size, item.mtime_ns)
            for item in fs.get_file_info(selector)
            if item.type == pafs.FileType.File and not item.base_name.startswith((".", "_"))
        ]
        if pattern:
            found = [item for item in found if fnmatch.fnmatch(item.path, path)]
        return sorted(found, key=lambda item: item.path)

    def download(self, path: str, target: Path) -> int:
        """Copies one object to a local file, a few megabytes at a time; returns how many bytes came."""
        with self.open_input(path) as source, open(target, "wb") as file, _told("read", path):
            shutil.copyfileobj(source, file, _COPIED)
            return file.tell()

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable binary file of the object as it lies there (not decompressed)."""
        with _told("open", path):
            fs, inner = self.arrow(path)
            return fs.open_input_file(inner)

    def open_stream(self, path: str) -> pa.NativeFile:
        """A binary stream of the object, decompressed by its ending (.gz, .zst)."""
        with _told("open", path):
            fs, inner = self.arrow(path)
            return fs.open_input_stream(inner, compression=_CODECS.get(posixpath.splitext(path)[1]))

    def write_table(self, path: str, table: pa.Table) -> int:
        """Writes one Parquet object; returns its size in bytes."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", row_group_size=_ROW_GROUP, write_page_checksum=True)
        data = sink.getvalue().to_pybytes()
        self.write_bytes(path, data)
        return len(data)

    def read_table(self, path: str, columns: list[str] | None = None, filters: Any = None) -> pa.Table:
        with _told("read", path, table=True):
            # One request where pyarrow makes four, which counts for many small parts.
            if is_s3(path) and columns is None and filters is None:
                return pq.read_table(pa.BufferReader(self.read_bytes(path)), page_checksum_verification=True)
            fs, inner = self.arrow(path)
            return pq.read_table(
                inner,
                filesystem=fs,
                columns=columns,
                filters=filters,
                partitioning=None,
                page_checksum_verification=True,
            )

    @contextlib.contextmanager
    def open_table(self, path: str, **options: Any) -> Iterator[pq.ParquetFile]:
        """One Parquet object, of which only what is asked for is read, with the options of `pyarrow.parquet.ParquetFile`."""
        with _told("read", path, table=True):
            fs, inner = self.arrow(path)
            with fs.open_input_file(inner) as source:
                yield pq.ParquetFile(source, page_checksum_verification=True, **options)

    def read_range(self, path: str, start: int, rows: int) -> pa.Table:
        """Rows `start` to `start + rows` of one Parquet object; only the row groups that hold them are read."""
        with self.open_table(path) as file:
            groups: list[int] = []
            first = seen = 0
            for index in range(file.num_row_groups):
                size = file.metadata.row_group(index).num_rows
                if seen + size > start and seen < start + rows:
                    if not groups:
                        first = seen
                    groups.append(index)
                seen += size
            return file.read_row_groups(groups).slice(start - first, rows)

    def preflight(self, root: str) -> None:
        """Writes, lists, reads and deletes one object below `root`; on S3 one with each client.

        Raises:
            PreflightError: says in one line what is wrong.
        """
        if is_s3(root):
            self.s3.preflight(root)
            return
        name, step = f"trust-preflight-{uuid.uuid4().hex[:12]}", "write"
        try:
            self.write_bytes(join(root, name), b"trust")
            step = "list"
            if name not in self.list_names(root):
                raise OSError("what was just written is not in the listing")
            step = "read"
            if self.read_bytes(join(root, name)) != b"trust":
                raise OSError("what was just written reads back differently")
            step = "delete"
            self.delete(join(root, name))
        except OSError as error:
            raise PreflightError(f"storage.root={root}: cannot {step}: {explain(error)}") from error


def open_storage(root: str = "", config: StorageConfig | dict[str, Any] | None = None) -> Storage:
    """The storage for `config`; `root` is only looked at to fail early on an address of an unknown kind."""
    absolute(root or ".")
    options = asdict(config) if isinstance(config, StorageConfig) else dict(config or {})
    return Storage(options.get("endpoint"), options.get("region"), bool(options.get("virtual_hosts")))


def absolute(path: str) -> str:
    """`path` as the jobs pass it on: an s3:// address, or an absolute local path.

    `package://NAME/below` is a file or folder that an installed package carries.
    """
    if is_s3(path):
        if not path.removeprefix("s3://").partition("/")[0]:
            raise PreflightError(f"{path}: no bucket is named; an address is s3://BUCKET/FOLDER")
        return path.rstrip("/")
    if path.startswith("package://"):
        name, _, below = path.removeprefix("package://").partition("/")
        try:
            return os.path.join(str(importlib.resources.files(name)), below)
        except ModuleNotFoundError as error:
            raise PreflightError(f"{path}: the package {name} is not installed") from error
    if path.startswith("file://"):
        path = path.removeprefix("file://").removeprefix("localhost")
        if not path.startswith("/"):
            raise PreflightError(f"file://{path}: leads to another machine; a local address is file:///FOLDER")
    if "://" in path or path.startswith(
        ("s3:", "s3a:", "file:")
    ):  # s3:/x, too: as a folder here nobody would look for it
        raise PreflightError(f"{path}: only local paths, file:// and s3:// addresses can be used")
    if os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR") and not os.path.isabs(os.path.expanduser(path)):
        raise PreflightError(
            f"{path}: a submitted job runs in a folder of its own, so a relative path leads nowhere; give an absolute "
            "one that every node sees, or an s3:// address"
        )
    found = os.path.expanduser(path)
    if found.startswith("~"):
        raise PreflightError(f"{path}: there is no user {found.split('/')[0].removeprefix('~')} on this machine")
    return os.path.abspath(found)


def join(root: str, *parts: str) -> str:
    return posixpath.join(root, *parts)


def is_s3(path: str) -> bool:
    return path.startswith("s3://")


def _split_glob(path: str) -> tuple[str, bool]:
    """The folder above the first wildcard, and whether there is one."""
    if not any(mark in path for mark in "*?["):
        return path, False
    parts = path.split("/")
    first = next(i for i, part in enumerate(parts) if any(mark in part for mark in "*?["))
    return "/".join(parts[:first]) or "/", True


def _write_local(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _told(verb: str, path: str, table: bool = False) -> Iterator[None]:
    """Errors of the libraries below come out as one line that names the object; what is not there stays
    FileNotFoundError, on which callers go by."""
    try:
        yield
    except (FileNotFoundError, TrustError):
        raise
    except Exception as error:
        if not isinstance(error, (OSError, pa.ArrowException, *(s3_errors() if is_s3(path) else ()))):
            raise
        what = explain(error)
        if table and not getattr(error, "errno", None) and "AWS Error" not in what:
            what += " (the object is cut short or damaged: delete it and start the job that wrote it again, with overwrite=true)"
        raise StorageError(f"cannot {verb} {path}: {what}") from error
