"""The one door to paths: local, file:// and s3://.

Both S3 clients (pyarrow's for tables, s3fs for single objects) are built here from one setting, since they read
different environment variables and could otherwise talk to two different stores. Keys come from the environment or
the cloud's own chain and are never part of a config.
"""

import contextlib
import fnmatch
import importlib.resources
import os
import posixpath
import uuid
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from trust.errors import ConfigError, PreflightError

_CODECS = {".gz": "gzip", ".zst": "zstd"}


@dataclass
class StorageConfig:
    """Where tables lie: `{root}/{run}/{table}/...`.

    Attributes:
        root: a folder or an s3:// address.
        endpoint: of an S3-compatible store; null reads AWS_ENDPOINT_URL_S3, then AWS_ENDPOINT_URL.
        region: null reads AWS_REGION, then AWS_DEFAULT_REGION.
    """

    root: str = "runs"
    endpoint: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        if not self.root.strip():
            raise ConfigError("storage.root is empty: give a folder or an s3:// address")


@dataclass(frozen=True)
class FileInfo:
    """A file and its size in bytes."""

    path: str
    size: int


class Storage:
    """Reads and writes whole objects by path: absolute local paths or s3:// addresses.

    A write is seen whole or not at all: a rename on local disks, one PUT on S3.
    """

    def __init__(self, endpoint: str | None = None, region: str | None = None) -> None:
        env = os.environ
        self.endpoint = endpoint or env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
        self.region = region or env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")

    def __reduce__(self) -> tuple[Any, ...]:
        return Storage, (self.endpoint, self.region)

    @cached_property
    def _s3_arrow(self) -> pafs.FileSystem:
        options: dict[str, Any] = {"retry_strategy": pafs.AwsStandardS3RetryStrategy(max_attempts=10)}
        if self.endpoint:
            scheme, _, host = self.endpoint.rpartition("://")
            options |= {"endpoint_override": host, "scheme": scheme or "https"}
        if self.region:
            options["region"] = self.region
        return pafs.S3FileSystem(**options)

    @cached_property
    def _s3_objects(self) -> Any:
        import s3fs

        client = {"endpoint_url": self.endpoint} if self.endpoint else {}
        if self.region:
            client["region_name"] = self.region
        return s3fs.S3FileSystem(
            client_kwargs=client,
            config_kwargs={"retries": {"max_attempts": 10, "mode": "standard"}},
            use_listings_cache=False,
            skip_instance_cache=True,
        )

    def arrow(self, path: str) -> tuple[pafs.FileSystem, str]:
        """The pyarrow filesystem for `path`, and the path as it wants it."""
        if is_s3(path):
            return self._s3_arrow, path.removeprefix("s3://")
        return pafs.LocalFileSystem(), path

    def exists(self, path: str) -> bool:
        if is_s3(path):
            return bool(self._s3_objects.exists(path))
        return os.path.exists(path)

    def read_bytes(self, path: str) -> bytes:
        """The whole object. Raises FileNotFoundError."""
        if is_s3(path):
            return bytes(self._s3_objects.cat_file(path))
        return Path(path).read_bytes()

    def write_bytes(self, path: str, data: bytes) -> None:
        if is_s3(path):
            self._s3_objects.pipe_file(path, data)
            return
        target = Path(path)
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

    def delete(self, path: str) -> None:
        """Removes one object; no error where it is gone already."""
        with contextlib.suppress(FileNotFoundError):
            if is_s3(path):
                self._s3_objects.rm_file(path)
            else:
                os.unlink(path)

    def list_names(self, folder: str) -> list[str]:
        """Names of the objects right in `folder`, sorted; empty where there is none. Unfinished writes are left out."""
        if is_s3(folder):
            try:
                found = self._s3_objects.ls(folder, detail=True, refresh=True)
            except FileNotFoundError:
                return []
            names = [posixpath.basename(info["name"]) for info in found if info["type"] == "file"]
        elif os.path.isdir(folder):
            names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
        else:
            return []
        return sorted(name for name in names if name and not name.startswith("."))

    def list_folders(self, folder: str) -> list[str]:
        """Names of the folders right in `folder`, sorted; empty where there is none."""
        if is_s3(folder):
            try:
                found = self._s3_objects.ls(folder, detail=True, refresh=True)
            except FileNotFoundError:
                return []
            return sorted(posixpath.basename(info["name"]) for info in found if info["type"] == "directory")
        return sorted(e.name for e in os.scandir(folder) if e.is_dir()) if os.path.isdir(folder) else []

    def list_files(self, path: str) -> list[FileInfo]:
        """The files at `path` (a file, a folder with all below it, or a glob), sorted by path. Hidden ones left out.

        A path that is there as it stands is no glob, whatever marks its name holds.
        """
        base, pattern = path, False
        fs, root = self.arrow(base)
        info = fs.get_file_info(root)
        if info.type == pafs.FileType.NotFound:
            base, pattern = _split_glob(path)
            fs, root = self.arrow(base)
            info = fs.get_file_info(root)
        if info.type == pafs.FileType.File:
            return [FileInfo(base, info.size)]
        if info.type == pafs.FileType.NotFound and not is_s3(path):
            return []
        selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        prefix = "s3://" if is_s3(path) else ""
        found = [
            FileInfo(prefix + item.path, item.size)
            for item in fs.get_file_info(selector)
            if item.type == pafs.FileType.File and not item.base_name.startswith((".", "_"))
        ]
        if pattern:
            found = [item for item in found if fnmatch.fnmatch(item.path, path)]
        return sorted(found, key=lambda item: item.path)

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable binary file of the object as it lies there (not decompressed)."""
        fs, inner = self.arrow(path)
        return fs.open_input_file(inner)

    def open_stream(self, path: str) -> pa.NativeFile:
        """A binary stream of the object, decompressed by its ending (.gz, .zst)."""
        fs, inner = self.arrow(path)
        return fs.open_input_stream(inner, compression=_CODECS.get(posixpath.splitext(path)[1]))

    def write_table(self, path: str, table: pa.Table) -> int:
        """Writes one Parquet object; returns its size in bytes."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        self.write_bytes(path, data)
        return len(data)

    def read_table(self, path: str, columns: list[str] | None = None, filters: Any = None) -> pa.Table:
        fs, inner = self.arrow(path)
        return pq.read_table(inner, filesystem=fs, columns=columns, filters=filters, partitioning=None)

    def read_range(self, path: str, start: int, rows: int) -> pa.Table:
        """Rows `start` to `start + rows` of one Parquet object; only the row groups that hold them are read."""
        fs, inner = self.arrow(path)
        with fs.open_input_file(inner) as source:
            file = pq.ParquetFile(source)
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
        """Writes, lists, reads and deletes one object below `root`, with both clients on S3.

        Raises:
            PreflightError: says in one line what is wrong.
        """
        name = f"trust-preflight-{uuid.uuid4().hex[:12]}"
        path = join(root, name)
        step = "write"
        try:
            self.write_bytes(path, b"trust")
            step = "list"
            if name not in self.list_names(root):
                raise OSError("the object just written is not in the listing")
            step = "read"
            with self.open_input(path) as file:
                if file.read() != b"trust":
                    raise OSError("the object just written reads back differently")
            if is_s3(root):
                step = "write (pyarrow)"
                fs, inner = self.arrow(path)
                with fs.open_output_stream(inner) as out:
                    out.write(b"trust2")
                step = "read (s3fs)"
                if self.read_bytes(path) != b"trust2":
                    raise OSError("pyarrow and s3fs see different stores")
            step = "delete"
            self.delete(path)
        except Exception as error:
            where = f" at {self.endpoint}" if is_s3(root) and self.endpoint else ""
            raise PreflightError(
                f"storage.root={root}{where}: cannot {step}: {_one_line(error)}{_hint(error)}"
            ) from error


