"""Vectors of tokens: of the layer that was asked for, without padding, with the tokenizer's own marks told apart."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from tests.trust.ask.nli_models import READS, write
from trust.ask.token import TokenConfig, layers
from trust.errors import ConfigError, PreflightError

TEXTS = ["Paris is the capital of France.", " The river ", "word " * 100, ""]


@pytest.mark.parametrize(("kind", "space"), [("bert", ""), ("roberta", " ")])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_one_layers_vectors(tmp_path: Path, kind: str, space: str, layer: int) -> None:
    folder = write(tmp_path / "m", kind)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    answers = TokenConfig(model=str(folder), layer=layer, threads=2).load().answer_batch([{"text": t} for t in TEXTS])
    for text, answer in zip(TEXTS, answers, strict=True):
        read = tokenizer(
            space + text.strip(),
            truncation=True,
            max_length=READS,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        special = read.pop("special_tokens_mask")[0].bool().numpy()
        with torch.inference_mode():
            hidden = model(**read, output_hidden_states=True).hidden_states[layer][0]
        wanted = torch.nn.functional.normalize(hidden, dim=-1).numpy()
        np.testing.assert_allclose(answer.tokens, wanted, atol=1e-4)
        np.testing.assert_array_equal(answer.special, special)
        assert answer.tokens.dtype == np.float32
        assert answer.vector @ answer.vector == pytest.approx(1.0)
    assert [answer.truncated for answer in answers] == [False, False, True, False]


def test_the_published_layer_where_there_is_one(tmp_path: Path) -> None:
    assert TokenConfig().layer == TokenConfig(model="roberta-large").layer == layers()["roberta-large"] == 17
    with pytest.raises(ConfigError, match=r"judge\.embed\.layer is not set, and no layer was published for some/model"):
        TokenConfig(model="some/model")
    with pytest.raises(ConfigError, match=r"layer=-1"):
        TokenConfig(layer=-1)
    with pytest.raises(PreflightError, match="has 2 layers"):
        TokenConfig(model=str(write(tmp_path / "m")), layer=3, threads=1).load()


def test_identity_has_the_layer(tmp_path: Path) -> None:
    folder = str(write(tmp_path / "m"))
    assert len({TokenConfig(model=folder, layer=layer).fingerprint() for layer in (0, 1, 2)}) == 3
