"""Cutting input files into units by one pass over their bytes, without parsing rows.

The syntax around rows is checked here, so that a file that is broken as a whole stops the job before it begins; what is
wrong inside a row shows when a worker reads it.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from trust.errors import PreflightError
from trust.prepare import releases
from trust.prepare.arrow import ArrowError, cut_batches, scan_batches
from trust.prepare.cells import DELIMITERS, scan_records
from trust.prepare.config import DataConfig
from trust.prepare.cursor import Cursor, ScanError
from trust.prepare.files import InputFile, find_files
from trust.prepare.scan import LIST_KEY, Span, join_spans, scan_json, scan_lines
from trust.storage import Storage
from trust.units import UNITS, Unit, unit_size

T = TypeVar("T")

UNIT_ROWS = 2048  # at most


@dataclass(frozen=True)
class FilePlan:
    """One file, cut into units.

    Attributes:
        fingerprint: sha256 over the uncompressed bytes (of Arrow, over its batches); for Parquet over footer and size.
        rows: rows it holds, broken ones included.
        spans: its cuts, in order.
        columns: the names in its header (CSV and TSV).
        warnings: sentences for people.
        keyed: whether its rows are an object's members (trust.prepare.scan.Rows).
    """

    file: InputFile
    fingerprint: str
    rows: int
    spans: list[Span]
    columns: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    keyed: bool = False


@dataclass(frozen=True)
class Plan:
    """All units of a data set; the order of files has no part in their names.

    Attributes:
        inputs: per file `path`, `format`, `fingerprint`, `rows`, `bytes`, for the manifest.
        fingerprint: over the files' contents, whatever their names and order.
    """

    units: list[Unit]
    rows: int
    inputs: list[dict[str, Any]]
    fingerprint: str
    warnings: list[str]


class Spread(Protocol):
    """Calls a function for each tuple of arguments and gives the results in order, as `itertools.starmap` does here and
    `trust.prepare.job.on_cluster` on a cluster."""

    def __call__(self, function: Callable[..., T], arguments: Iterable[tuple[Any, ...]], /) -> Iterable[T]: ...


def plan(data: DataConfig, storage: Storage, unit_rows: int | None, spread: Spread = starmap) -> Plan:
    """Finds the files of `data.path` and cuts each into units of at most `unit_rows` rows (None: trust.units.unit_size).

    Args:
        spread: how `plan_file` is called for all files.

    Raises:
        ConfigError: no path is set.
        PreflightError: a file is missing, cannot be read as a whole, or there is no row at all.
    """
    files, warnings = find_files(data, storage)
    objects = data.kind in releases.KINDS
    key = data.split if objects and data.split else LIST_KEY
    planned = spread(plan_file, [(file, storage, unit_rows, key, objects) for file in files])
    return combine(data, planned, unit_rows, warnings)


def plan_file(
    file: InputFile, storage: Storage, unit_rows: int | None, key: str = LIST_KEY, objects: bool = False
) -> FilePlan:
    """Cuts one file; reads it once, in bounded memory (of Parquet only the footer).

    Args:
        key, objects: where the rows of a JSON file lie (trust.prepare.scan.scan_json).

    Raises:
        PreflightError: names file, line, column and what was found there.
    """
    try:
        if file.format == "parquet":
            return _plan_parquet(file, storage, unit_rows)
        if file.format == "arrow":
            return _plan_arrow(file, storage, unit_rows)
        digest = hashlib.sha256()
        other_keys: list[str] = []
        columns: list[str] = []
        keyed = False
        with storage.open_stream(file.path) as stream:
            cursor = Cursor(stream, digest)
            if file.format == "json":
                spans, other_keys, keyed = scan_json(cursor, unit_rows, key, objects)
            elif file.format in DELIMITERS:
                columns, spans = scan_records(cursor, unit_rows, DELIMITERS[file.format])
            else:
                spans = scan_lines(cursor, unit_rows)
    except ScanError as error:
        raise PreflightError(f"{file.path}, line {error.line}, column {error.column}: {error}") from error
    except (OSError, pa.ArrowInvalid, ArrowError) as error:
        raise PreflightError(f"{file.path}: cannot be read: {' '.join(str(error).split())}") from error
    warnings = [f"{file.path}: keys beside `{key}` are not read: {', '.join(other_keys)}"] if other_keys else []
    if "" in columns:
        warnings.append(f"{file.path}: {columns.count('')} columns without a name in the header are not read")
    return FilePlan(file, digest.hexdigest(), sum(span.rows for span in spans), spans, columns, warnings, keyed)


def combine(data: DataConfig, plans: Iterable[FilePlan], unit_rows: int | None, warnings: Iterable[str] = ()) -> Plan:
    """One plan for all files.

    Raises:
        PreflightError: no file has a row.
    """
    kept: list[FilePlan] = []
    rows = 0
    inputs: list[dict[str, Any]] = []
    notes = list(warnings)
    for item in plans:
        notes += item.warnings
        if not item.rows:
            notes.append(f"{item.file.path}: the file has no row")
        rows += item.rows
        # Joined as they come, since the final size is at least that of the rows so far: many files make no long list.
        kept.append(replace(item, spans=join_spans(item.spans, unit_size(rows, unit_rows, UNIT_ROWS))))
        inputs.append(
            {
                "path": item.file.path,
                "format": item.file.format,
                "fingerprint": item.fingerprint,
                "rows": item.rows,
                "bytes": item.file.size,
            }
        )
    if not rows:
        raise PreflightError(f"data.path={data.path}: there is no row in {len(inputs)} file(s)")
    whole = hashlib.sha256("\n".join(sorted(item["fingerprint"] for item in inputs)).encode()).hexdigest()
    size = unit_size(rows, unit_rows, UNIT_ROWS)
    copies: Counter[str] = Counter()
    units: list[Unit] = []
    for item in kept:
        copies[item.fingerprint] += 1
        units += _units(replace(item, spans=join_spans(item.spans, size)), copies[item.fingerprint])
    return Plan(units, rows, inputs, whole, notes)


def _units(item: FilePlan, copy: int) -> list[Unit]:
    # Two files of the same content would share their units' names, and one would be lost.
    prefix = item.fingerprint[:12] + (f"-{copy}" if copy > 1 else "")
    return [
        Unit(
            f"{prefix}-{span.first_row:09d}-{span.rows}",
            {
                "file": item.file.path,
                "format": item.file.format,
                "compression": item.file.compression,
                "start": span.start,
                "end": span.end,
                "rows": span.rows,
                "first_row": span.first_row,
                "first_line": span.first_line,
                "skipped": span.skipped,
                "columns": item.columns,
                "keyed": item.keyed,
            },
            span.rows,
        )
        for span in item.spans
    ]


def _plan_parquet(file: InputFile, storage: Storage, unit_rows: int | None) -> FilePlan:
    with storage.open_input(file.path) as source:
        rows = pq.ParquetFile(source).metadata.num_rows
        source.seek(file.size - 8)
        length = int.from_bytes(source.read(4), "little")
        source.seek(file.size - 8 - length)
        footer = source.read(length)
    fingerprint = hashlib.sha256(footer + str(file.size).encode()).hexdigest()
    unit_rows = unit_rows or max(1, rows // (2 * UNITS))
    spans = [
        Span(start, min(start + unit_rows, rows), min(unit_rows, rows - start), start, 0)
        for start in range(0, rows, unit_rows)
    ]
    return FilePlan(file, fingerprint, rows, spans)


def _plan_arrow(file: InputFile, storage: Storage, unit_rows: int | None) -> FilePlan:
    with storage.open_input(file.path) as source:
        fingerprint, batches = scan_batches(source)
    rows = sum(batch.rows for batch in batches)
    return FilePlan(file, fingerprint, rows, cut_batches(batches, unit_rows or max(1, rows // (2 * UNITS))))
