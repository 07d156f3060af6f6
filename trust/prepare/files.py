"""Which files a `data.path` means, and in which format each is."""

import difflib
import json
import posixpath
from dataclasses import dataclass

from trust.errors import ConfigError, PreflightError
from trust.prepare.config import DataConfig
from trust.prepare.saved import saved_files
from trust.storage import FileInfo, Storage, absolute

_FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_OF_KIND = {"nomiracl": {"jsonl", "json", "parquet"}}  # in a folder; tables of results lie beside the rows there
_PACKED = {"parquet": "Parquet", "arrow": "Arrow"}  # formats that compress inside
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_KNOWN = ".json, .jsonl, .ndjson, .csv, .tsv (each also with .gz or .zst), .parquet or .arrow"
_SNIFF = 1 << 20


@dataclass(frozen=True)
class InputFile:
    """A file to read.

    Attributes:
        format: `json` (one list, or an object that holds it), `jsonl`, `csv`, `tsv`, `parquet` or `arrow` (a stream).
        compression: `gzip`, `zstd` or null; of Parquet and Arrow always null (they compress inside).
    """

    path: str
    size: int
    format: str
    compression: str | None


def find_files(data: DataConfig, storage: Storage) -> tuple[list[InputFile], list[str]]:
    """The files of `data.path`, sorted by path, and warnings about what was left out.

    Raises:
        ConfigError: no path is set.
        PreflightError: nothing is there, or nothing that can be read; names the nearest name that is.
    """
    if not data.path:
        raise ConfigError("data.path is not set: add data.path=FILE (a file, a folder or a glob, local or s3://)")
    path = absolute(data.path)
    try:
        found = storage.list_files(path)
    except OSError as error:
        raise PreflightError(f"data.path={data.path}: cannot be listed: {' '.join(str(error).split())}") from error
    if not found:
        raise PreflightError(f"data.path={data.path}: no such file or folder{_nearest(path, storage)}")
    saved = saved_files(data, path, found, storage)
    if saved is not None:
        return [_describe(file, storage) for file in saved], []
    if len(found) == 1 and found[0].path == path:
        return [_describe(found[0], storage)], []
    wanted = _OF_KIND.get(data.kind, set(_FORMATS.values()))
    known = [file for file in found if _split(file.path)[0] in wanted]
    if not known:
        raise PreflightError(f"data.path={data.path}: none of its {len(found)} files ends in {_KNOWN}")
    skipped = [file.path for file in found if file not in known]
    warnings = []
    if skipped:
        warnings.append(f"{len(skipped)} files are not read, since their names are not those of rows: {skipped[0]} ...")
    return [_describe(file, storage) for file in known], warnings


def _split(path: str) -> tuple[str | None, str | None]:
    """Format and compression by the name alone."""
    stem, suffix = posixpath.splitext(path.lower())
    compression = _COMPRESSIONS.get(suffix)
    if compression:
        suffix = posixpath.splitext(stem)[1]
    kind = _FORMATS.get(suffix)
    return (None, None) if kind in _PACKED and compression else (kind, compression)


def _describe(file: FileInfo, storage: Storage) -> InputFile:
    kind, _ = _split(file.path)
    compression = _COMPRESSIONS.get(posixpath.splitext(file.path)[1])
    if file.size == 0:
        raise PreflightError(f"{file.path}: the file is empty")
    if kind in (None, "json"):
        try:
            with storage.open_stream(file.path) as stream:
                kind = _sniff(stream.read(_SNIFF), kind)
        except OSError as error:
            raise PreflightError(f"{file.path}: cannot be read: {' '.join(str(error).split())}") from error
    if kind is None:
        raise PreflightError(
            f"{file.path}: neither JSON, JSON Lines, CSV, Arrow nor Parquet; the name should end in {_KNOWN}"
        )
    if kind in _PACKED and compression:
        raise PreflightError(f"{file.path}: {_PACKED[kind]} compresses inside; unpack the file")
    return InputFile(file.path, file.size, kind, compression)


def _sniff(head: bytes, kind: str | None) -> str | None:
    """The format by content: JSON Lines are often called .json."""
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    line, _, rest = text.partition(b"\n")
    if text.startswith(b"{") and rest.lstrip().startswith(b"{"):
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return "json"
        return "jsonl"
    return "json" if kind == "json" or text.startswith((b"{", b"[")) else None


def _nearest(path: str, storage: Storage) -> str:
    folder, name = posixpath.split(path)
    try:
        names = storage.list_names(folder) + storage.list_folders(folder)
    except OSError:
        return ""
    if name in names:
        return ": the folder is empty"
    near = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.5)
    return f"; did you mean {posixpath.join(folder, near[0])}?" if near else f"; {len(names)} others in {folder}"
