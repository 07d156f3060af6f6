"""Queries with passages out of topics, judgements and corpus: NoMIRACL as published, and a user's own retrieval."""

import asyncio
import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.trust.prepare.helpers import Rows
from trust.errors import ConfigError, PreflightError
from trust.prepare.config import DataConfig, PoolConfig
from trust.prepare.pools import count, find_pools, plan_pools
from trust.prepare.worker import PrepareWorker
from trust.storage import open_storage
from trust.tables import to_rows


def published(root: Path, language: str = "english", relevant: int = 6, non_relevant: int = 9) -> Path:
    """A collection in the published layout; each query has three passages, the second of a relevant one answers it."""
    folder = root / language
    for kind in ("topics", "qrels"):
        (folder / kind).mkdir(parents=True)
    passages = []
    for subset, number in (("relevant", relevant), ("non_relevant", non_relevant)):
        topics, qrels = [], []
        for n in range(number):
            topics.append(f"{subset[0]}{n}\tWhat is {subset} {n}?")
            for k in range(3):
                qrels.append(f"{subset[0]}{n}\tQ0\t{subset[0]}{n}#{k}\t{int(subset == 'relevant' and k == 1)}")
                passages.append(
                    {"docid": f"{subset[0]}{n}#{k}", "title": f"T{n}", "text": f"Text {k} of {subset} {n}."}
                )
        for split in ("dev", "test"):
            (folder / "topics" / f"{split}.{subset}.tsv").write_text("\n".join(topics))
            (folder / "qrels" / f"{split}.{subset}.tsv").write_text("\n".join(qrels))
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, passages)).encode()))
    return folder


def own(root: Path, run: bool = True) -> Path:
    """q1 has an answer among its first two passages, q2 one that is not judged, q3 none, q4 was not searched for."""
    (root / "topics.tsv").write_text("q1\tOne?\nq2\tTwo?\nq3\tThree?\nq4\tFour?\n")
    (root / "qrels.tsv").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 0\nq3 0 a 0\nq3 0 b 0\nq3 0 c 1\n")
    if run:
        lines = ["q1 Q0 b 2 0.5 me", "q1 Q0 a 1 0.9 me", "q2 Q0 a 1 0.9 me", "q2 Q0 c 2 0.1 me"]
        lines += ["q3 Q0 a 1 3 me", "q3 Q0 b 2 2 me", "q3 Q0 c 3 1 me"]
        (root / "run.trec").write_text("\n".join(lines))
    (root / "corpus.tsv").write_text("id\ttext\ttitle\na\tText a\tA\nb\tText b\tB\nc\tText c\tC\n")
    return root


async def _work(data: DataConfig, units: list[Any]) -> Rows:

    worker = PrepareWorker({"data": asdict(data), "compat": "strict", "storage": {"root": "runs"}})
    found: Rows = {"samples": [], "failed": []}
    for unit in units:
        result = await worker.work(unit)
        assert sum(result.counts.values()) == unit.rows
        for name, table in result.tables.items():
            found[name] += to_rows(table)
    return found


def prepare(path: Path, pool: dict[str, Any] | None = None, **more: Any) -> tuple[Rows, list[str]]:

    data = DataConfig(path=str(path), kind="nomiracl", name="nomiracl", pool=PoolConfig(**(pool or {})), **more)
    storage = open_storage()

    counted = [count(found, asdict(data.pool), storage) for found in find_pools(data, storage)]
    made = plan_pools(data, counted)
    return asyncio.run(_work(data, made.units)), made.warnings


def test_as_published(tmp_path: Path) -> None:
    published(tmp_path)
    published(tmp_path, "yoruba", relevant=2, non_relevant=1)
    found, warnings = prepare(tmp_path, split="dev")
    assert not warnings
    assert len(found["samples"]) == 6 + 9 + 2 + 1
    row = next(row for row in found["samples"] if row["sample_id"] == "nomiracl:en.relevant.r3")
    assert (row["question"], row["language"], row["task"]) == ("What is relevant 3?", "en", "none")
    assert [doc["doc_id"] for doc in row["docs"]] == ["r3#0", "r3#1", "r3#2"]
    assert row["meta"] == {"subset": "relevant", "relevant_passages": '["r3#1"]', "split": "dev"}
    assert {row["language"] for row in found["samples"]} == {"en", "yo"}


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ({"cap": 4}, (4, 4)),
        ({"cap": None}, (6, 9)),
        ({"non_relevant_share": 0.5}, (6, 6)),
        ({"non_relevant_share": 0.75}, (3, 9)),
        ({"non_relevant_share": 1.0, "cap": 5}, (0, 5)),
        ({"non_relevant_share": 0.0}, (6, 0)),
    ],
)
def test_cap_and_share(tmp_path: Path, pool: dict[str, Any], expected: tuple[int, int]) -> None:
    published(tmp_path)
    found = prepare(tmp_path, pool, split="test")[0]["samples"]
    counts = tuple(sum(row["meta"]["subset"] == name for row in found) for name in ("relevant", "non_relevant"))
    assert counts == expected


