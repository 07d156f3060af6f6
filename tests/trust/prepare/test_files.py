import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.trust.prepare.helpers import lines, sample, write
from trust.errors import ConfigError, PreflightError
from trust.prepare import DataConfig
from trust.prepare.files import find_files
from trust.storage import open_storage

ROWS = [sample(0), sample(1)]


def _formats(path: Path | str) -> list[tuple[str, str, str | None]]:
    files, _ = find_files(DataConfig(path=str(path)), open_storage())
    return [(Path(file.path).name, file.format, file.compression) for file in files]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", json.dumps(ROWS), ("json", None)),
        ("a.json", json.dumps({"data": ROWS}, indent=1), ("json", None)),
        ("a.json", json.dumps({"data": ROWS}) + "\n", ("json", None)),
        ("a.json", lines(ROWS), ("jsonl", None)),
        ("a.json.gz", json.dumps(ROWS), ("json", "gzip")),
        ("a.json.zst", lines(ROWS), ("jsonl", "zstd")),
        ("a.jsonl", "[broken\n" + lines(ROWS), ("jsonl", None)),
        ("a.jsonl.gz", lines(ROWS), ("jsonl", "gzip")),
        ("a.NDJSON", lines(ROWS), ("jsonl", None)),
        ("a.txt", lines(ROWS), ("jsonl", None)),
        ("a.csv", "question\nq\n", ("csv", None)),
        ("a.TSV", "question\nq\n", ("tsv", None)),
        ("a.csv.gz", "question\nq\n", ("csv", "gzip")),
        ("rows", "\ufeff " + json.dumps(ROWS), ("json", None)),
    ],
)
def test_format_by_name_and_content(tmp_path: Path, name: str, text: str, expected: tuple) -> None:
    path = write(tmp_path / name, text)
    assert _formats(path) == [(name, *expected)]


def test_parquet_by_name_or_content(tmp_path: Path) -> None:
    for name in ("a.parquet", "b"):
        pq.write_table(pa.table({"x": [1]}), tmp_path / name)
        assert _formats(tmp_path / name) == [(name, "parquet", None)]


def test_folder_and_glob(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.json", "notes.md", "sub/c.jsonl.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, lines(ROWS))
    files, warnings = find_files(DataConfig(path=str(tmp_path)), open_storage())
    assert [Path(file.path).name for file in files] == ["a.json", "b.jsonl", "c.jsonl.gz"]
    assert "1 files are not read" in warnings[0]
    assert "notes.md" in warnings[0]
    assert [name for name, *_ in _formats(tmp_path / "*.jsonl")] == ["b.jsonl"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "asqa_dev.json", json.dumps(ROWS))
    cases = {
        tmp_path / "asqa_dve.json": "did you mean .*asqa_dev.json",
        tmp_path / "none" / "x.json": "no such file or folder",
        write(tmp_path / "empty.json", ""): "the file is empty",
        write(tmp_path / "text.md", "hello"): "neither JSON, JSON Lines, CSV, Arrow nor Parquet",
        _raw(tmp_path / "no.json.gz"): "cannot be read",
        write(tmp_path / "a.parquet.gz", b"PAR1xxxx"): "Parquet compresses inside",
    }
    for path, message in cases.items():
        with pytest.raises(PreflightError, match=message):
            find_files(DataConfig(path=str(path)), open_storage())
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "x.doc", "a,b")
    with pytest.raises(PreflightError, match="none of its 1 files ends in"):
        find_files(DataConfig(path=str(folder)), open_storage())
    with pytest.raises(ConfigError, match=r"data\.path is not set"):
        find_files(DataConfig(), open_storage())


def _raw(path: Path) -> Path:
    path.write_bytes(b"this is not gzip")
    return path
