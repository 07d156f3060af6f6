"""Where the rows of a JSON or JSON Lines file lie, found in one pass and without parsing them."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from trust.prepare.cursor import Cursor, ScanError, show
from trust.units import UNITS

LIST_KEY = "data"


class Span(NamedTuple):
    """Consecutive rows: bytes `start` to `end` (uncompressed), how many, number of the first (from 0), its line, and how
    many rows lie between `start` and it (in Arrow, where batches are read as a whole)."""

    start: int
    end: int
    rows: int
    first_row: int
    first_line: int
    skipped: int = 0

    def joined(self, after: "Span") -> "Span":
        """This span and the one right after it."""
        return self._replace(end=after.end, rows=self.rows + after.rows)


class Cuts:
    """The spans of a file while it is read row by row.

    Args:
        rows: of a span; None begins with one and doubles whenever there are more than `2 * UNITS` spans, so that small
            files are cut finely and the list stays short for any file.
    """

    def __init__(self, rows: int | None) -> None:
        self._doubling = rows is None
        self._width = rows or 1
        self._spans: list[Span] = []
        self._total = 0

    def add(self, start: int, end: int, line: int) -> None:
        """The next row."""
        if self._spans and self._spans[-1].rows < self._width:
            self._spans[-1] = self._spans[-1].joined(Span(start, end, 1, self._total, line))
        else:
            if self._doubling and len(self._spans) >= 2 * UNITS:
                self._width *= 2
                self._spans = join_spans(self._spans, self._width)
            self._spans.append(Span(start, end, 1, self._total, line))
        self._total += 1

    def spans(self) -> list[Span]:
        return self._spans


def join_spans(spans: list[Span], rows: int) -> list[Span]:
    """Neighbours joined as long as a span holds at most `rows`."""
    made: list[Span] = []
    for span in spans:
        if made and made[-1].rows + span.rows <= rows:
            made[-1] = made[-1].joined(span)
        else:
            made.append(span)
    return made


class Element(NamedTuple):
    """One element of a list, or a member of an object with its key: bytes `start` to `end`, and the line that it begins on
    (from 1)."""

    start: int
    end: int
    line: int
    keyed: bool = False


class Rows(NamedTuple):
    """Where the rows of a JSON file lie.

    Attributes:
        other_keys: of the object that holds them.
        keyed: whether they are the members of an object, each with its key in front, and not a list's elements.
    """

    spans: list[Span]
    other_keys: list[str]
    keyed: bool = False


def scan_json(cursor: Cursor, span_rows: int | None, key: str = LIST_KEY, objects: bool = False) -> Rows:
    """Cuts the one list that a JSON file holds, bare or in an object under `key`.

    Args:
        span_rows: elements of a span at most (None: see `Cuts`).
        objects: whether an object of rows by their ids may stand there instead.

    Raises:
        ScanError: there is no such list, or the JSON around its elements is broken.
    """
    other_keys: list[str] = []
    cuts, keyed = Cuts(span_rows), False
    for element in _file_elements(cursor, other_keys, key, objects):
        keyed = element.keyed
        cuts.add(element.start, element.end, element.line)
    return Rows(cuts.spans(), other_keys, keyed)


def scan_lines(cursor: Cursor, span_rows: int | None) -> list[Span]:
    """Cuts a JSON Lines file into spans of at most `span_rows` lines; blank lines are no rows."""
    cuts = Cuts(span_rows)
    end = cursor.offset
    line = 1
    content = False
    while True:
        buffer, base = cursor.buffer, cursor.offset - cursor.pos
        while (newline := buffer.find(b"\n", cursor.pos)) >= 0:
            content = content or not _blank(buffer, cursor.pos, newline)
            if content:
                cuts.add(end, base + newline + 1, line)
            end, line, content = base + newline + 1, line + 1, False
            cursor.pos = newline + 1
        content = content or not _blank(buffer, cursor.pos, len(buffer))
        cursor.pos = len(buffer)
        if not cursor.fill():
            break
    if content:
        cuts.add(end, cursor.offset, line)
    return cuts.spans()


def bare_elements(cursor: Cursor, keyed: bool = False) -> Iterator[Element]:
    """The elements of a span of a list (or an object's members, `keyed`): values with commas between them, up to the end of
    the bytes."""
    while cursor.peek():
        yield _element(cursor, keyed)
        if (comma := cursor.peek()) == b",":
            cursor.pos += 1
        elif comma:
            raise cursor.error(f"expected a comma, found {show(comma)}")


def _file_elements(cursor: Cursor, other_keys: list[str], key: str, objects: bool) -> Iterator[Element]:
    first = cursor.peek()
    if first == b"[":
        yield from _elements(cursor)
    elif first == b"{":
        yield from _object_elements(cursor, other_keys, key, objects)
    else:
        raise cursor.error(f"expected a JSON list, or an object with a list under `{key}`; found {show(first)}")
    if extra := cursor.peek():
        raise cursor.error(f"expected the end of the file, found {show(extra)}")


def _object_elements(cursor: Cursor, other_keys: list[str], key: str, objects: bool) -> Iterator[Element]:
    seen, ended = False, False
    cursor.pos += 1
    if cursor.peek() == b"}":
        raise cursor.error(f"expected a list under `{key}`, found an empty object")
    while not ended:
        name = _key(cursor)
        first = cursor.peek()
        if name != key:
            other_keys.append(name)
            cursor.skip_value()
        elif seen:
            raise cursor.error(f"found a second `{key}`")
        elif first != b"[" and not (objects and first == b"{"):
            raise cursor.error(f"expected a list under `{key}`, found {show(first)}")
        else:
            seen = True
            yield from _elements(cursor, keyed=first == b"{")
        ended = _comma_or(cursor, b"}")
    if not seen:
        keys = ", ".join(f"`{key}`" for key in other_keys[:9])
        many = f"{keys}: name one of them with data.split=" if objects else keys
        raise cursor.error(f"expected a list under `{key}`, found only the keys {many}")


def _elements(cursor: Cursor, keyed: bool = False) -> Iterator[Element]:
    closing = b"}" if keyed else b"]"
    cursor.pos += 1
    ended = cursor.peek() == closing
    if ended:
        cursor.pos += 1
    while not ended:
        yield _element(cursor, keyed)
        ended = _comma_or(cursor, closing)


def _element(cursor: Cursor, keyed: bool) -> Element:
    cursor.peek()
    start, line = cursor.offset, cursor.line
    try:
        if keyed:
            _key(cursor)
        cursor.skip_value()
    except ScanError as error:
        raise ScanError(f"{error} (in the element that begins on line {line})", error.line, error.column) from None
    return Element(start, cursor.offset, line, keyed)


def _key(cursor: Cursor) -> str:
    if (first := cursor.peek()) != b'"':
        raise cursor.error(f"expected a key in quotes, found {show(first)}")
    quoted = cursor.skip_string(keep=True)
    try:
        name = str(json.loads(quoted))
    except ValueError:
        raise cursor.error("found a key that is not valid JSON text") from None
    if (colon := cursor.peek()) != b":":
        raise cursor.error(f"expected a colon after the key `{name[:50]}`, found {show(colon)}")
    cursor.pos += 1
    return name


def _comma_or(cursor: Cursor, closing: bytes) -> bool:
    """Moves behind a comma (False) or the closing bracket (True)."""
    found = cursor.peek()
    if found not in (b",", closing) or not found:
        raise cursor.error(f"expected a comma or {show(closing)}, found {show(found)}")
    cursor.pos += 1
    return found == closing


def _blank(buffer: bytes, start: int, end: int) -> bool:
    piece = buffer[start:end]
    return not piece or piece.isspace()
