import json
import random
from pathlib import Path
from typing import Any

import pytest

from trust.prepare.duplicates import find_repeats, placed_table, resolve
from trust.storage import Storage, open_storage
from trust.tables import to_rows, to_table

BASE = {"dataset": "d", "language": "en", "task": "em", "meta": {}, "context": {}}


def _sample(name: str, question: str = "q") -> dict[str, Any]:
    return BASE | {
        "sample_id": f"d:{name}",
        "question": question,
        "docs": [{"text": "t", "answers_found": [1]}],
        "meta": {},
        "context": {},
    }


ROWS = [
    _sample("a"), _sample("a"), _sample("a", "other"),
    _sample("b"), _sample("c", "one"), _sample("c", "two"),
    *(_sample(f"single{i}") for i in range(20)),
]  # fmt: skip


def _settle(folder: Path, storage: Storage, rows: list, parts: int, buckets: int, compat: str, table: str = "samples"):
    """All parts settled, as a job does it: rows that stay, failed rows."""
    folder.mkdir()
    paths = [str(folder / f"{i}.parquet") for i in range(parts)]
    for i, path in enumerate(paths):
        storage.write_table(path, to_table(table, rows[i::parts]))
    actions: dict[str, list] = {}
    for bucket in range(buckets):
        for part, found in find_repeats(paths, storage, table, bucket, buckets).items():
            actions.setdefault(part, []).extend(found)
    kept, failed = [], []
    for path in paths:
        content, bad = resolve(storage.read_table(path), table, actions.get(path, []), "prepare", compat)
        assert to_rows(content) == to_rows(to_table(table, to_rows(content)))
        kept += to_rows(content)
        failed += bad
    to_table("failed", failed)
    return sorted(json.dumps(row, sort_keys=True) for row in kept), sorted(map(json.dumps, failed))


@pytest.mark.parametrize("compat", ["strict", "upstream"])
def test_the_outcome_does_not_depend_on_order_parts_or_buckets(tmp_path: Path, compat: str) -> None:
    storage = open_storage()
    outcomes = set()
    for seed, (parts, buckets) in enumerate([(1, 1), (2, 1), (5, 3), (3, 7), (26, 2)]):
        rows = ROWS[:]
        random.Random(seed).shuffle(rows)
        kept, failed = _settle(tmp_path / str(seed), storage, rows, parts, buckets, compat)
        outcomes.add(json.dumps([kept, failed]))
    assert len(outcomes) == 1


def test_strict_fails_the_later_ones(tmp_path: Path) -> None:
    kept, failed = _settle(tmp_path / "x", open_storage(), ROWS, 4, 2, "strict")
    assert len(kept) == 23
    assert len({json.loads(row)["sample_id"] for row in kept}) == 23
    found = [json.loads(row) for row in failed]
    assert sorted(row["row"] for row in found) == ["d:a#2", "d:a#3", "d:c#2"]
    assert {(row["job"], row["reason"], row["field"]) for row in found} == {("prepare", "duplicate", "sample_id")}
    assert ["with other content" in row["detail"] for row in found if row["row"] == "d:c#2"] == [True]


def test_upstream_keeps_all_under_their_own_ids(tmp_path: Path) -> None:
    kept, failed = _settle(tmp_path / "x", open_storage(), ROWS, 4, 2, "upstream")
    assert failed == []
    ids = [json.loads(row)["sample_id"] for row in kept]
    assert len(set(ids)) == len(ROWS)
    assert {i for i in ids if "single" not in i} == {"d:a", "d:a#2", "d:a#3", "d:b", "d:c", "d:c#2"}


def test_upstream_gives_no_id_that_is_taken(tmp_path: Path) -> None:
    rows = [_sample("a"), _sample("a", "x"), _sample("a", "y"), _sample("a#2"), _sample("a#3", "z")]
    kept, _ = _settle(tmp_path / "x", open_storage(), rows, 3, 5, "upstream")
    assert sorted(json.loads(row)["sample_id"] for row in kept) == ["d:a", "d:a#2", "d:a#3", "d:a#4", "d:a#5"]


def test_identical_rows_are_told_from_rows_with_the_same_id(tmp_path: Path) -> None:
    _, failed = _settle(tmp_path / "x", open_storage(), [_sample("a"), _sample("a")], 2, 1, "strict")
    assert "the same in every column" in failed[0]
    _, failed = _settle(tmp_path / "y", open_storage(), [_sample("a"), _sample("a", "z")], 2, 1, "strict")
    assert "with other content" in failed[0]


def test_responses_repeat_only_with_the_whole_key(tmp_path: Path) -> None:
    def response(model: str, draw: int, output: str) -> dict[str, Any]:
        return _sample("a") | {"model": model, "prompt": "p", "draw": draw, "output": output, "status": "ok"}

    rows = [response("m", 0, "x"), response("m", 1, "x"), response("n", 0, "x"), response("m", 0, "y")]
    kept, failed = _settle(tmp_path / "x", open_storage(), rows, 2, 2, "strict", "responses")
    assert len(kept) == 3
    assert json.loads(failed[0])["row"] == "d:a|m|p|0#2"
    kept, _ = _settle(tmp_path / "y", open_storage(), rows, 2, 2, "upstream", "responses")
    assert sorted(json.loads(row)["sample_id"] for row in kept) == ["d:a", "d:a", "d:a", "d:a#2"]


def test_no_repeats_no_actions(tmp_path: Path) -> None:
    storage = open_storage()
    path = str(tmp_path / "a.parquet")
    storage.write_table(path, to_table("samples", [_sample("a"), _sample("b")]))
    assert find_repeats([path], storage, "samples", 0, 1) == {}


def test_a_row_that_is_taken_out_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    storage = open_storage()
    rows = {"x": [_sample("b"), _sample("a")], "y": [_sample("z"), _sample("b"), _sample("a", "other"), _sample("c")]}
    paths = {str(tmp_path / f"{name}.parquet"): name for name in rows}
    for path, name in paths.items():
        placed = [(row, line) for line, row in enumerate(rows[name], 10)]
        storage.write_table(path, placed_table("samples", placed, f"/data/{name}.jsonl"))
    failed = []
    for path, repeats in find_repeats(list(paths), storage, "samples", 0, 1).items():
        failed += resolve(storage.read_table(path), "samples", repeats, "prepare", "strict")[1]
    lines = {(f"/data/{name}.jsonl", line): row for name in rows for line, row in enumerate(rows[name], 10)}
    assert len(failed) == 2
    for row in failed:
        assert lines[row["file"], row["line"]]["sample_id"] == row["row"].split("#")[0]
    to_table("failed", failed)
