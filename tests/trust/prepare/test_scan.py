import io
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from trust.prepare.cursor import Cursor, ScanError
from trust.prepare.scan import bare_elements, scan_json, scan_lines

ELEMENTS = [{"a": [1, "]}"]}, 3, 'q"\\', None, [[]], {}, {"b": {"c": "é\n"}}]


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"x": {"data": [1]}, "data": rows, "y": "]"}])
@pytest.mark.parametrize("span_rows", [1, 2, 7, 100])
def test_spans_hold_the_elements_in_order(chunk: int, indent: int | None, wrap, span_rows: int) -> None:
    data = json.dumps(wrap(ELEMENTS), indent=indent).encode()
    spans, other_keys, _ = scan_json(Cursor(io.BytesIO(data), chunk=chunk), span_rows)
    assert other_keys == ([] if isinstance(wrap([]), list) else ["x", "y"])
    found = []
    for span in spans:
        assert span.first_row == len(found)
        piece = data[span.start : span.end]
        elements = list(bare_elements(Cursor(io.BytesIO(piece))))
        assert len(elements) == span.rows <= span_rows
        assert span.first_line == data.count(b"\n", 0, span.start) + 1
        for element in elements:
            assert element.line == piece.count(b"\n", 0, element.start) + 1
            found.append(json.loads(piece[element.start : element.end]))
    assert found == ELEMENTS


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "expected a JSON list", 1),
        ("hello", "found `h`", 1),
        ("{}", "empty object", 1),
        ('{"rows": []}', "found only the keys `rows`", 1),
        ('{"data": {}}', "expected a list under `data`, found `{`", 1),
        ('{"data": [1],\n"data": [2]}', "second `data`", 2),
        ('{"data" [1]}', "expected a colon", 1),
        ("{data: [1]}", "expected a key in quotes", 1),
        ("[1,\n2", "found the end of the file", 2),
        ("[1\n2]", "expected a comma", 2),
        ("[1,\n]", "expected a value, found `]`", 2),
        ("[1]\n\nx", "expected the end of the file, found `x`", 3),
        ('[\n{"a": 1},\n{"a": "x', "inside a string .in the element that begins on line 3", 3),
        ('[\n{"a": [1}\n,{"b": 1}]\n', "found `}`, which closes nothing .* begins on line 2", 2),
        ('[\n{"a": {"b": 1},\n{"c": 1}\n]', "found `]`, which closes nothing .* begins on line 2", 4),
        ('[\n{"a": [\n', "ends inside an object or list .in the element that begins on line 2", 3),
    ],
)
def test_broken_files_are_named_with_line(text: str, message: str, line: int) -> None:
    with pytest.raises(ScanError, match=message) as caught:
        scan_json(Cursor(io.BytesIO(text.encode())), 5)
    assert caught.value.line == line


@pytest.mark.parametrize("chunk", [1, 2, 5, 1 << 20])
@pytest.mark.parametrize("span_rows", [1, 2, 100])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_lines_are_cut_at_newlines_and_blank_ones_are_no_rows(chunk: int, span_rows: int, end: str) -> None:
    text = '\n{"a": "x\\ny"}\r\n\n  \nbroken\n{"b": "\u2028"}' + end
    data = text.encode("utf-8-sig")
    spans = scan_lines(Cursor(io.BytesIO(data), chunk=chunk), span_rows)
    found = []
    for span in spans:
        assert span.first_row == len(found)
        rows = [line for line in data[span.start : span.end].split(b"\n") if line.strip()]
        assert len(rows) == span.rows
        assert span.first_line == data.count(b"\n", 0, span.start) + 1
        found += [row.strip().decode() for row in rows]
    assert found == ['{"a": "x\\ny"}', "broken", '{"b": "\u2028"}']


class Made:
    """A file of 20,000 rows that is never in memory as a whole."""

    def __init__(self, json_list: bool) -> None:
        self._pieces = self._make(json_list)
        self.size = 0

    @staticmethod
    def _make(json_list: bool) -> Iterator[bytes]:
        text = "word " * 600
        yield b'{"data": [' if json_list else b""
        for number in range(20_000):
            row = json.dumps({"question": f"q{number}", "docs": [{"text": text}]}).encode()
            yield (b"," if number and json_list else b"") + row + b"\n"
        yield b"]}" if json_list else b""

    def read(self, size: int, /) -> bytes:
        found = b""
        while len(found) < min(size, 100_000) and (piece := next(self._pieces, None)) is not None:
            found += piece
        self.size += len(found)
        return found


@pytest.mark.parametrize("json_list", [True, False])
def test_twenty_thousand_rows_in_bounded_memory(json_list: bool) -> None:
    made = Made(json_list)
    tracemalloc.start()
    spans = scan_json(Cursor(made), 500)[0] if json_list else scan_lines(Cursor(made), 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(spans) == 40
    assert sum(span.rows for span in spans) == 20_000
    assert made.size > 60e6
    assert peak < 3e6


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize("span_rows", [1, 2, 9])
def test_rows_of_a_release_may_stand_under_their_ids(chunk: int, span_rows: int) -> None:
    rows = {"a": {"n": [1, "}"]}, 'b"': {}, "c": {"n": {"m": 2}}}
    data = json.dumps({"dev": {"x": {}}, "train": rows}, indent=1).encode()
    spans, other_keys, keyed = scan_json(Cursor(io.BytesIO(data), chunk=chunk), span_rows, "train", objects=True)
    assert (other_keys, keyed) == (["dev"], True)
    found = {}
    for span in spans:
        piece = data[span.start : span.end]
        members = list(bare_elements(Cursor(io.BytesIO(piece)), keyed))
        assert len(members) == span.rows <= span_rows
        for member in members:
            found |= json.loads(b"{" + piece[member.start : member.end] + b"}")
    assert found == rows


def test_a_release_of_several_splits_wants_one_named() -> None:
    with pytest.raises(ScanError, match=r"only the keys `train`, `dev`: name one of them with data\.split="):
        scan_json(Cursor(io.BytesIO(b'{"train": {}, "dev": {}}')), 5, objects=True)
