"""CSV and TSV (RFC 4180): a header, then a record a row; cells in quotes may hold delimiters, quotes and line breaks.

Records are found by a regular expression over bytes, so that a file is cut into units without reading its cells.
"""

import csv
import functools
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trust.errors import RowError
from trust.prepare.answers import FORMS
from trust.prepare.cursor import Cursor
from trust.prepare.scan import Cuts, Span

DELIMITERS = {"csv": ",", "tsv": "\t"}
_LONGEST = 64 << 20  # bytes of a record; a quote that nobody closed must not take the whole file into memory

# A list or an object in a cell is JSON text. In these columns a cell that looks like one has to be; in the others it may.
_LISTS = ("answers", "docs", "references")
_OBJECTS = ("context", "meta")
_COUNTS = ("draw", "prompt_tokens", "output_tokens")

csv.field_size_limit(_LONGEST)


def scan_records(cursor: Cursor, rows: int | None, delimiter: str) -> tuple[list[str], list[Span]]:
    """The names in the header (empty for a column without one), and where the rows lie.

    Args:
        rows: of a span, see `trust.prepare.scan.Cuts`.

    Raises:
        ScanError: there is no header, a name stands twice, or a quote is never closed.
    """
    found = _records(cursor, delimiter)
    header = next(found, None)
    if header is None:
        raise cursor.error("expected a header with the names of the columns, found the end of the file")
    try:
        names = [name.strip() for name in _cells(header[3].decode(), delimiter)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise cursor.error(f"the header cannot be read: {error}") from None
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise cursor.error(f"two columns have the name {twice!r}; give each its own")
    if len(names) == 1 and (other := next((mark for mark in ";\t|," if mark != delimiter and mark in names[0]), None)):
        raise cursor.error(
            f"the header has no {delimiter!r}, but {other!r}: save the file with {delimiter!r} between cells"
        )
    cuts = Cuts(rows)
    for start, end, line, _ in found:
        cuts.add(start, end, line)
    return names, cuts.spans()


def split_records(content: bytes, first_line: int, delimiter: str) -> Iterator[tuple[int, bytes]]:
    """The records of a span, each with its line."""
    for _, _, line, record in _records(Cursor(io.BytesIO(content)), delimiter):
        yield first_line + line - 1, record


def read_record(
    record: bytes, names: Sequence[str], delimiter: str, columns: Mapping[str, str]
) -> dict[str, Any] | RowError:
    """A record as a row; an empty cell is null.

    Args:
        names: as in the header; a column without a name is not read.
        columns: our name -> the user's (`trust.prepare.config.DataConfig.columns`).
    """
    try:
        cells = _cells(record.decode(), delimiter)
    except UnicodeDecodeError as error:
        return RowError("invalid_utf8", f"byte {error.start + 1} of the row is not UTF-8; save the file as UTF-8")
    except csv.Error as error:
        return RowError("invalid_csv", f"{error}; a quote within a cell in quotes is written twice")
    if len(cells) != len(names):
        return RowError(
            "wrong_cell_count",
            f"the row has {len(cells)} cells for {len(names)} columns; a cell with {delimiter!r} or a line break in it "
            "stands in quotes",
        )
    lists, objects, counts = _kinds(tuple(names), tuple(sorted(columns.items())))
    row: dict[str, Any] = {}
    try:
        for name, cell in zip(names, cells, strict=True):
            if name:
                row[name] = _value(name, cell, name in lists, name in objects, name in counts)
    except RowError as error:
        return error
    return row


def _value(name: str, cell: str, is_list: bool, is_object: bool, is_count: bool) -> Any:
    if not cell:
        return None
    if is_count and cell.strip().isdecimal():
        return int(cell)
    if not (is_list or is_object) or not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        if is_object:
            return cell
        raise RowError(
            "invalid_json",
            f"{name} looks like a list, but is no JSON: {' '.join(str(error).split())}; write it as json.dumps does",
            name,
        ) from None


@functools.lru_cache
def _kinds(names: tuple[str, ...], mapped: tuple[tuple[str, str], ...]) -> tuple[set[str], set[str], set[str]]:
    """Names of the columns that hold lists, may hold objects, and hold whole numbers."""
    columns = dict(mapped)

    def at(ours: str) -> str:
        """The cell that holds a column: of its own, or the one that a dotted path leads into."""
        path = columns.get(ours, ours)
        return path if path in names else path.partition(".")[0]

    paths = {at(ours) for ours, path in columns.items() if path and path not in names}
    return {*map(at, _LISTS), *FORMS, "annotations", *paths}, {*_OBJECTS}, {at("draw"), *_COUNTS[1:]}


def _cells(record: str, delimiter: str) -> list[str]:
    """Raises csv.Error."""
    rows = [*csv.reader(io.StringIO(record, newline="\n"), delimiter=delimiter, strict=True)]
    return rows[0]


@functools.cache
def _pattern(delimiter: str) -> re.Pattern[bytes]:
    """A record up to its line break. A cell that begins with a quote goes on to the next one that is not doubled."""
    rest = rb"[^%b\n]*+" % delimiter.encode()
    cell = rb'(?:"(?:[^"]++|"")*+"%b|(?!")%b)' % (rest, rest)
    return re.compile(rb"%b(?:%b%b)*+\n" % (cell, delimiter.encode(), cell))


def _records(cursor: Cursor, delimiter: str) -> Iterator[tuple[int, int, int, bytes]]:
    """Start, end, line and bytes of each record; blank lines are none.

    Raises:
        ScanError: a quote is never closed.
    """
    match = _pattern(delimiter).match
    while True:
        found = match(cursor.buffer, cursor.pos)
        if not found:
            left = len(cursor.buffer) - cursor.pos
            if left <= _LONGEST and cursor.fill():
                continue
            found = match(cursor.buffer + b"\n", cursor.pos) if left <= _LONGEST else None  # the last line may not end
            if not found:
                raise cursor.error("the row that begins here has a quote that is never closed")
        start, line, record = cursor.offset, cursor.line, found.group()
        cursor.pos = min(found.end(), len(cursor.buffer))
        if not record.isspace():
            yield start, cursor.offset, line, record
        elif cursor.pos == len(cursor.buffer) and not cursor.fill():
            return
