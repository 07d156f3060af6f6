"""One door to local paths and S3: the same behaviour, whole objects, one clear line where something is wrong."""

import gzip
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.faulty_s3 import FaultyS3
from trust.errors import PreflightError, StorageError
from trust.s3 import S3
from trust.storage import Storage, absolute, join


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "data") if request.param == "local" else request.getfixturevalue("s3") + "/data"


def test_objects_are_written_read_listed_and_deleted(root: str) -> None:
    storage = Storage()
    for name in ("b.json", "a.json", "deep/c.json"):
        storage.write_bytes(join(root, name), name.encode())
    assert storage.read_bytes(join(root, "a.json")) == b"a.json"
    assert storage.list_names(root) == ["a.json", "b.json"]
    assert storage.list_folders(root) == ["deep"]
    assert [info.path for info in storage.list_files(root)] == [
        join(root, n) for n in ("a.json", "b.json", "deep/c.json")
    ]
    assert [info.path for info in storage.list_files(join(root, "*.json"))][:2] == [
        join(root, "a.json"),
        join(root, "b.json"),
    ]
    storage.delete(join(root, "a.json"))
    storage.delete(join(root, "a.json"))
    assert not storage.exists(join(root, "a.json"))
    assert storage.exists(join(root, "b.json"))


def test_a_name_with_marks_of_a_glob_is_a_name_where_it_is_there(tmp_path: Path) -> None:
    storage = Storage()
    for name in ("x[1].json", "x1.json"):
        storage.write_bytes(str(tmp_path / name), b"[]")
    assert [info.path for info in storage.list_files(str(tmp_path / "x[1].json"))] == [str(tmp_path / "x[1].json")]
    assert [info.path for info in storage.list_files(str(tmp_path / "x[12].json"))] == [str(tmp_path / "x1.json")]


def test_what_is_not_there(root: str) -> None:
    storage = Storage()
    assert storage.list_names(join(root, "none")) == []
    assert storage.list_folders(join(root, "none")) == []
    with pytest.raises(FileNotFoundError):
        storage.read_bytes(join(root, "none.json"))


def test_tables_and_ranges_over_row_groups(root: str) -> None:
    storage = Storage()
    path = join(root, "t.parquet")
    table = pa.table({"n": list(range(1000))})
    assert storage.write_table(path, table) > 0
    assert storage.read_table(path).equals(table)
    assert storage.read_range(path, 990, 20)["n"].to_pylist() == list(range(990, 1000))
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=100)
    storage.write_bytes(path, sink.getvalue().to_pybytes())
    assert storage.read_range(path, 150, 200)["n"].to_pylist() == list(range(150, 350))


def test_streams_are_decompressed_by_their_ending(root: str) -> None:
    storage = Storage()
    storage.write_bytes(join(root, "x.json.gz"), gzip.compress(b"[1]"))
    with storage.open_stream(join(root, "x.json.gz")) as stream:
        assert stream.read() == b"[1]"


def test_preflight_leaves_nothing_behind(root: str) -> None:
    storage = Storage()
    storage.preflight(root)
    assert storage.list_names(root) == []


def test_a_write_that_fails_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        Storage().write_bytes(str(tmp_path / "x"), b"data")
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_no_folder_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PreflightError, match="cannot write"):
        Storage().preflight(str(tmp_path / "file"))


