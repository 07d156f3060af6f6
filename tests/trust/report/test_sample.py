"""Which rows are shown: counted in one pass, the same on any sharding."""

from pathlib import Path
from typing import Any

import pytest

from trust import tables
from trust.report.sample import Smallest, badness, choose, stream, tally
from trust.storage import Storage


def score(number: int, status: str = "scored", dataset: str = "d", **values: float) -> dict[str, Any]:
    return {
        "sample_id": f"{dataset}:{number:04d}",
        "model": "m",
        "prompt": "p",
        "draw": 0,
        "metric": "trust_score",
        "dataset": dataset,
        "language": "en",
        "task": "em",
        "values": {"answered": 1.0, "answerable": 1.0} | values if status == "scored" else None,
        "status": status,
        "reason": None if status == "scored" else "no_response",
    }


def write(folder: Path, rows: list[dict[str, Any]], shards: int = 1) -> list[dict[str, Any]]:
    parts = []
    for shard in range(shards):
        path = str(folder / f"{shards}-{shard}.parquet")
        content = tables.to_table("scores", rows[shard::shards])
        Storage().write_table(path, content)
        parts.append({"path": path, "rows": content.num_rows})
    return parts


def many() -> list[dict[str, Any]]:
    """100 rows: 5 failed, 10 of known badness, the others perfect."""
    failed = [score(i, "failed") for i in range(5)]
    bad = [score(i, answer_correctness=(i - 5) / 20) for i in range(5, 15)]
    return [*failed, *bad, *(score(i, answer_correctness=1.0) for i in range(15, 100))]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"answered": 1.0, "answerable": 0.0}, 1.0),
        ({"answered": 0.0, "answerable": 1.0, "refused": 1.0}, 1.0),
        ({"answered": 0.0, "answerable": 0.0, "refused": 1.0}, 0.0),
        ({"answered": 0.0, "answerable": 0.0, "empty": 1.0}, 1.0),
        ({"answered": 0.0, "refused": 1.0}, None),
        ({"answered": 1.0, "answerable": 1.0, "answer_correctness": 0.5, "citation_recall": 0.0}, 0.75),
        ({"answered": 1.0, "citation_precision": 1.0}, 0.0),
        ({"answered": 1.0}, None),
        ({}, None),
    ],
)
def test_badness(values: dict[str, float], expected: float | None) -> None:
    assert badness(values) == expected


def test_everything_is_shown_where_there_is_room(tmp_path: Path) -> None:
    (choice,) = choose(tally(Storage(), write(tmp_path, many()), 100), 100).values()
    assert len(choice.keys) == choice.rows == 100
    assert set(choice.keys.values()) == {"all"}


def test_a_sample_holds_failed_worst_and_random_rows(tmp_path: Path) -> None:
    (choice,) = choose(tally(Storage(), write(tmp_path, many()), 20), 20).values()
    assert (len(choice.keys), choice.rows, choice.failed) == (20, 100, 5)
    kinds = {
        kind: {key[0] for key, why in choice.keys.items() if why == kind} for kind in ("failed", "worst", "random")
    }
    assert kinds["failed"] == {f"d:{i:04d}" for i in range(5)}
    assert kinds["worst"] == {f"d:{i:04d}" for i in range(5, 13)}
    assert len(kinds["random"]) == 7
    assert list(choice.keys.values())[:3] == ["failed", "worst", "random"]


def test_failed_rows_take_at_most_half(tmp_path: Path) -> None:
    rows = [score(i, "failed") for i in range(50)] + [score(i, answer_correctness=0.5) for i in range(50, 100)]
    (choice,) = choose(tally(Storage(), write(tmp_path, rows), 20), 20).values()
    assert list(choice.keys.values()).count("failed") == 10
    assert list(choice.keys.values()).count("worst") == 5


def test_the_choice_is_the_same_on_any_sharding(tmp_path: Path) -> None:
    rows = many()
    first = choose(tally(Storage(), write(tmp_path, rows), 20), 20)
    for shards, order in ((7, rows), (3, rows[::-1])):
        assert choose(tally(Storage(), write(tmp_path, order, shards), 20), 20) == first


def test_small_data_sets_are_whole_and_leave_their_room_to_large_ones(tmp_path: Path) -> None:
    rows = many() + [score(i, dataset="tiny", answer_correctness=1.0) for i in range(3)]
    choices = choose(tally(Storage(), write(tmp_path, rows), 20), 20)
    assert {group[0]: len(choice.keys) for group, choice in choices.items()} == {"d": 17, "tiny": 3}


def test_refusals_are_counted_against_what_the_documents_hold(tmp_path: Path) -> None:
    rows = [
        score(1),
        score(2, answered=0.0, refused=1.0),
        score(3, answerable=0.0),
        score(4, "failed"),
    ]
    del rows[2]["values"]["answerable"]
    (found,) = tally(Storage(), write(tmp_path, rows), 10).values()
    assert dict(found.refusals) == {
        ("answerable", "answered"): 1,
        ("answerable", "refused"): 1,
        ("unknown", "answered"): 1,
    }
    assert found.outcomes["trust_score", "failed", "no_response"] == 1


def test_what_is_held_does_not_grow_with_the_rows() -> None:
    smallest = Smallest(3)
    for number in range(1000):
        smallest.add((number * 7919) % 1000, ("id", "m", "p", number))
        assert len(smallest.items) <= 6
    assert [rank for rank, _ in sorted(smallest.items)[:3]] == [0, 1, 2]


def test_stream_gives_only_the_samples_asked_for(tmp_path: Path) -> None:
    (part,) = write(tmp_path, many())
    rows = list(stream(Storage(), part["path"], sample_ids=["d:0007", "d:0050", "nobody"]))
    assert [row["sample_id"] for row in rows] == ["d:0007", "d:0050"]
    assert rows[0]["values"]["answer_correctness"] == pytest.approx(0.1)
