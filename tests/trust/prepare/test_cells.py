"""CSV and TSV: records found in any chunks, cells read by RFC 4180, and rows that say what is wrong with them."""

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.trust.prepare.helpers import lines, prepare, sample, write
from trust.errors import PreflightError, RowError
from trust.prepare.cells import read_record, scan_records, split_records
from trust.prepare.cursor import Cursor, ScanError

ROWS = [
    ["plain", "1", ""],
    ["with, comma", 'a "quoted" word', "x"],
    ["two\nlines", "and\r\nmore", '"'],
    ["ünïcode 日本", "", "  spaces  "],
    ['5" pipe', "", "=1+1"],
]


def text_of(rows: list[list[str]], end: str = "\r\n", **options: Any) -> str:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator=end, **options)
    writer.writerows([["a", "b", "c"], *rows])
    return sink.getvalue()


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("kind", "quoting"), [(",", csv.QUOTE_MINIMAL), (",", csv.QUOTE_ALL), ("\t", csv.QUOTE_MINIMAL)]
)
@pytest.mark.parametrize("span_rows", [1, 2, 100])
def test_spans_hold_the_records_in_order(chunk: int, end: str, kind: str, quoting: int, span_rows: int) -> None:
    data = text_of(ROWS, end, delimiter=kind, quoting=quoting).encode("utf-8-sig")
    data = data.replace(b"plain", b"plain") + (b"\r\n\n" if chunk != 2 else b"")
    names, spans = scan_records(Cursor(io.BytesIO(data), chunk=chunk), span_rows, kind)
    assert names == ["a", "b", "c"]
    found = []
    for span in spans:
        assert span.first_row == len(found)
        piece = data[span.start : span.end]
        assert span.first_line == data.count(b"\n", 0, span.start) + 1
        records = [*split_records(piece, span.first_line, kind)]
        assert len(records) == span.rows <= span_rows
        for line, record in records:
            assert data.split(b"\n")[line - 1].startswith(record.split(b"\n")[0][:5])
            found.append(read_record(record, names, kind, {}))
    assert found == [{name: cell or None for name, cell in zip("abc", row, strict=True)} for row in ROWS]


def test_the_last_line_needs_no_end() -> None:
    names, spans = scan_records(Cursor(io.BytesIO(b'a,b\n1,2\n3,"4"')), None, ",")
    assert (names, sum(span.rows for span in spans)) == (["a", "b"], 2)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "expected a header", 1),
        ("\n\n", "expected a header", 3),
        ("a,b,a\n1,2,3\n", "two columns have the name 'a'", 2),
        ('a,b\n1,2\n3,"4\n5,6\n', "begins here has a quote that is never closed", 3),
        ('a,"b\n1,2\n', "begins here has a quote that is never closed", 1),
        ("question;docs\nq;d\n", "the header has no ',', but ';'", 2),
        ("a,b\r1,2\r", "the header cannot be read", 1),
    ],
)
def test_broken_files_are_named_with_line(text: str, message: str, line: int) -> None:
    with pytest.raises(ScanError, match=message) as caught:
        scan_records(Cursor(io.BytesIO(text.encode())), 5, ",")
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("record", "reason", "detail"),
    [
        (b"1,2\n", "wrong_cell_count", "2 cells for 3 columns"),
        (b"1,2,3,4\n", "wrong_cell_count", "4 cells for 3 columns"),
        (b'1,"2"x,3\n', "invalid_csv", "written twice"),
        (b"1,\xff,3\n", "invalid_utf8", "byte 3"),
    ],
)
def test_rows_that_cannot_be_read(record: bytes, reason: str, detail: str) -> None:
    found = read_record(record, ["a", "b", "c"], ",", {})
    assert isinstance(found, RowError)
    assert found.reason == reason
    assert detail in found.detail