class TestFaults:
    def test_every_call_outlasts_ten_seconds_of_503(self, faulty_s3: FaultyS3, s3: str) -> None:
        """So many at once that a budget of retries for the whole process, as the libraries keep one, would be used up."""
        storage, root = Storage(), f"{s3}/data"
        table = pa.table({"n": list(range(3000))})
        storage.write_table(join(root, "t.parquet"), table)
        storage.write_bytes(join(root, "old"), b"old")
        storage.write_bytes(join(root, "text"), b"text")
        calls: dict[str, Callable[[], Any]] = {
            "exists": lambda: storage.exists(join(root, "text")),
            "read_bytes": lambda: storage.read_bytes(join(root, "text")) == b"text",
            "write_bytes": lambda: storage.write_bytes(join(root, "deep/new"), b"new") is None,
            "delete": lambda: storage.delete(join(root, "old")) is None,
            "list_names": lambda: "text" in storage.list_names(root),
            "list_folders": lambda: isinstance(storage.list_folders(root), list),
            "list_files": lambda: join(root, "text") in [info.path for info in storage.list_files(root)],
            "open_input": lambda: storage.open_input(join(root, "text")).read() == b"text",
            "open_stream": lambda: storage.open_stream(join(root, "text")).read() == b"text",
            "write_table": lambda: storage.write_table(join(root, "deep/u.parquet"), table) > 0,
            "read_table": lambda: storage.read_table(join(root, "t.parquet")).equals(table),
            "read_range": lambda: storage.read_range(join(root, "t.parquet"), 2000, 5)["n"].to_pylist()[0] == 2000,
        }
        with faulty_s3.failing(".", seconds=10) as fault, ThreadPoolExecutor(4 * len(calls)) as pool:
            started = time.monotonic()
            answers = [(name, pool.submit(call)) for name, call in calls.items() for _ in range(4)]
            assert [name for name, answer in answers if not answer.result()] == []
        assert fault.hits > 200
        assert 10 < time.monotonic() - started < 30
        assert storage.list_names(join(root, "deep")) == ["new", "u.parquet"]
        assert "old" not in storage.list_names(root)

    def test_an_answer_cut_in_the_middle_is_asked_for_again(self, faulty_s3: FaultyS3, s3: str) -> None:
        storage, path = Storage(), f"{s3}/t.parquet"
        table = pa.table({"n": list(range(3000))})
        storage.write_table(path, table)
        whole = storage.read_bytes(path)
        reads: list[Callable[[], Any]] = [
            lambda: storage.read_bytes(path) == whole,
            lambda: storage.open_stream(path).read() == whole,
            lambda: storage.read_table(path).equals(table),
            lambda: storage.read_range(path, 0, 3000).equals(table),
        ]
        for read in reads:
            with faulty_s3.failing(r"GET \S+t\.parquet", status=0, times=2) as fault:
                assert read()
                assert fault.hits == 2

    @pytest.mark.parametrize("read", ["read_bytes", "read_table"])
    def test_one_that_is_always_cut_is_named_in_one_line(
        self, faulty_s3: FaultyS3, s3: str, read: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage, path = Storage(), f"{s3}/t.parquet"
        storage.s3 = S3(attempts=3)
        storage.write_table(path, pa.table({"n": list(range(3000))}))
        with faulty_s3.failing(r"GET \S+t\.parquet", status=0), pytest.raises(StorageError) as error:
            getattr(storage, read)(path)
        assert str(error.value).startswith(f"cannot read {path}: ")
        assert "\n" not in str(error.value)
        assert "damaged" not in str(error.value), "the object is whole where it lies"

    @pytest.mark.parametrize("part", [0.0, 0.5, 0.999])
    def test_a_table_that_is_stored_cut_short_is_named(self, root: str, part: float) -> None:
        storage, path = Storage(), join(root, "t.parquet")
        storage.write_table(path, pa.table({"n": list(range(3000))}))
        data = storage.read_bytes(path)
        storage.write_bytes(path, data[: int(len(data) * part)])
        for read in (storage.read_table, lambda path: storage.read_range(path, 0, 10)):
            with pytest.raises(
                StorageError,
                match=f"cannot read {path}: .*cut short or damaged: delete it and start the job that wrote it again",
            ) as error:
                read(path)
            assert "\n" not in str(error.value)

    def test_a_changed_byte_is_never_read_as_another_number(self, root: str) -> None:
        storage, path = Storage(), join(root, "t.parquet")
        table = pa.table({"n": list(range(1000))})
        storage.write_table(path, table)
        data = storage.read_bytes(path)
        for at in range(4, 1500, 100):
            storage.write_bytes(path, data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :])
            for read in (storage.read_table, lambda path: storage.read_range(path, 0, 1000)):
                with pytest.raises(StorageError, match="cut short or damaged"):
                    read(path)

    def test_what_is_not_there_stays_a_file_that_is_not_found(self, root: str) -> None:
        storage, path = Storage(), join(root, "none.parquet")
        for read in (storage.read_bytes, storage.read_table, storage.open_input):
            with pytest.raises(FileNotFoundError):
                read(path)


def test_paths(tmp_path: Path) -> None:
    assert absolute("s3://bucket/x/") == "s3://bucket/x"
    assert absolute(f"file://{tmp_path}") == str(tmp_path)
    assert absolute("x").startswith("/")
    assert Path(absolute("package://trust/demo")).is_dir()
    with pytest.raises(PreflightError, match=r"~nobody-here/x: there is no user nobody-here on this machine"):
        absolute("~nobody-here/x")
    with pytest.raises(PreflightError, match="only local paths"):
        absolute("gs://bucket")
    for misspelt in ("s3:/bucket/x", "file:/x", "s3a:x"):
        with pytest.raises(PreflightError, match="only local paths"):
            absolute(misspelt)
    for nameless in ("s3://", "s3:///x"):
        with pytest.raises(PreflightError, match="no bucket is named"):
            absolute(nameless)
    assert absolute("file://localhost/x") == "/x"
    with pytest.raises(PreflightError, match="another machine"):
        absolute("file://host/x")
    with pytest.raises(PreflightError, match="not installed"):
        absolute("package://no_such_package/x")


def test_a_relative_path_in_a_submitted_job_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    with pytest.raises(PreflightError, match="runs: a submitted job runs in a folder of its own"):
        absolute("runs")
    assert absolute("/runs") == "/runs"
    assert absolute("s3://bucket/runs") == "s3://bucket/runs"
