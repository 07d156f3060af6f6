import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trust.prepare.helpers import lines, sample, write
from trust.errors import PreflightError, RowError
from trust.prepare import DataConfig
from trust.prepare.plan import plan
from trust.prepare.read import RawRow, UnitReader
from trust.storage import open_storage
from trust.units import Unit

ROWS = [sample(i, meta={"a": str(i)}) for i in range(11)]


def _units(path: Path, unit_rows: int) -> list[Unit]:
    return plan(DataConfig(path=str(path)), open_storage(), unit_rows).units


def _read(path: Path, unit_rows: int = 4) -> list[RawRow]:
    return [row for unit in _units(path, unit_rows) for row in UnitReader(open_storage()).read(unit.source)]


def _file(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=3)
        return path
    return write(path, lines(ROWS) if ".jsonl" in name else json.dumps({"data": ROWS}, indent=1))


NAMES = ["a.json", "a.json.gz", "a.json.zst", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit_rows", [1, 4, 100])
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str, unit_rows: int) -> None:
    found = _read(_file(tmp_path, name), unit_rows)
    assert [row.index for row in found] == list(range(11))
    assert [row.value["id"] for row in found] == [row["id"] for row in ROWS]
    assert [row.value["answers"] for row in found] == [row["answers"] for row in ROWS]


@pytest.mark.parametrize("name", NAMES)
def test_units_can_be_read_in_any_order(tmp_path: Path, name: str) -> None:
    units, reader = _units(_file(tmp_path, name), 2), UnitReader(open_storage())
    for order in ([5, 0, 3, 3, 1, 4, 2], range(6)):
        for index in order:
            if index < len(units):
                found = [row.value["id"] for row in reader.read(units[index].source)]
                assert found == [row["id"] for row in ROWS[2 * index : 2 * index + 2]]
    reader.close()


def test_places(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '[\n{"a": 1}, {"b": 2},\n\n{"c":\n 3}]')
    assert [(row.line, row.index, row.place) for row in _read(path, 2)] == [
        (2, 0, f"{path}#0"),
        (2, 1, f"{path}#1"),
        (4, 2, f"{path}#2"),
    ]
    path = write(tmp_path / "a.jsonl", '\ufeff\n{"a": 1}\r\n\n{"b": 2}\n{"c": 3}')
    assert [(row.line, row.value) for row in _read(path, 2)] == [(2, {"a": 1}), (4, {"b": 2}), (5, {"c": 3})]
    pq.write_table(pa.table({"m": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string()))}), tmp_path / "m.parquet")
    assert [(row.line, row.value) for row in _read(tmp_path / "m.parquet")] == [(None, {"m": {"k": "v"}})]


@pytest.mark.parametrize(
    ("bad", "reason", "detail"),
    [
        (b'{"a": 1', "invalid_json", "column 8"),
        (b'{"a": 1,}', "invalid_json", "column 9"),
        (b'{"a": tru}', "invalid_json", "Expecting value"),
        (b'{"a": "\xff"}', "invalid_utf8", "byte 8"),
        (b"[1, 2]", "not_an_object", "not list"),
        (b'"text"', "not_an_object", "not str"),
        (b'{"a": 1, "b": 2, "a": 1}', "repeated_key", "the key 'a' stands twice"),
        (b'{"docs": [{"text": "x"}, {"text": "x", "text": "y"}]}', "repeated_key", "the key 'text'"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "repeated_key", "ud800"),
        (b'{"a": ' + b"1" * 5000 + b"}", "invalid_json", "limit"),
        (b"[" * 100_000, "invalid_json", "recursion"),
    ],
)
def test_a_broken_line_is_one_failed_row(tmp_path: Path, bad: bytes, reason: str, detail: str) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\n' + bad + b'\n{"b": 2}\n')
    first, broken, last = _read(path)
    assert (first.value, last.value, last.line) == ({"a": 1}, {"b": 2}, 3)
    assert isinstance(broken.value, RowError)
    assert broken.value.reason == reason
    assert detail in broken.value.detail
    assert broken.line == 2


def test_a_broken_element_of_a_list_is_one_failed_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", '[{"a": 1},\n{"b": 1,},\n 7, {"c": nope}, {"d": 4}]')
    found = _read(path)
    assert [row.value.reason if isinstance(row.value, RowError) else row.value for row in found] == [
        {"a": 1},
        "invalid_json",
        "not_an_object",
        "invalid_json",
        {"d": 4},
    ]
    assert [row.line for row in found] == [1, 2, 3, 3, 3]


def test_a_file_changed_after_planning_stops_the_job(tmp_path: Path) -> None:
    for name, text in (("a.jsonl", lines(ROWS)), ("a.json", json.dumps(ROWS))):
        path = write(tmp_path / name, text)
        units = _units(path, 4)
        write(path, text[:300])
        with pytest.raises(PreflightError, match="was changed"):
            list(UnitReader(open_storage()).read(units[-1].source))