def test_the_draw_follows_from_ids_and_seed(tmp_path: Path) -> None:
    published(tmp_path / "one")
    folder = published(tmp_path / "two")
    for path in folder.glob("topics/*"):
        path.write_text("\n".join(reversed(path.read_text().splitlines())))

    def drawn(name: str, seed: int) -> set[str]:
        found = prepare(tmp_path / name, {"cap": 3, "seed": seed}, split="dev")[0]["samples"]
        return {row["sample_id"] for row in found}

    assert drawn("one", 1) == drawn("two", 1)
    assert any(drawn("one", 1) != drawn("one", seed) for seed in range(2, 6))


def test_own_retrieval_is_sorted_into_subsets_by_its_judgements(tmp_path: Path) -> None:
    found, warnings = prepare(own(tmp_path), {"passages": 2}, language="de")
    subsets = {row["sample_id"].rpartition(".")[2]: row["meta"]["subset"] for row in found["samples"]}
    assert subsets == {"q1": "relevant", "q3": "non_relevant"}, "what answers q3 is not among the first two"
    first = next(row for row in found["samples"] if row["question"] == "One?")
    assert [(doc["doc_id"], doc["title"], doc["text"]) for doc in first["docs"]] == [
        ("a", "A", "Text a"),
        ("b", "B", "Text b"),
    ]
    assert [(row["reason"], row["field"]) for row in found["failed"]] == [("unjudged", "qrels")]
    assert ["1 queries have no passages" in warning for warning in warnings] == [True]
    lenient = prepare(tmp_path, {"passages": 2, "unjudged": "non_relevant"}, language="de")[0]
    assert len(lenient["samples"]) == 3
    assert not lenient["failed"]


def test_without_a_run_the_judged_passages_are_taken(tmp_path: Path) -> None:
    found, _ = prepare(own(tmp_path, run=False), language="de")
    shown = {row["question"]: [doc["doc_id"] for doc in row["docs"]] for row in found["samples"]}
    assert shown == {"One?": ["a", "b"], "Two?": ["a"], "Three?": ["a", "b", "c"]}


def test_a_passage_that_is_not_in_the_corpus_fails_its_query(tmp_path: Path) -> None:
    own(tmp_path)
    (tmp_path / "corpus.tsv").write_text("id\ttext\na\tText a\nb\tText b\n")
    found, _ = prepare(tmp_path, language="de")
    assert next((row["reason"], "passage c" in row["detail"]) for row in found["failed"]) == ("missing_passage", True)


def test_what_is_wrong_with_a_collection_is_said(tmp_path: Path) -> None:
    published(tmp_path / "pub")
    with pytest.raises(ConfigError, match=r"data\.split= \(dev, test\)"):
        prepare(tmp_path / "pub")
    with pytest.raises(ConfigError, match=r"data\.split=train.*dev, test"):
        prepare(tmp_path / "pub", split="train")
    mine = tmp_path / "mine"
    mine.mkdir()
    own(mine)
    with pytest.raises(ConfigError, match=r"data\.language="):
        prepare(mine)
    (mine / "run.trec").write_text("q1 Q0 b first 0.5")
    with pytest.raises(PreflightError, match=r"run\.trec, line 1"):
        prepare(mine, language="de")
    (mine / "qrels.tsv").unlink()
    with pytest.raises(PreflightError, match="no judgements"):
        prepare(mine, language="de")


def test_pool_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"data\.pool\.cap=0"):
        PoolConfig(cap=0)
    with pytest.raises(ConfigError, match="share from 0 to 1"):
        PoolConfig(non_relevant_share=2)
    with pytest.raises(ConfigError, match=r"only with data\.kind=nomiracl"):
        DataConfig(pool=PoolConfig(cap=3))
