"""The sentence embedder gives the vectors that the model's own modules say, however texts are batched."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer, T5Config, T5EncoderModel, T5ForConditionalGeneration

from tests.trust.ask.nli_models import READS, write
from trust import models
from trust.ask import AskFailed
from trust.ask.runner import Ledger, Runner
from trust.ask.sentence import SentenceConfig, SentenceEmbedder
from trust.errors import ConfigError, PreflightError

TEXTS = [
    "Paris is the capital of France.",
    "The river",
    "東京は日本の首都です。",
    "A much longer text of many words, " * 3,
]


def modules(folder: Path, *kinds: str, pooling: dict[str, Any] | None = None) -> Path:
    """Lists the modules `kinds` behind the Transformer, in the folders that sentence-transformers gives them."""
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for i, kind in enumerate(kinds, start=1):
        listed.append({"idx": i, "name": str(i), "path": f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"})
        (folder / f"{i}_{kind}").mkdir()
    (folder / "modules.json").write_text(json.dumps(listed))
    if "Pooling" in kinds:
        settings = pooling or {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    return folder


def dense(folder: Path, width: int, out: int, activation: str = "Identity", bias: bool = False) -> torch.nn.Linear:
    torch.manual_seed(3)
    layer = torch.nn.Linear(width, out, bias=bias)
    settings = {"in_features": width, "out_features": out, "bias": bias}
    settings["activation_function"] = f"torch.nn.modules.linear.{activation}"
    (folder / "config.json").write_text(json.dumps(settings))
    save_file({f"linear.{name}": value for name, value in layer.state_dict().items()}, folder / "model.safetensors")
    return layer


@pytest.fixture(scope="module")
def gtr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of GTR's form: the encoder of a T5 alone, mean pooling, a layer without bias, length 1."""
    folder = write(tmp_path_factory.mktemp("gtr"))  # for its tokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(1)
    config = T5Config(vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    T5EncoderModel(config).save_pretrained(folder)
    modules(folder, "Pooling", "Dense", "Normalize")
    dense(folder / "2_Dense", 32, 24)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 40, "do_lower_case": false}')
    return folder


def alone(folder: Path, model: Any, text: str, limit: int) -> torch.Tensor:
    """Hidden states (tokens, width) of one text, without padding."""
    tokens = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=limit, return_tensors="pt")
    with torch.inference_mode():
        return model(**{k: v for k, v in tokens.items() if k != "token_type_ids"}).last_hidden_state[0]


def embed(folder: Path, texts: list[str] = TEXTS, **options: Any) -> list[Any]:
    return SentenceEmbedder(SentenceConfig(model=str(folder), threads=2, **options)).answer_batch(
        [{"text": text} for text in texts]
    )


@pytest.mark.parametrize("max_batch_tokens", [None, 40])
def test_gtrs_form(gtr: Path, max_batch_tokens: int | None) -> None:
    layer = torch.nn.Linear(32, 24, bias=False)
    layer.load_state_dict({"weight": dense(gtr / "2_Dense", 32, 24).weight})
    model = T5EncoderModel.from_pretrained(gtr).eval()
    answers = embed(gtr, max_batch_tokens=max_batch_tokens)
    for text, answer in zip(TEXTS, answers, strict=True):
        with torch.inference_mode():
            wanted = layer(alone(gtr, model, text, 40).mean(dim=0))
        np.testing.assert_allclose(answer.vector, (wanted / wanted.norm()).numpy(), atol=1e-5)
    assert [answer.truncated for answer in answers] == [False, False, False, True]
    assert answers[0].vector.dtype == np.float32
    assert answers[0].vector @ answers[1].vector < 0.999, "texts differ"


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_bert_with_either_pooling(tmp_path: Path, pooling: str) -> None:
    folder = modules(write(tmp_path / "m"), "Pooling", pooling={"pooling_mode": pooling})
    model = AutoModel.from_pretrained(folder).eval()
    for text, answer in zip(TEXTS, embed(folder), strict=True):
        hidden = alone(folder, model, text, READS)
        wanted = hidden.mean(dim=0) if pooling == "mean" else hidden[0]
        np.testing.assert_allclose(answer.vector, (wanted / wanted.norm()).numpy(), atol=1e-4)


