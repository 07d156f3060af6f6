import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trust.prepare.helpers import lines, sample, write
from trust.errors import PreflightError
from trust.prepare import DataConfig
from trust.prepare.plan import Plan, plan
from trust.prepare.read import UnitReader
from trust.storage import open_storage

ROWS = [sample(i) for i in range(7)]


def _plan(path: Path, unit_rows: int = 3) -> Plan:
    return plan(DataConfig(path=str(path)), open_storage(), unit_rows)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "a.jsonl.zst", "a.parquet"])
def test_units_cover_all_rows_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=2)
    else:
        write(path, json.dumps(ROWS) if ".json" in name and ".jsonl" not in name else lines(ROWS))
    made = _plan(path)
    assert made.rows == 7
    assert [unit.rows for unit in made.units] == [3, 3, 1]
    assert [unit.source["first_row"] for unit in made.units] == [0, 3, 6]
    assert all(re.fullmatch(r"[0-9a-f]{12}-\d{9}-\d+", unit.name) for unit in made.units)
    assert json.loads(json.dumps(made.units[0].source)) == made.units[0].source
    assert made.inputs[0] | {"fingerprint": ""} == {
        "path": str(path),
        "format": made.units[0].source["format"],
        "fingerprint": "",
        "rows": 7,
        "bytes": path.stat().st_size,
    }


def test_names_come_from_content_not_from_place(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b/c.jsonl", "d.jsonl.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, lines(ROWS))
    first, second, packed = (_plan(tmp_path / name) for name in ("a.jsonl", "b/c.jsonl", "d.jsonl.gz"))
    assert [u.name for u in first.units] == [u.name for u in second.units] == [u.name for u in packed.units]
    assert first.fingerprint == second.fingerprint == packed.fingerprint
    write(tmp_path / "a.jsonl", lines([*ROWS[:-1], sample(8)]))
    changed = _plan(tmp_path / "a.jsonl")
    assert changed.fingerprint != first.fingerprint
    assert not {u.name for u in changed.units} & {u.name for u in first.units}


def test_fingerprint_of_a_folder_does_not_depend_on_names(tmp_path: Path) -> None:
    for folder, names in (("x", ("1.jsonl", "2.jsonl")), ("y", ("9.jsonl", "3.jsonl"))):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / names[0], lines(ROWS[:3]))
        write(tmp_path / folder / names[1], lines(ROWS[3:]))
    assert _plan(tmp_path / "x").fingerprint == _plan(tmp_path / "y").fingerprint


def test_two_files_of_the_same_content_keep_units_apart(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        write(tmp_path / name, lines(ROWS))
    units = _plan(tmp_path).units
    assert len({unit.name for unit in units}) == 6
    assert len({unit.source["file"] for unit in units}) == 2


def test_changed_parquet_changes_the_fingerprint(tmp_path: Path) -> None:
    prints = set()
    for number in (1, 2):
        pq.write_table(pa.table({"question": [f"q{number}"]}), tmp_path / "a.parquet")
        prints.add(_plan(tmp_path / "a.parquet").fingerprint)
    assert len(prints) == 2


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.json", json.dumps(ROWS, indent=1)[:-40].encode(), r"a\.json, line \d+, column \d+: the file ends inside"),
        ("a.json", b"[1,\n 2 3]", r"a\.json, line 2, column 4: expected a comma or `\]`, found `3`"),
        ("a.json", b'{"rows": [1]}', "found only the keys `rows`"),
        ("a.json", b"hello", "expected a JSON list"),
        ("a.json", "[]".encode("utf-16"), "UTF-16"),
        ("a.json", b"[]", "there is no row"),
        ("a.json", b'{"data": []}', "there is no row"),
        ("a.jsonl", b"\n  \n", "there is no row"),
        ("a.json", b"", "the file is empty"),
        ("a.jsonl.gz", gzip.compress(lines(ROWS).encode())[:-30], "cannot be read: Truncated compressed stream"),
        ("a.jsonl.gz", b"no gzip", "cannot be read"),
        ("a.parquet", b"PAR1 and so on", "cannot be read"),
    ],
)
def test_files_broken_as_a_whole(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(PreflightError, match=message):
        _plan(tmp_path / name)


def test_warnings(tmp_path: Path) -> None:
    write(tmp_path / "a.json", json.dumps({"version": 1, "data": ROWS, "note": []}))
    write(tmp_path / "b.jsonl", "\n")
    warnings = _plan(tmp_path).warnings
    assert len(warnings) == 2
    assert "keys beside `data` are not read: version, note" in warnings[0]
    assert "b.jsonl: the file has no row" in warnings[1]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize(("rows", "most"), [(7, 1), (2000, 10), (30_000, 150)])
def test_size_of_units_follows_the_rows(tmp_path: Path, name: str, rows: int, most: int) -> None:
    """About 1/200 of the rows where nothing is configured, so that a kill loses little of a small job."""
    found = [{"id": str(i)} for i in range(rows)]
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(found), path)
    else:
        write(path, json.dumps(found) if name.endswith(".json") else lines(found))
    made = plan(DataConfig(path=str(path)), open_storage(), None)
    assert sum(unit.rows for unit in made.units) == rows
    assert most / 2 <= max(unit.rows for unit in made.units) <= most
    firsts = [unit.source["first_row"] for unit in made.units]
    assert firsts == [sum(unit.rows for unit in made.units[:i]) for i in range(len(firsts))]
    read = [row.value["id"] for unit in made.units for row in UnitReader(open_storage()).read(unit.source)]
    assert read == [str(i) for i in range(rows)]


def test_many_small_files_make_units_of_the_whole_job_s_size(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"{number}.jsonl", lines([{"id": f"{number}-{i}"} for i in range(100)]))
    made = plan(DataConfig(path=str(tmp_path)), open_storage(), None)
    assert made.rows == 3000
    assert max(unit.rows for unit in made.units) <= 15
    assert len(made.units) <= 30 * 13