@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [
        ("answers", '[["a", "b"]]', [["a", "b"]]),
        ("answers", "Paris", "Paris"),
        ("qa_pairs", '[{"short_answers": ["x"]}]', [{"short_answers": ["x"]}]),
        ("output", "[1] says so", "[1] says so"),
        ("output", '["a", "b"]', '["a", "b"]'),
        ("meta", '{"a": 1}', {"a": 1}),
        ("meta", "{broken", "{broken"),
        ("draw", "2", 2),
        ("id", "007", "007"),
        ("own", "[1, 2]", "[1, 2]"),
        ("own", "", None),
    ],
)
def test_what_cells_hold_follows_from_their_column(name: str, cell: str, value: Any) -> None:
    assert read_record(text_of_cell(cell), [name], ",", {}) == {name: value}


def test_mapped_columns_hold_what_ours_hold() -> None:
    record = text_of_cell('["a"]')
    assert read_record(record, ["gold"], ",", {"answers": "gold"}) == {"gold": ["a"]}
    assert read_record(text_of_cell('{"q": "x"}'), ["input"], ",", {"question": "input.q"}) == {"input": {"q": "x"}}
    assert read_record(record, ["input.q"], ",", {"question": "input.q"}) == {"input.q": '["a"]'}


def test_a_list_as_python_writes_it_says_what_to_do() -> None:
    found = read_record(text_of_cell("['Paris', 'Lyon']"), ["answers"], ",", {})
    assert isinstance(found, RowError)
    assert (found.reason, found.field) == ("invalid_json", "answers")
    assert "json.dumps" in found.detail


def text_of_cell(cell: str) -> bytes:
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow([cell])
    return sink.getvalue().encode()


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> str:
    """Rows as people write them: lists and objects as JSON in their cells."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    sink = io.StringIO()
    writer = csv.DictWriter(sink, names, delimiter=delimiter, restval="")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: v if isinstance(v, str) else "" if v is None else json.dumps(v) for k, v in row.items()})
    return sink.getvalue()


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.csv.gz", "d.tsv.zst"])
def test_the_same_rows_as_from_json(tmp_path: Path, name: str) -> None:
    rows = [sample(n, topic="x" + "a,b\n" * (n % 3), year=2020 + n) for n in range(9)]
    rows += [sample(9, id=..., output="[1] two\nlines"), sample(10, docs=[], answers=..., draw=3, topic=None)]
    (tmp_path / "json").mkdir()
    expected = prepare(write(tmp_path / "json" / "d.jsonl", lines(rows)), outputs="require")
    found = prepare(write(tmp_path / name, as_csv(rows, "\t" if ".tsv" in name else ",")), outputs="require")
    assert found == expected
    assert len(found["responses"]) == 11
    assert found["responses"][3]["meta"]["year"] == "2023"


def test_bad_rows_are_named_by_file_line_and_field(tmp_path: Path) -> None:
    text = 'question,answers,docs\nq1,Paris,"[]"\n"two\nlines",Paris,\nq3,"[broken",[]\nq4,Paris\nq5,Paris,[]\n'
    path = write(tmp_path / "d.csv", text)
    found = prepare(path)
    assert [(row["row"], row["line"], row["field"], row["reason"]) for row in found["failed"]] == [
        (f"{path}#2", 5, "answers", "invalid_json"),
        (f"{path}#3", 6, None, "wrong_cell_count"),
    ]
    assert sorted(row["question"] for row in found["samples"]) == ["q1", "q5", "two\nlines"]


def test_a_column_without_a_name_is_left_out(tmp_path: Path) -> None:
    found = prepare(write(tmp_path / "d.csv", ",question\n0,q\n"))
    assert found["samples"][0]["meta"] == {}


def test_a_broken_file_stops_the_job_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"d\.csv, line 2, column 1: the row that begins here has a quote"):
        prepare(write(tmp_path / "d.csv", 'question\n"q\n'))


def test_long_cells_and_many_rows_in_bounded_memory() -> None:
    class Made(io.RawIOBase):
        left = 60

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1, /) -> bytes:
            self.left -= 1
            return b"a,b\n" if self.left == 59 else b'"%s",2\n' % (b"x\n" * 500_000) * 1 if self.left > 0 else b""

    tracemalloc.start()
    _, spans = scan_records(Cursor(Made()), 500, ",")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(span.rows for span in spans) == 58
    assert peak < 8e6
