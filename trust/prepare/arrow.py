"""Arrow streams, as Hugging Face `datasets` saves them: record batches one after the other, found and read by their bytes."""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from trust.prepare.scan import Span

_FILE = b"ARROW1"


class ArrowError(Exception):
    """The file is no Arrow stream that can be read in parts."""


class Batch(NamedTuple):
    """A record batch: bytes `start` to `end`, number of its first row, and how many it has."""

    start: int
    end: int
    first_row: int
    rows: int


def scan_batches(source: pa.NativeFile) -> tuple[str, list[Batch]]:
    """A sha256 over the stream and where its batches lie; one of them is in memory at a time.

    Raises:
        ArrowError: says what the file is instead.
    """
    digest = hashlib.sha256()
    batches: list[Batch] = []
    rows = 0
    schema = read_schema(source)
    digest.update(schema.serialize())
    start = source.tell()
    while message := _next(source):
        if message.type != "record batch":
            raise ArrowError(f"a {message.type} is among its batches; save columns of categories as texts")
        found = pa.ipc.read_record_batch(message, schema).num_rows
        digest.update(message.metadata)
        digest.update(message.body)
        batches.append(Batch(start, source.tell(), rows, found))
        start, rows = source.tell(), rows + found
    return digest.hexdigest(), batches


def cut_batches(batches: list[Batch], rows: int) -> list[Span]:
    """Spans of at most `rows` rows; each takes in the bytes of all batches that hold them."""
    spans = []
    total = batches[-1].first_row + batches[-1].rows if batches else 0
    first = 0
    for start in range(0, total, rows):
        end = min(start + rows, total)
        while batches[first].first_row + batches[first].rows <= start:
            first += 1
        last = first
        while batches[last].first_row + batches[last].rows < end:
            last += 1
        skipped = start - batches[first].first_row
        spans.append(Span(batches[first].start, batches[last].end, end - start, start, 0, skipped))
    return spans


def read_schema(source: pa.NativeFile) -> pa.Schema:
    """The schema at the beginning of a stream; the position is then at its first batch."""
    source.seek(0)
    if source.read(len(_FILE)) == _FILE:
        raise ArrowError("it is an Arrow file (Feather), not a stream; save it as Parquet")
    source.seek(0)
    message = _next(source)
    if message is None or message.type != "schema":
        raise ArrowError("it does not begin with a schema")
    return pa.ipc.read_schema(message)


def read_batches(source: pa.NativeFile, schema: pa.Schema, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The batches between two places in the stream."""
    source.seek(start)
    while source.tell() < end and (message := _next(source)):
        yield pa.ipc.read_record_batch(message, schema)


def take_rows(batches: Iterator[pa.RecordBatch], skip: int, rows: int) -> list[dict[str, Any]]:
    """`rows` rows behind the first `skip`."""
    found: list[dict[str, Any]] = []
    for batch in batches:
        used = batch.slice(skip, rows - len(found)) if skip < batch.num_rows else batch.slice(0, 0)
        found += used.to_pylist(maps_as_pydicts="lossy")
        skip = max(0, skip - batch.num_rows)
    return found


def _next(source: pa.NativeFile) -> pa.Message | None:
    try:
        return pa.ipc.read_message(source)
    except EOFError:
        return None
    except (pa.ArrowInvalid, OSError) as error:
        raise ArrowError(" ".join(str(error).split())) from error
