"""The encoder-decoder says what its own loss says, however texts are batched, and tells where it cut."""

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BartConfig, BartForConditionalGeneration

from tests.trust.ask.nli_models import READS, write
from trust.ask import Likelihood
from trust.ask.seq2seq import Seq2SeqConfig
from trust.errors import PreflightError

PAIRS = [
    ("Paris is the capital of France.", "Paris is in France."),
    ("The river", "The river flows out of the lake, and the lake is deep."),
    ("東京は日本の首都です。", "x"),
    ("word " * 100, "short"),
    ("short", "word " * 100),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(tmp_path_factory.mktemp("bart"))  # for its tokenizer
    torch.manual_seed(0)
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"layers": 1, "ffn_dim": 48, "attention_heads": 2}.items()
    }
    config = BartConfig(
        vocab_size=len(AutoTokenizer.from_pretrained(folder)),
        d_model=32,
        max_position_embeddings=READS,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=3,
        init_std=0.6,
        **sizes,
    )
    BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


def answers(folder: Path, **options: int) -> list[Likelihood]:
    backend = Seq2SeqConfig(model=str(folder), threads=2, **options).load()
    return backend.answer_batch([{"context": context, "continuation": text} for context, text in PAIRS])


@pytest.mark.parametrize("tokens", [None, 80])
def test_the_mean_over_all_tokens_of_the_continuation(folder: Path, tokens: int | None) -> None:
    model, tokenizer = (
        BartForConditionalGeneration.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    for (context, text), answer in zip(PAIRS, answers(folder, max_batch_tokens=tokens), strict=True):
        read, wanted = (
            tokenizer(part, truncation=True, max_length=READS, return_tensors="pt").input_ids
            for part in (context, text)
        )
        with torch.inference_mode():
            loss = model(input_ids=read, labels=wanted).loss
        assert answer.mean == pytest.approx(-float(loss), abs=1e-4)
        assert answer.tokens == wanted.shape[1]
    assert [answer.truncated for answer in answers(folder)] == [False, False, False, True, True]


def test_a_shorter_limit_of_ones_own(folder: Path) -> None:
    assert [answer.tokens for answer in answers(folder, max_length=4)] == [4, 4, 3, 4, 4]
    with pytest.raises(PreflightError, match=r"judge\.logprob\.max_length=100: .* reads at most"):
        answers(folder, max_length=100)


def test_a_model_that_has_no_decoder(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="a bert is no encoder-decoder; take judge/logprob=vllm"):
        Seq2SeqConfig(model=str(write(tmp_path / "m")), threads=1).load()


def test_identity_is_of_what_changes_answers(folder: Path) -> None:
    def of(**options: object) -> str:
        return Seq2SeqConfig(model=str(folder), **options).fingerprint()

    assert of() == of(batch_size=3, threads=1, languages=["ja"])
    assert len({of(), of(max_length=9), of(dtype="bfloat16")}) == 3
