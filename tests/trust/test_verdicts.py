"""The verdict store: append-only, pruned by sample id, harmless to share."""

from pathlib import Path
from typing import Any

import pytest

from trust.storage import Storage
from trust.verdicts import VerdictStore


def verdict(sample: str, key: str, status: str = "ok") -> dict[str, Any]:
    row = {"judge": "j", "hash": key, "sample_id": sample, "ask": "entails", "inputs": {"premise": "p"}}
    return row | {"answer": "1", "score": 0.9, "truncated": False, "status": status}


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> VerdictStore:
    root = str(tmp_path) if request.param == "local" else request.getfixturevalue("s3")
    return VerdictStore(Storage(), root, "j")


def test_only_the_samples_asked_for_come_back(store: VerdictStore) -> None:
    store.add([verdict("a:1", "h1"), verdict("a:2", "h2")])
    store.add([verdict("b:1", "h3")])
    assert {row["hash"] for row in store.load(["a:2", "b:1"])} == {"h2", "h3"}
    assert store.load(["c"]) == []
    assert store.load([]) == []
    (row,) = store.load(["a:1"])
    assert row["inputs"] == {"premise": "p"}


def test_files_that_cannot_hold_a_sample_are_not_opened(store: VerdictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add([verdict("a:1", "h1")])
    store.add([verdict("m:1", "h2")])
    opened = []
    read = Storage.read_table
    monkeypatch.setattr(Storage, "read_table", lambda self, path, **k: opened.append(path) or read(self, path, **k))
    store.load(["m:1"])
    assert len(opened) == 1


def test_a_verdict_written_twice_is_read_once(store: VerdictStore) -> None:
    store.add([verdict("a:1", "h1"), verdict("a:2", "h2")])
    store.add([verdict("a:1", "h1")])
    store.add([verdict("a:1", "h1")])
    assert len(store.load(["a:1"])) == 1


def test_failed_verdicts_are_not_kept(store: VerdictStore) -> None:
    store.add([verdict("a:1", "h1", status="failed")])
    assert store.load(["a:1"]) == []


def test_ids_in_any_script_and_of_any_length(store: VerdictStore) -> None:
    ids = ["データ:1", "x" * 500, "a/b ~c", "é"]
    store.add([verdict(sample, f"h{i}") for i, sample in enumerate(ids)])
    for i, sample in enumerate(ids):
        assert [row["hash"] for row in store.load([sample])] == [f"h{i}"]
