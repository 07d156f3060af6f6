"""BM25 on any number of shards, against bm25s over one index and by hand."""

import math
import random

import bm25s
import numpy as np
import pyarrow as pa
import pytest

from trust.retrieve.bm25 import Statistics, Weights, idf, postings
from trust.retrieve.terms import Terms
from trust.retrieve.top import Best, Block

WORDS = [f"word{n}" for n in range(60)]


def texts(count: int) -> list[str]:
    draw = random.Random(7)
    weights = [1 / rank for rank in range(1, len(WORDS) + 1)]  # a few words are in most passages, as in any language
    return [" ".join(draw.choices(WORDS, weights, k=draw.randint(1, 40))) for _ in range(count)]


def scored(passages: list[str], questions: list[str], shards: int, scoring: str, k1: float, b: float) -> np.ndarray:
    """Scores of all passages, shape (questions, passages), worked out shard by shard."""
    terms = Terms(None)
    size = -(-len(passages) // shards)
    made = [postings(n, *terms.count(passages[n * size : (n + 1) * size])) for n in range(shards)]
    asked = [terms.of(question) for question in questions]
    vocabulary = sorted({term for one in asked for term in one})
    df = np.zeros(len(vocabulary), np.int64)
    for shard in made:
        held = dict(zip(shard.column("term").to_pylist(), shard.column("df").to_pylist(), strict=True))
        df += [held.get(term, 0) for term in vocabulary]
    lengths = [len(terms.of(passage)) for passage in passages]
    statistics = Statistics(len(passages), sum(lengths))
    weights = idf(df, len(passages), scoring)
    columns = []
    for shard in made:
        one = Weights(shard, vocabulary, weights, statistics, scoring, k1, b)
        columns.append(np.stack([one.score([vocabulary.index(term) for term in terms]) for terms in asked]))
    return np.concatenate(columns, axis=1)


@pytest.mark.parametrize("scoring", ["lucene", "robertson", "atire"])
@pytest.mark.parametrize("shards", [1, 8])
def test_one_shard_and_eight_have_the_scores_of_bm25s(scoring: str, shards: int) -> None:
    passages = texts(83)
    questions = ["word0 word5", "word3 word3 word59", "word1 unknown word2", " ".join(WORDS[10:30])]
    whole = bm25s.BM25(k1=0.9, b=0.4, method=scoring)
    whole.index([Terms(None).of(passage) for passage in passages], show_progress=False)
    expected = np.stack([whole.get_scores(Terms(None).of(question)) for question in questions])
    found = scored(passages, questions, shards, scoring, 0.9, 0.4)
    assert expected.max() > 1
    assert np.array_equal(found, expected), f"differs by {np.abs(found - expected).max()}"


def test_a_score_by_hand() -> None:
    """Two passages of 3 and 1 terms; `baikal` is in the first, twice: idf ln(1 + 1.5/1.5), tf 2 over k1(1-b+b·3/2) + 2."""
    found = scored(["lake baikal baikal", "murray"], ["baikal"], 1, "lucene", 1.2, 0.75)
    expected = math.log(2) * 2 / (1.2 * (0.25 + 0.75 * 3 / 2) + 2)
    assert found[0].tolist() == pytest.approx([expected, 0], abs=1e-6)


def test_a_shard_tells_which_passages_hold_a_term_and_how_often() -> None:
    shard = postings(4, *Terms("en").count(["The lakes, the lake", "of", "routers of the lake"]))
    rows = {row.pop("term"): row for row in shard.to_pylist()}
    assert list(rows) == ["", "lake", "router"]
    assert rows["lake"] == {"shard": 4, "df": 2, "docs": [0, 2], "counts": [2, 1]}
    assert (rows[""]["df"], rows[""]["counts"]) == (3, [2, 0, 2]), "passages, and the terms of each"


def test_a_shard_without_any_term() -> None:
    shard = postings(0, *Terms("en").count(["the", ""]))
    one = Weights(shard, ["lake"], idf(np.array([0]), 2, "lucene"), Statistics(2, 0), "lucene", 0.9, 0.4)
    assert one.score([0]).tolist() == [0, 0]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_the_best_are_the_same_in_any_order_of_shards_and_ties_go_by_id(order: list[int]) -> None:
    blocks = [(["a", "d", "e"], [1.0, 3.0, 2.0]), (["b", "f"], [3.0, 2.0]), (["c", "g", "h"], [2.0, 0.5, 2.0])]
    best = Best(2, 4)
    for number in order:
        ids, scores = blocks[number]
        best.offer(0, np.array(scores, np.float32), np.arange(len(ids)), Block(pa.array(ids), number, 10))
    found = best.table("bm25", ["q0", "q1"]).to_pylist()
    assert {row["sample_id"] for row in found} == {"q0"}
    ranked = sorted(found, key=lambda row: (-row["score"], row["doc_id"]))
    assert [(row["doc_id"], row["score"], row["part"], row["row"]) for row in ranked] == [
        ("b", 3, 1, 10),
        ("d", 3, 0, 11),
        ("c", 2, 2, 10),
        ("e", 2, 0, 12),
    ]


def test_many_ties_in_one_block_keep_the_first_ids() -> None:
    best = Best(1, 2)
    ids = [f"{n:02d}" for n in range(50)]
    best.offer(0, np.ones(50, np.float32), np.arange(50), Block(pa.array(ids), 0, 0))
    assert [row["doc_id"] for row in best.table("bm25", ["q"]).to_pylist()] == ["00", "01"]
