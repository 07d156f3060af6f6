"""Where the rows of a JSON or JSON Lines file lie, found in one pass and without parsing them."""

import json
from collections.abc import Iterator
from typing import NamedTuple

from trust.prepare.cursor import Cursor, ScanError, show

LIST_KEY = "data"


class Span(NamedTuple):
    """Consecutive rows: bytes `start` to `end` (uncompressed), how many, number of the first (from 0), its line."""

    start: int
    end: int
    rows: int
    first_row: int
    first_line: int


class Element(NamedTuple):
    """One element of a list: bytes `start` to `end`, and the line that it begins on (from 1)."""

    start: int
    end: int
    line: int


def scan_json(cursor: Cursor, span_rows: int) -> tuple[list[Span], list[str]]:
    """Cuts the one list that a JSON file holds, bare or in an object under `data`.

    Returns:
        Spans of at most `span_rows` elements, and the object's other keys.

    Raises:
        ScanError: there is no such list, or the JSON around its elements is broken.
    """
    spans: list[Span] = []
    other_keys: list[str] = []
    first: Element | None = None
    rows = total = 0
    for element in _file_elements(cursor, other_keys):
        first = first or element
        rows, total = rows + 1, total + 1
        if rows == span_rows:
            spans.append(Span(first.start, element.end, rows, total - rows, first.line))
            first, rows = None, 0
        end = element.end
    if first:
        spans.append(Span(first.start, end, rows, total - rows, first.line))
    return spans, other_keys


def scan_lines(cursor: Cursor, span_rows: int) -> list[Span]:
    """Cuts a JSON Lines file into spans of at most `span_rows` lines; blank lines are no rows."""
    spans: list[Span] = []
    start = end = cursor.offset
    line = first_line = 1
    rows = total = 0
    content = False
    while True:
        buffer, base = cursor.buffer, cursor.offset - cursor.pos
        while (newline := buffer.find(b"\n", cursor.pos)) >= 0:
            content = content or not _blank(buffer, cursor.pos, newline)
            if content:
                if not rows:
                    start, first_line = end, line
                rows, total = rows + 1, total + 1
                if rows == span_rows:
                    spans.append(Span(start, base + newline + 1, rows, total - rows, first_line))
                    rows = 0
            end, line, content = base + newline + 1, line + 1, False
            cursor.pos = newline + 1
        content = content or not _blank(buffer, cursor.pos, len(buffer))
        cursor.pos = len(buffer)
        if not cursor.fill():
            break
    if content:
        if not rows:
            start, first_line = end, line
        rows, total = rows + 1, total + 1
    if rows:
        spans.append(Span(start, cursor.offset, rows, total - rows, first_line))
    return spans


def bare_elements(cursor: Cursor) -> Iterator[Element]:
    """The elements of a span of a list: values with commas between them, up to the end of the bytes."""
    while cursor.peek():
        yield _element(cursor)
        if (comma := cursor.peek()) == b",":
            cursor.pos += 1
        elif comma:
            raise cursor.error(f"expected a comma, found {show(comma)}")


def _file_elements(cursor: Cursor, other_keys: list[str]) -> Iterator[Element]:
    first = cursor.peek()
    if first == b"[":
        yield from _list_elements(cursor)
    elif first == b"{":
        yield from _object_elements(cursor, other_keys)
    else:
        raise cursor.error(f"expected a JSON list, or an object with a list under `{LIST_KEY}`; found {show(first)}")
    if extra := cursor.peek():
        raise cursor.error(f"expected the end of the file, found {show(extra)}")


def _object_elements(cursor: Cursor, other_keys: list[str]) -> Iterator[Element]:
    seen, ended = False, False
    cursor.pos += 1
    if cursor.peek() == b"}":
        raise cursor.error(f"expected a list under `{LIST_KEY}`, found an empty object")
    while not ended:
        name = _key(cursor)
        first = cursor.peek()
        if name != LIST_KEY:
            other_keys.append(name)
            cursor.skip_value()
        elif seen:
            raise cursor.error(f"found a second `{LIST_KEY}`")
        elif first != b"[":
            raise cursor.error(f"expected a list under `{LIST_KEY}`, found {show(first)}")
        else:
            seen = True
            yield from _list_elements(cursor)
        ended = _comma_or(cursor, b"}")
    if not seen:
        keys = ", ".join(f"`{key}`" for key in other_keys[:9])
        raise cursor.error(f"expected a list under `{LIST_KEY}`, found only the keys {keys}")


def _list_elements(cursor: Cursor) -> Iterator[Element]:
    cursor.pos += 1
    ended = cursor.peek() == b"]"
    if ended:
        cursor.pos += 1
    while not ended:
        yield _element(cursor)
        ended = _comma_or(cursor, b"]")


def _element(cursor: Cursor) -> Element:
    cursor.peek()
    start, line = cursor.offset, cursor.line
    try:
        cursor.skip_value()
    except ScanError as error:
        raise ScanError(f"{error} (in the element that begins on line {line})", error.line, error.column) from None
    return Element(start, cursor.offset, line)


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
