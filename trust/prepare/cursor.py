"""A window that moves forward over JSON bytes, skipping values without parsing them.

Strings are skipped by a regular expression and only brackets are looked at, so that a file is cut into units about as
fast as it can be read, and in memory bounded by the chunk.
"""

import re
from typing import Protocol

CHUNK = 4 << 20

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING_BODY = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)
_SCALAR = re.compile(rb'[^\s,:"\[\]{}]*+')
_NO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.S)
_TO_BRACKET = re.compile(_NO_BRACKET.pattern + rb"[\[\]{}]", re.S)
_CLOSED_BY = {ord("["): ord("]"), ord("{"): ord("}")}


class Source(Protocol):
    """What bytes come from: a file or a stream."""

    def read(self, size: int, /) -> bytes: ...


class Digest(Protocol):
    """A running hash."""

    def update(self, data: bytes, /) -> None: ...


class ScanError(Exception):
    """The file is not what it should be.

    Args:
        message: what was found and what was expected.
        line: from 1.
        column: in bytes, from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class Cursor:
    """A position in a stream of bytes that only moves forward.

    Args:
        stream: of uncompressed bytes; a UTF-8 byte order mark is skipped.
        digest: is given every byte that is read.
        chunk: bytes read at a time.

    Raises:
        ScanError: the stream is UTF-16.
    """

    def __init__(self, stream: Source, digest: Digest | None = None, chunk: int = CHUNK) -> None:
        self._stream, self._digest, self._chunk = stream, digest, chunk
        self._base = 0  # offset of the buffer's first byte
        self._line, self._line_start, self._counted = 1, 0, 0
        self.buffer = b""
        self.pos = 0
        while len(self.buffer) < 3 and self.fill():
            pass
        if self.buffer.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ScanError("the file is UTF-16; save it as UTF-8", 1, 1)
        if self.buffer.startswith(b"\xef\xbb\xbf"):
            self.pos = 3

    def fill(self) -> bool:
        """Reads on, dropping what lies behind the position; False at the end of the file."""
        more = self._stream.read(self._chunk)
        if not more:
            return False
        if self._digest:
            self._digest.update(more)
        self._count_lines()
        self._base += self.pos
        self.buffer = self.buffer[self.pos :] + more
        self.pos = self._counted = 0
        return True

    @property
    def offset(self) -> int:
        """Bytes before the position."""
        return self._base + self.pos

    @property
    def line(self) -> int:
        """Number of the line at the position, from 1."""
        self._count_lines()
        return self._line

    def error(self, message: str) -> ScanError:
        self._count_lines()
        return ScanError(message, self._line, self.offset - self._line_start + 1)

    def peek(self) -> bytes:
        """The next byte that is not white space, moving up to it; empty at the end of the file."""
        while True:
            self.pos = _end(_SPACE, self.buffer, self.pos)
            if self.pos < len(self.buffer):
                return self.buffer[self.pos : self.pos + 1]
            if not self.fill():
                return b""

    def skip_value(self) -> None:
        """Moves behind the JSON value at the position. Of what lies inside only strings and brackets are checked."""
        first = self.peek()
        if first == b'"':
            self.skip_string()
        elif first in (b"[", b"{"):
            self._skip_nested()
        else:
            self._skip_scalar(first)

    def skip_string(self, keep: bool = False) -> bytes:
        """Moves behind the string whose opening quote is at the position; returns its bytes if asked to keep them."""
        kept, start = b"", self.pos
        self.pos += 1
        while True:
            self.pos = _end(_STRING_BODY, self.buffer, self.pos)
            if self.buffer.startswith(b'"', self.pos):
                self.pos += 1
                return kept + self.buffer[start : self.pos] if keep else b""
            if keep:
                kept += self.buffer[start : self.pos]
            if not self.fill():
                raise self.error("the file ends inside a string")
            start = 0

    def _skip_scalar(self, first: bytes) -> None:
        start = self.offset
        while True:
            self.pos = _end(_SCALAR, self.buffer, self.pos)
            if self.pos < len(self.buffer) or not self.fill():
                break
        if self.offset == start:
            raise self.error(f"expected a value, found {show(first)}")

    def _skip_nested(self) -> None:
        awaited: list[int] = []  # closing brackets, innermost last
        to_bracket = _TO_BRACKET.match
        while True:
            if found := to_bracket(self.buffer, self.pos):
                self.pos = found.end()
                bracket = self.buffer[self.pos - 1]
                if bracket in _CLOSED_BY:
                    awaited.append(_CLOSED_BY[bracket])
                elif awaited.pop() != bracket:
                    self.pos -= 1
                    raise self.error(f"found {show(bytes([bracket]))}, which closes nothing that is open here")
                elif not awaited:
                    return
                continue
            self.pos = _end(_NO_BRACKET, self.buffer, self.pos)
            if self.pos < len(self.buffer):
                self.skip_string()
            elif not self.fill():
                raise self.error("the file ends inside an object or list")

    def _count_lines(self) -> None:
        newlines = self.buffer.count(b"\n", self._counted, self.pos)
        if newlines:
            self._line += newlines
            self._line_start = self._base + self.buffer.rfind(b"\n", self._counted, self.pos) + 1
        self._counted = self.pos


def show(byte: bytes) -> str:
    """A byte for an error message."""
    return f"`{byte.decode('latin-1')}`" if byte else "the end of the file"


def _end(pattern: re.Pattern[bytes], buffer: bytes, pos: int) -> int:
    found = pattern.match(buffer, pos)
    assert found, "the pattern matches the empty string"
    return found.end()