def test_a_model_without_modules_is_pooled_by_the_mean_and_reads_as_much_as_it_can(tmp_path: Path) -> None:
    folder = write(tmp_path / "m", "roberta", states_limit=False)
    model = AutoModel.from_pretrained(folder).eval()
    (answer,) = embed(folder, ["word " * 200])
    wanted = alone(folder, model, "word " * 200, READS).mean(dim=0)
    np.testing.assert_allclose(answer.vector, (wanted / wanted.norm()).numpy(), atol=1e-4)
    assert answer.truncated


def test_activation_bias_and_lower_case(tmp_path: Path) -> None:
    folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
    layer = dense(folder / "2_Dense", 32, 8, "Tanh", bias=True)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": null, "do_lower_case": true}')
    upper, lower = embed(folder, ["PARIS", "paris"])
    with torch.inference_mode():
        pooled = alone(folder, AutoModel.from_pretrained(folder).eval(), "paris", READS).mean(dim=0)
        wanted = torch.tanh(layer(pooled))
    np.testing.assert_allclose(lower.vector, (wanted / wanted.norm()).numpy(), atol=1e-4)
    np.testing.assert_allclose(upper.vector, lower.vector, atol=1e-6)


def test_bfloat16_moves_vectors_a_little(gtr: Path) -> None:
    for wide, narrow in zip(embed(gtr), embed(gtr, dtype="bfloat16"), strict=True):
        assert 0.98 < float(wide.vector @ narrow.vector) <= 1.0001


def test_repeats_are_asked_once_and_a_cut_is_counted(gtr: Path) -> None:
    async def ask() -> tuple[Ledger, list[Any]]:
        runner = Runner({"embed": SentenceEmbedder(SentenceConfig(model=str(gtr), threads=2))})
        ledger = Ledger()
        rows = [runner.ask_for(f"s{i}", ledger) for i in range(3)]
        return ledger, await asyncio.gather(*(row.embed(text) for row in rows for text in TEXTS))

    ledger, answers = asyncio.run(ask())
    assert (ledger.counts["asked"], ledger.counts["repeated"], ledger.counts["truncated"]) == (4, 8, 1)
    assert answers[0] is answers[4]


def test_what_is_no_number_fails_the_ask(tmp_path: Path) -> None:
    folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
    dense(folder / "2_Dense", 32, 8)
    save_file({"linear.weight": torch.full((8, 32), float("nan"))}, folder / "2_Dense" / "model.safetensors")
    (answer,) = embed(folder, ["Paris"])
    assert isinstance(answer, AskFailed)
    assert answer.reason == "embed_overflow"


def test_the_fingerprint_covers_the_layer_behind_the_model(tmp_path: Path) -> None:
    folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
    dense(folder / "2_Dense", 32, 8)
    before = SentenceConfig(model=str(folder)).fingerprint()
    save_file({"linear.weight": torch.zeros(8, 32)}, folder / "2_Dense" / "model.safetensors")
    assert SentenceConfig(model=str(folder)).fingerprint() != before
    assert (
        SentenceConfig(model=str(folder), batch_size=1).fingerprint() == SentenceConfig(model=str(folder)).fingerprint()
    )