def open_storage(root: str = "", config: StorageConfig | dict[str, Any] | None = None) -> Storage:
    """The storage for `config`; `root` is only looked at to fail early on an address of an unknown kind."""
    absolute(root or ".")
    options = asdict(config) if isinstance(config, StorageConfig) else dict(config or {})
    return Storage(options.get("endpoint"), options.get("region"))


def absolute(path: str) -> str:
    """`path` as the jobs pass it on: an s3:// address, or an absolute local path.

    `package://NAME/below` is a file or folder that an installed package carries.
    """
    if is_s3(path):
        return path.rstrip("/")
    if path.startswith("package://"):
        name, _, below = path.removeprefix("package://").partition("/")
        try:
            return os.path.join(str(importlib.resources.files(name)), below)
        except ModuleNotFoundError as error:
            raise PreflightError(f"{path}: the package {name} is not installed") from error
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    if "://" in path:
        raise PreflightError(f"{path}: only local paths, file:// and s3:// addresses can be used")
    if os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR") and not os.path.isabs(os.path.expanduser(path)):
        raise PreflightError(
            f"{path}: a submitted job runs in a folder of its own, so a relative path leads nowhere; give an absolute "
            "one that every node sees, or an s3:// address"
        )
    return os.path.abspath(os.path.expanduser(path))


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


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _hint(error: BaseException) -> str:
    text = f"{type(error).__name__} {error}".lower()
    hints = {
        ("nosuchbucket", "bucket does not exist"): "the bucket does not exist: create it or mend storage.root",
        ("accessdenied", "forbidden", "access denied"): "the key has no right to do this on this bucket",
        ("invalidaccesskeyid", "signaturedoesnotmatch", "nocredentials", "unable to locate credentials"): (
            "the key is wrong or missing: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ),
        ("connect", "resolve", "timed out"): "nothing answers at this endpoint: check storage.endpoint",
        ("permissionerror", "permission denied"): "this user may not write there",
        ("no space left",): "the disk is full",
    }
    for marks, hint in hints.items():
        if any(mark in text for mark in marks):
            return f" ({hint})"
    return ""
