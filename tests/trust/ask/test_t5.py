"""The T5 judge gives the published evaluator's labels, however pairs are batched."""

import gzip
import json
from pathlib import Path

import pytest
import torch

from trust.ask import bf16
from trust.ask.t5 import T5Config, T5Judge, _cut


@pytest.fixture(scope="module")
def golden(shared: Path) -> list[dict]:
    """The golden pairs of all three tasks."""
    found = []
    for task in ("asqa", "qampari", "eli5"):
        with gzip.open(shared / "data" / "trust_golden" / task / "nli_labels.json.gz") as file:
            found += json.load(file)
    return found


@pytest.fixture(scope="module")
def pairs(golden: list[dict]) -> list[dict]:
    """A spread of them."""
    return golden[::8]


@pytest.fixture(scope="module")
def judge(shared: Path) -> T5Judge:
    return T5Judge(T5Config(model=str(shared / "models" / "tiny_true_nli"), threads=2))


def test_labels_equal_the_published_ones_in_batches(judge: T5Judge, pairs: list[dict]) -> None:
    verdicts = judge.answer_batch(pairs)
    assert [verdict.label for verdict in verdicts] == [pair["label"] for pair in pairs]
    assert {verdict.label for verdict in verdicts} == {0, 1}
    assert not any(verdict.truncated for verdict in verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [None, 512, 16_384])
def test_all_golden_labels_are_equal_at_any_batch_size(shared: Path, golden: list[dict], tokens: int | None) -> None:
    judge = T5Judge(T5Config(model=str(shared / "models" / "tiny_true_nli"), max_batch_tokens=tokens, threads=2))
    verdicts = [
        verdict for start in range(0, len(golden), 32) for verdict in judge.answer_batch(golden[start : start + 32])
    ]
    assert [verdict.label for verdict in verdicts] == [pair["label"] for pair in golden]


def test_one_by_one_gives_the_same_labels_and_nearly_the_same_scores(judge: T5Judge, pairs: list[dict]) -> None:
    together = judge.answer_batch(pairs[:8])
    alone = [judge.answer_batch([pair])[0] for pair in pairs[:8]]
    assert [v.label for v in alone] == [v.label for v in together]
    assert [v.p_yes for v in alone] == pytest.approx([v.p_yes for v in together], abs=0.01)


def test_a_cut_input_is_marked(shared: Path, pairs: list[dict]) -> None:
    short = T5Judge(T5Config(model=str(shared / "models" / "tiny_true_nli"), max_length=32, threads=2))
    (verdict,) = short.answer_batch(pairs[:1])
    assert verdict.truncated


def test_a_cut_keeps_the_end_mark() -> None:
    assert _cut([5, 6, 7, 1], 3) == [5, 6, 1]
    assert _cut([5, 1], 3) == [5, 1]


@pytest.mark.parametrize("keep_bytes", [None, 0, 64 * 32 * 4])
def test_products_in_float32_equal_bfloat16_ones(keep_bytes: int | None) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(*shape, dtype=torch.bfloat16) for shape in ((64, 32), (32, 64))))
    inputs = torch.randn(16, 64, dtype=torch.bfloat16)
    before = model(inputs).float()
    bf16.multiply_in_float32(model, keep_bytes)
    after = model(inputs)
    assert after.dtype == torch.bfloat16
    # One unit in the last place where the order of summation decides a rounding.
    torch.testing.assert_close(after.float(), before, rtol=2**-7, atol=2**-8)


def test_copies_of_weights_stay_within_the_memory_given() -> None:
    def copies(keep_bytes: int) -> int:
        model = torch.nn.Sequential(*(torch.nn.Linear(8, 8, dtype=torch.bfloat16) for _ in range(3)))
        bf16.multiply_in_float32(model, keep_bytes)
        tensors = [value for layer in model for value in vars(layer).values() if isinstance(value, torch.Tensor)]
        return sum(value.nbytes for value in tensors if value.numel() == 64)

    layer = 8 * 8 * 4
    assert [copies(n) for n in (0, layer, 3 * layer - 1, 3 * layer)] == [0, layer, 2 * layer, 3 * layer]
