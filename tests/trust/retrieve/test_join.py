"""The last step without a cluster: hits of several shards and methods, and questions that a model had no vector for."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from trust.retrieve.join_job import JoinWorker
from trust.storage import Storage
from trust.tables import to_rows, to_table
from trust.units import Unit, UnitResult


def write(path: Path, table: str, rows: list[dict[str, Any]]) -> str:
    Storage().write_table(str(path), to_table(table, rows))
    return str(path)


def hit(sample: str, doc: str, score: float, method: str = "bm25") -> dict[str, Any]:
    row = ord(doc) - ord("a")
    return {"sample_id": sample, "method": method, "doc_id": doc, "score": score, "part": row % 2, "row": row // 2}


def join(
    tmp_path: Path, hits: dict[str, list[list[dict[str, Any]]]], failed: list[dict[str, Any]], **more: Any
) -> UnitResult:
    """What becomes of two questions `q0` and `q1` and documents `a` to `f`, which lie in two parts of a corpus in turns."""
    same = {"dataset": "d", "language": "en", "task": "none", "question": "?", "meta": {}}
    samples = write(tmp_path / "s.parquet", "samples", [{"sample_id": name, **same} for name in ("q0", "q1")])
    parts = [
        write(
            tmp_path / f"c{n}.parquet", "corpus", [{"doc_id": d, "title": d.upper(), "text": f"Of {d}."} for d in docs]
        )
        for n, docs in enumerate(("ace", "bdf"))
    ]
    config = {
        "hits": {
            method: [write(tmp_path / f"{method}{n}.parquet", "hits", rows) for n, rows in enumerate(shards)]
            for method, shards in hits.items()
        },
        "corpus": parts,
        "failed": [write(tmp_path / "f.parquet", "failed", failed)] if failed else [],
        "k": 2,
        "depth": 2,
        "fusion": None,
        "storage": {"root": str(tmp_path)},
        "root": str(tmp_path),
    }
    return asyncio.run(JoinWorker(config | more).work(Unit("u", {"path": samples, "start": 0}, 2)))


def docs(result: UnitResult) -> dict[str, list[tuple[str, str, float]]]:
    return {
        row["sample_id"]: [(doc["title"], doc["text"], doc["score"]) for doc in row["docs"]]
        for row in to_rows(result.tables["samples"])
    }


def test_the_best_of_all_shards_with_their_texts(tmp_path: Path) -> None:
    shards = [[hit("q0", "c", 1.0), hit("q0", "b", 2.0)], [hit("q0", "f", 2.0), hit("q1", "d", 0.5)]]
    result = join(tmp_path, {"bm25": shards}, [])
    assert docs(result) == {
        "q0": [("B", "Of b.", 2.0), ("F", "Of f.", 2.0)],
        "q1": [("D", "Of d.", 0.5)],
    }
    assert result.counts == {"ok": 2, "failed": 0}
    assert (result.totals["questions_without_docs"], result.totals["questions_with_fewer_docs"]) == (0, 1)


def test_a_question_without_a_vector_fails_and_is_not_answered_by_words_alone(tmp_path: Path) -> None:
    hits = {
        "bm25": [[hit("q0", "a", 3.0), hit("q1", "a", 3.0)]],
        "dense": [[hit("q0", "b", 0.9, "dense"), hit("q0", "a", 0.4, "dense")]],
    }
    why = {"job": "encode_dense", "row": "q1", "reason": "embed_overflow", "detail": "no number"}
    result = join(tmp_path, hits, [why], fusion="average")
    assert docs(result) == {"q0": [("A", "Of a.", 0.5), ("B", "Of b.", 0.5)]}
    assert result.counts == {"ok": 1, "failed": 1}
    assert result.totals["failed:embed_overflow"] == 1
    (row,) = to_rows(result.tables["failed"])
    assert (row["job"], row["row"], row["detail"]) == ("retrieve", "q1", "no number")


def test_each_method_gives_no_more_than_its_depth(tmp_path: Path) -> None:
    hits = {
        "bm25": [[hit("q0", "a", 3.0)], [hit("q0", "b", 2.0)], [hit("q0", "c", 1.0)]],
        "dense": [[hit("q0", "c", 0.9, "dense")]],
    }
    result = join(tmp_path, hits, [], fusion="rrf", rrf_k=60.0)
    assert [title for title, *_ in docs(result)["q0"]] == ["A", "C"], "the third by words is not counted"
    assert docs(result)["q0"][1][2] == pytest.approx(1 / 61)
    assert docs(result)["q1"] == []