class TestPreflight:
    """One line, before any model loads."""

    def refused(self, folder: Path, **options: Any) -> str:
        with pytest.raises(PreflightError) as error:
            SentenceConfig(model=str(folder), **options).preflight()
        return str(error.value)

    def test_pooling_that_is_not_known(self, tmp_path: Path) -> None:
        folder = modules(write(tmp_path / "m"), "Pooling", pooling={"pooling_mode_lasttoken": True})
        assert "pools by pooling_mode_lasttoken; known here are mean, cls" in self.refused(folder)

    def test_two_kinds_of_pooling_at_once(self, tmp_path: Path) -> None:
        both = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
        assert "pools by cls and mean" in self.refused(modules(write(tmp_path / "m"), "Pooling", pooling=both))

    def test_a_module_that_is_not_known(self, tmp_path: Path) -> None:
        assert "models.LSTM in '1_LSTM'" in self.refused(modules(write(tmp_path / "m"), "LSTM"))

    def test_an_activation_that_is_not_known(self, tmp_path: Path) -> None:
        folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
        dense(folder / "2_Dense", 32, 8, "GELU")
        assert "2_Dense has the activation GELU" in self.refused(folder)

    def test_a_pickled_layer(self, tmp_path: Path) -> None:
        folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
        dense(folder / "2_Dense", 32, 8)
        (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
        assert "2_Dense/model.safetensors is missing (pickled weights are not loaded" in self.refused(folder)

    def test_a_layer_that_is_cut_short(self, gtr: Path, tmp_path: Path) -> None:
        folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
        dense(folder / "2_Dense", 32, 8)
        file = folder / "2_Dense" / "model.safetensors"
        file.write_bytes(file.read_bytes()[:-8])
        assert "2_Dense/model.safetensors: cut short" in self.refused(folder)

    def test_a_prompt_before_each_text(self, tmp_path: Path) -> None:
        folder = write(tmp_path / "m")
        (folder / "config_sentence_transformers.json").write_text('{"default_prompt_name": "query"}')
        assert "wants the prompt 'query'" in self.refused(folder)

    def test_no_model(self, tmp_path: Path) -> None:
        assert "there is no such folder" in self.refused(tmp_path / "none")

    def test_a_layer_alone_is_no_model(self, tmp_path: Path) -> None:
        folder = modules(write(tmp_path / "m"), "Pooling", "Dense")
        dense(folder / "2_Dense", 32, 8)
        (folder / "model.safetensors").unlink()
        assert "missing: safetensors weights" in self.refused(folder)

    def test_messages_name_the_option(self) -> None:
        with pytest.raises(ConfigError, match=r"judge\.embed\.batch_size=0"):
            SentenceConfig(batch_size=0)
        with pytest.raises(ConfigError, match=r"judge\.embed\.dtype"):
            SentenceConfig(dtype="float8")


def test_weights_that_are_missing_are_named(tmp_path: Path) -> None:
    """A T5 that only has the decoder's end, say: nothing is made up."""
    folder = write(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(PreflightError, match=r"its weights lack .*layer\.2"):
        embed(folder)


def test_of_a_whole_t5_the_encoder_is_taken(tmp_path: Path) -> None:
    folder = write(tmp_path / "m")
    size = len(AutoTokenizer.from_pretrained(folder))
    config = T5Config(vocab_size=size, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
    whole = T5ForConditionalGeneration(config)
    whole.save_pretrained(folder)
    (answer,) = embed(folder, ["Paris"])
    wanted = alone(folder, whole.encoder.eval(), "Paris", READS).mean(dim=0)
    np.testing.assert_allclose(answer.vector, (wanted / wanted.norm()).numpy(), atol=1e-5)


def test_an_embedding_model_on_s3_comes_with_its_modules(gtr: Path, s3: str, tmp_path: Path, monkeypatch: Any) -> None:
    from trust.storage import open_storage

    monkeypatch.setenv("TRUST_CACHE", str(tmp_path))
    storage = open_storage(s3)
    for file in gtr.rglob("*"):
        if file.is_file():
            storage.write_bytes(f"{s3}/m/{file.relative_to(gtr)}", file.read_bytes())
    config = SentenceConfig(model=f"{s3}/m", threads=2)
    config.preflight(storage)
    embedder = SentenceEmbedder(config, storage)
    (answer,) = embedder.answer_batch([{"text": TEXTS[0]}])
    np.testing.assert_allclose(answer.vector, embed(gtr)[0].vector, atol=1e-6)
    assert embedder.fingerprint == config.fingerprint(storage) == SentenceConfig(model=str(gtr)).fingerprint()
    assert models.fetch(f"{s3}/m", storage=storage).startswith(str(tmp_path))
