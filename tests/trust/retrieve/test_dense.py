"""Search by vectors against comparing every pair."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.trust.retrieve import late_model
from trust.errors import ConfigError, PreflightError
from trust.retrieve.dense import Passages, Vectors, search_block
from trust.retrieve.late import LateEncoder, LateOptions, TokenVectors, maxsim
from trust.retrieve.top import Best, Block
from trust.storage import Storage

K = 7


def unit(rows: int, width: int, seed: int) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def names(count: int) -> list[str]:
    return [f"{n:05d}" for n in range(count)]


def search(blocks: list[tuple[Passages, int, int]], questions: int) -> list[list[tuple[str, float]]]:
    """Best documents of each question; `blocks` with number of their first passage and of the one behind their last."""
    best = Best(questions, K)
    for passages, start, end in blocks:
        search_block(passages, K, best, Block(pa.array(names(end)[start:]), 0, start))
    rows = best.table("dense", [f"q{n}" for n in range(questions)]).to_pylist()
    rows.sort(key=lambda row: (-row["score"], row["doc_id"]))
    return [[(row["doc_id"], row["score"]) for row in rows if row["sample_id"] == f"q{n}"] for n in range(questions)]


def brute(scores: np.ndarray) -> list[list[tuple[str, float]]]:
    ids = names(scores.shape[1])
    return [sorted(zip(ids, row.tolist(), strict=True), key=lambda hit: (-hit[1], hit[0]))[:K] for row in scores]


@pytest.mark.parametrize("size", [50, 333, 2000])
def test_all_that_comparing_every_pair_finds(size: int) -> None:
    questions, passages = unit(20, 24, 1), unit(2000, 24, 2)
    passages[1500:1600] = passages[:100]  # ties
    expected = brute((questions.astype(np.float64)[:, None] * passages.astype(np.float64)[None]).sum(axis=2))
    cuts = [(start, min(start + size, 2000)) for start in range(0, 2000, size)]
    found = search([(Vectors(questions, passages[a:b], np.matmul), a, b) for a, b in cuts], 20)
    assert found == expected, "the very same scores, whatever the cut"


def test_rough_products_change_nothing() -> None:
    """A GPU may be as far off as the slack allows."""
    questions, passages = unit(10, 16, 3), unit(500, 16, 4)
    noise = np.random.default_rng(5).uniform(-1e-4, 1e-4, (10, 500)).astype(np.float32)
    noisy = Vectors(questions, passages, lambda a, b: a @ b + noise)
    assert search([(noisy, 0, 500)], 10) == search([(Vectors(questions, passages, np.matmul), 0, 500)], 10)


@pytest.mark.parametrize("size", [13, 300])
def test_maxsim_of_every_pair(size: int) -> None:
    rng = np.random.default_rng(6)
    asked, held = rng.integers(1, 5, 9), rng.integers(1, 60, 300)
    questions, tokens = unit(int(asked.sum()), 16, 7), unit(int(held.sum()), 16, 8)
    q = np.split(questions, np.cumsum(asked)[:-1])
    p = np.split(tokens, np.cumsum(held)[:-1])
    expected = brute(np.array([[maxsim(one, other) for other in p] for one in q]))
    starts = np.concatenate([[0], np.cumsum(held)])
    cuts = [(start, min(start + size, 300)) for start in range(0, 300, size)]
    blocks = [(TokenVectors(questions, asked, tokens[starts[a] : starts[b]], held[a:b]), a, b) for a, b in cuts]
    assert search(blocks, 9) == expected


def test_maxsim_by_hand() -> None:
    """Of (1, 0) the best product is 0.6, of (0, 1) it is 1."""
    assert maxsim(np.eye(2), np.array([[0.6, 0.8], [0.0, 1.0]])) == pytest.approx(1.6)


def test_a_model_gives_what_the_library_scores(tmp_path: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    options = LateOptions(model=str(late_model.write(tmp_path)))
    options.preflight(Storage())
    encoder = LateEncoder(options, Storage(), 1)
    question = "What is the capital of France?"
    texts = ["Paris is the capital of France.", "a", "The river flows."]
    (asked,), found = encoder.encode([question], True), encoder.encode(texts, False)
    model = MultiVectorEncoder(options.model, device="cpu")
    expected = model.similarity(model.encode_query([question]), model.encode_document(texts))[0]
    assert isinstance(asked, np.ndarray)
    assert [maxsim(asked, one) for one in found] == pytest.approx(expected.tolist(), abs=0.01), "kept in 16 bits"


def test_a_model_that_was_not_made_for_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"no multi-vector encoder .* random weights"):
        LateOptions(model=str(late_model.write(tmp_path).parent / "bert")).preflight(Storage())
    with pytest.raises(ConfigError, match="did you mean float32"):
        LateOptions(dtype="float3")
