"""One door to local paths and S3: the same behaviour, whole objects, one clear line where something is wrong."""

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pytest

from trust.errors import PreflightError
from trust.storage import Storage, StorageConfig, absolute, join, open_storage


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


@pytest.mark.usefixtures("s3")
def test_a_missing_bucket_is_said_in_one_line() -> None:
    with pytest.raises(PreflightError, match=r"cannot write: .*bucket does not exist") as error:
        Storage().preflight("s3://nothing/here")
    assert "\n" not in str(error.value)


def test_a_place_that_is_no_folder_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PreflightError, match="cannot write"):
        Storage().preflight(str(tmp_path / "file"))


def test_keys_never_enter_the_config_or_the_pickled_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://host:1")
    import pickle

    storage = open_storage(config=StorageConfig())
    assert storage.endpoint == "http://host:1"
    assert b"hush" not in pickle.dumps(storage)


def test_paths(tmp_path: Path) -> None:
    assert absolute("s3://bucket/x/") == "s3://bucket/x"
    assert absolute(f"file://{tmp_path}") == str(tmp_path)
    assert absolute("x").startswith("/")
    assert Path(absolute("package://trust/demo")).is_dir()
    with pytest.raises(PreflightError, match="only local paths"):
        absolute("gs://bucket")
    with pytest.raises(PreflightError, match="not installed"):
        absolute("package://no_such_package/x")


def test_a_relative_path_in_a_submitted_job_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    with pytest.raises(PreflightError, match="runs: a submitted job runs in a folder of its own"):
        absolute("runs")
    assert absolute("/runs") == "/runs"
    assert absolute("s3://bucket/runs") == "s3://bucket/runs"
