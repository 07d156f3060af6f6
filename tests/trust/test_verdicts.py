"""The verdict store: pruned by sample id, harmless to share, merged without losing a row."""

import threading
from pathlib import Path
from typing import Any

import pytest

from trust import verdicts
from trust.storage import Storage, join
from trust.verdicts import VerdictStore, merge_files


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


def _new(store: VerdictStore) -> VerdictStore:
    """The store as another process sees it."""
    return VerdictStore(store._storage, store._folder.removesuffix("/_verdicts/j"), "j")


def _names(store: VerdictStore) -> list[str]:
    return store._storage.list_names(store._folder)


def _keys(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return sorted((row["sample_id"], row["hash"]) for row in rows)


def test_a_pair_is_found_under_each_sample_that_asked_for_it(store: VerdictStore) -> None:
    store.add([verdict("a:1", "h1"), verdict("a:2", "h1")])
    assert _keys(_new(store).load(["a:2"])) == [("a:2", "h1")]


def test_the_folder_is_listed_now_and_then_and_others_verdicts_are_seen_after_that(
    store: VerdictStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings = []
    names = Storage.list_names
    monkeypatch.setattr(Storage, "list_names", lambda self, folder: listings.append(folder) or names(self, folder))
    reader = _new(store)
    assert reader.load(["a:1"]) == []
    _new(store).add([verdict("a:1", "h1")])
    reader.add([verdict("a:2", "h2")])
    assert _keys(reader.load(["a:1", "a:2"])) == [("a:2", "h2")]
    assert len(listings) == 1
    monkeypatch.setattr(verdicts, "_FRESH_S", 0)
    assert len(reader.load(["a:1", "a:2"])) == 2
    assert len(listings) == 2


def test_merging_keeps_every_row_once_and_a_reader_with_an_old_listing_finds_them(store: VerdictStore) -> None:
    rows = [verdict(f"a:{number:02d}", f"h{number % 7}") for number in range(40)]
    for row in rows:
        store.add([row])
    store.add(rows[:5])
    reader = _new(store)
    assert len(reader.load(["a:00"])) == 1
    merge_files(store._storage, store._folder, _names(store))
    assert len(_names(store)) == 1
    assert _keys(reader.load([row["sample_id"] for row in rows])) == _keys(rows)
    content = store._storage.read_table(join(store._folder, _names(store)[0]))
    assert content.num_rows == len(rows)
    assert content["sample_id"].to_pylist() == sorted(row["sample_id"] for row in rows)


def test_mergers_writers_and_readers_at_once_lose_nothing(tmp_path: Path) -> None:
    store = VerdictStore(Storage(), str(tmp_path), "j")
    rows = [verdict(f"a:{number:03d}", "h") for number in range(120)]
    seen: list[int] = []
    errors: list[BaseException] = []

    def add(part: list[dict[str, Any]]) -> None:
        for row in part:
            _new(store).add([row])

    def merge() -> None:
        for _ in range(15):
            merge_files(store._storage, store._folder, _names(store))

    def read() -> None:
        for _ in range(15):
            seen.append(len(_new(store).load(row["sample_id"] for row in rows)))

    def safely(work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            errors.append(error)

    work = [(add, rows[:60]), (add, rows[60:]), (merge,), (merge,), (read,)]
    threads = [threading.Thread(target=safely, args=arguments) for arguments in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert seen == sorted(seen), "a verdict that was there is gone"
    assert _keys(_new(store).load(row["sample_id"] for row in rows)) == _keys(rows)


def test_a_merge_that_is_cut_short_leaves_every_row(store: VerdictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [verdict(f"a:{number}", "h") for number in range(4)]
    for row in rows:
        store.add([row])

    def dies(self: Storage, path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Storage, "delete", dies)
        with pytest.raises(KeyboardInterrupt):
            merge_files(store._storage, store._folder, _names(store))
    assert len(_names(store)) == 5
    assert _keys(_new(store).load(row["sample_id"] for row in rows)) == _keys(rows)
    merge_files(store._storage, store._folder, _names(store))
    assert len(_names(store)) == 1
    assert _keys(_new(store).load(row["sample_id"] for row in rows)) == _keys(rows)


@pytest.mark.parametrize("left", [0, 3, 900])
def test_a_file_cut_short_is_named_passed_over_and_never_merged_away(store: VerdictStore, left: int) -> None:
    store.add([verdict("a:1", "h1")])
    (broken,) = (join(store._folder, name) for name in _names(store))
    store._storage.write_bytes(broken, store._storage.read_bytes(broken)[:left])
    for number in (2, 3):
        store.add([verdict(f"a:{number}", "h")])
    reader = _new(store)
    assert _keys(reader.load(["a:1", "a:2", "a:3"])) == [("a:2", "h"), ("a:3", "h")]
    assert reader.unreadable == {broken}
    merge_files(store._storage, store._folder, _names(store))
    assert broken.rsplit("/", 1)[1] in _names(store)
    assert len(_names(store)) == 2


def test_a_storage_out_of_reach_is_no_broken_file(store: VerdictStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add([verdict("a:1", "h1")])

    def fails(*arguments: Any, **options: Any) -> None:
        raise OSError("503: slow down")

    monkeypatch.setattr(Storage, "read_table", fails)
    monkeypatch.setattr(Storage, "read_bytes", fails)
    reader = _new(store)
    with pytest.raises(OSError, match="503"):
        reader.load(["a:1"])
    assert not reader.unreadable


@pytest.mark.usefixtures("ray_session")
def test_many_small_files_become_few_and_a_few_stay_as_they_are(tmp_path: Path) -> None:
    store = VerdictStore(Storage(), str(tmp_path), "j")
    for number in range(31):
        store.add([verdict(f"a:{number:02d}", "h")])
    store.merge_small()
    assert len(_names(store)) == 31
    store.add([verdict("a:31", "h")])
    store.merge_small()
    assert len(_names(store)) == 1
    assert len(_new(store).load(f"a:{number:02d}" for number in range(32))) == 32
