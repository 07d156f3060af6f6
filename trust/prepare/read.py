"""Reading the rows of a unit, one by one; a row that cannot be parsed comes as its error."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from trust.errors import PreflightError, RowError
from trust.prepare.arrow import read_batches, read_schema, take_rows
from trust.prepare.cells import DELIMITERS, read_record, split_records
from trust.prepare.cursor import Cursor, ScanError
from trust.prepare.fields import show
from trust.prepare.scan import bare_elements
from trust.storage import Storage

_SKIP = 4 << 20
_BATCH_ROWS = 1024


@dataclass(frozen=True)
class RawRow:
    """A row as it lies in its file.

    Attributes:
        line: line it begins on, from 1; null in Parquet and Arrow.
        index: number of the row in its file, from 0 (element of the list, row of the table).
        value: the row, or why it could not be parsed.
    """

    file: str
    line: int | None
    index: int
    value: dict[str, Any] | RowError

    @property
    def place(self) -> str:
        """Where it stands, unique over all files."""
        return f"{self.file}#{self.index}"


class UnitReader:
    """Reads units, best in the order of the plan.

    Args:
        columns: our name -> the user's, which say what the cells of CSV and TSV hold.

    Compressed streams and Parquet row groups can only be read forwards. The last file stays open at the place reached,
    so that a reader that is given units in order passes over each file once, not once a unit.
    """

    def __init__(self, storage: Storage, columns: Mapping[str, str] | None = None) -> None:
        self._storage = storage
        self._columns = columns or {}
        self._open: tuple[str, _Reader] | None = None

    def read(self, source: dict[str, Any]) -> Iterator[RawRow]:
        """The rows of the unit with this `source` (as `trust.prepare.plan` makes it).

        Raises:
            PreflightError: the file is not the one that was planned.
        """
        path, first, rows = source["file"], source["first_row"], source["rows"]
        content = self._reader(source).take(source)
        found: Sequence[tuple[int | None, bytes | dict[str, Any]]]
        found = [*self._split(content, source)] if isinstance(content, bytes) else [(None, row) for row in content]
        if len(found) != rows:
            raise PreflightError(f"{path}: the file was changed while the job ran")
        for index, (line, value) in enumerate(found, first):
            parsed = self._parse(value, source) if isinstance(value, bytes) else value
            yield RawRow(path, line, index, parsed)

    def _split(self, content: bytes, source: Mapping[str, Any]) -> Iterator[tuple[int, bytes]]:
        kind, line = source["format"], source["first_line"]
        if kind in DELIMITERS:
            return split_records(content, line, DELIMITERS[kind])
        return _lines(content, line) if kind == "jsonl" else _elements(content, line, source["keyed"])

    def _parse(self, text: bytes, source: Mapping[str, Any]) -> dict[str, Any] | RowError:
        kind = source["format"]
        if kind in DELIMITERS:
            return read_record(text, source["columns"], DELIMITERS[kind], self._columns)
        return _parse_member(text) if source["keyed"] else _parse(text)

    def close(self) -> None:
        if self._open:
            self._open[1].close()
        self._open = None

    def _reader(self, source: dict[str, Any]) -> "_Reader":
        path = source["file"]
        if not self._open or self._open[0] != path:
            self.close()
            reader: _Reader
            if source["format"] == "parquet":
                reader = _ParquetReader(self._storage, path)
            elif source["format"] == "arrow":
                reader = _ArrowReader(self._storage, path)
            elif source["compression"]:
                reader = _StreamReader(self._storage, path)
            else:
                reader = _FileReader(self._storage, path)
            self._open = (path, reader)
        return self._open[1]


class _Reader(Protocol):
    def take(self, source: Mapping[str, Any]) -> bytes | list[dict[str, Any]]: ...

    def close(self) -> None: ...


class _FileReader:
    def __init__(self, storage: Storage, path: str) -> None:
        self._file = storage.open_input(path)

    def take(self, source: Mapping[str, Any]) -> bytes:
        start, end = source["start"], source["end"]
        self._file.seek(start)
        return bytes(self._file.read(end - start))

    def close(self) -> None:
        self._file.close()


class _StreamReader:
    def __init__(self, storage: Storage, path: str) -> None:
        self._storage, self._path = storage, path
        self._stream = storage.open_stream(path)
        self._offset = 0

    def take(self, source: Mapping[str, Any]) -> bytes:
        start, end = source["start"], source["end"]
        if start < self._offset:
            self._stream.close()
            self._stream, self._offset = self._storage.open_stream(self._path), 0
        while self._offset < start and (passed := self._stream.read(min(_SKIP, start - self._offset))):
            self._offset += len(passed)
        pieces = []
        while self._offset < end and (piece := self._stream.read(end - self._offset)):
            self._offset += len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        self._stream.close()


class _ParquetReader:
    def __init__(self, storage: Storage, path: str) -> None:
        self._source = storage.open_input(path)
        self._file = pq.ParquetFile(self._source)
        metadata = self._file.metadata
        self._bounds = [0]  # row number at which each row group begins, and the end
        for group in range(metadata.num_row_groups):
            self._bounds.append(self._bounds[-1] + metadata.row_group(group).num_rows)
        self._row = -1
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._left: pa.RecordBatch | None = None

    def take(self, source: Mapping[str, Any]) -> list[dict[str, Any]]:
        start, end = source["start"], source["end"]
        group = self._group(start)
        if self._row < 0 or start < self._row or group > self._group(self._row):
            self._batches = self._file.iter_batches(_BATCH_ROWS, row_groups=[*range(group, len(self._bounds) - 1)])
            self._row, self._left = self._bounds[group], None
        rows: list[dict[str, Any]] = []
        while self._row < end:
            batch = self._left if self._left is not None else next(self._batches, None)
            if batch is None:
                break
            first, last = max(start - self._row, 0), min(end - self._row, batch.num_rows)
            if first < last:
                rows += batch.slice(first, last - first).to_pylist(maps_as_pydicts="lossy")
            used = min(end - self._row, batch.num_rows)
            self._left = batch.slice(used) if used < batch.num_rows else None
            self._row += used
        return rows

    def close(self) -> None:
        self._source.close()

    def _group(self, row: int) -> int:
        return next((i for i, bound in enumerate(self._bounds[1:]) if row < bound), len(self._bounds) - 2)


class _ArrowReader:
    def __init__(self, storage: Storage, path: str) -> None:
        self._source = storage.open_input(path)
        self._schema = read_schema(self._source)

    def take(self, source: Mapping[str, Any]) -> list[dict[str, Any]]:
        batches = read_batches(self._source, self._schema, source["start"], source["end"])
        return take_rows(batches, source["skipped"], source["rows"])

    def close(self) -> None:
        self._source.close()


def _lines(content: bytes, first_line: int) -> Iterator[tuple[int, bytes]]:
    for line, text in enumerate(content.split(b"\n"), first_line):
        if text and not text.isspace():
            yield line, text


def _elements(content: bytes, first_line: int, keyed: bool) -> Iterator[tuple[int, bytes]]:
    try:
        for element in bare_elements(Cursor(io.BytesIO(content)), keyed):
            yield first_line + element.line - 1, content[element.start : element.end]
    except ScanError:
        return  # only if the bytes are not those that were planned; the caller counts the rows


def _parse(text: bytes) -> dict[str, Any] | RowError:
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=_object)
    except RowError as error:
        return error
    except UnicodeDecodeError as error:
        return RowError("invalid_utf8", f"byte {error.start + 1} of the row is not UTF-8; save the file as UTF-8")
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno} of the row" if error.lineno > 1 else f"column {error.colno}"
        return RowError("invalid_json", f"{error.msg} at {place}: {_excerpt(error.doc, error.pos)}")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets nested too deep
        return RowError("invalid_json", " ".join(str(error).split()))
    if not isinstance(value, dict):
        return RowError("not_an_object", f"a row must be a JSON object, not {type(value).__name__}")
    return value


def _parse_member(text: bytes) -> dict[str, Any] | RowError:
    """A row that stands under its id; one that has another id of its own keeps it."""
    found = _parse(b"{" + text + b"}")
    if isinstance(found, RowError):
        return found
    [(key, row)] = found.items()
    if not isinstance(row, dict):
        return RowError(
            "not_an_object", f"what stands under {show(key)} must be a JSON object, not {type(row).__name__}"
        )
    return {"id": key} | row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise RowError("repeated_key", f"the key {show(twice)} stands twice in one object: take one of them out")
    return made


def _excerpt(text: str, pos: int) -> str:
    start = max(pos - 20, 0)
    return repr(text[start : pos + 20])
