"""Vectors of a text's tokens, by one layer of any Transformer encoder, for BERTScore (Zhang et al., ICLR 2020, arXiv 1904.09675);
beside them the vector of the whole text, as `judge/embed=sentence` gives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import yaml

from trust.ask import AskFailed
from trust.ask.sentence import SentenceConfig, SentenceEmbedder
from trust.ask.transformer import Encoded
from trust.errors import ConfigError, PreflightError
from trust.fingerprint import fingerprint
from trust.storage import Storage

# Their tokenizers tell a word at the start of a text from the same word behind a space; BERTScore reads the latter.
_SPACE_FIRST = ("roberta", "longformer", "gpt2", "bart")


@dataclass
class TokenConfig(SentenceConfig):
    """An encoder, and the layer that is read.

    Attributes:
        layer: counted from 1; 0 is what goes into the first. Null is the published choice for the model, where there is one.
    """

    backend: str = "token"
    model: str = "FacebookAI/roberta-large"
    layer: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layer is None:
            self.layer = layers().get(self.model.rstrip("/").rpartition("/")[2])
        if self.layer is None:
            raise ConfigError(
                f"{self.path}.layer is not set, and no layer was published for {self.model}: give one (about two thirds of "
                f"the model's layers), or take one of {', '.join(layers())}"
            )
        if self.layer < 0:
            raise ConfigError(f"{self.path}.layer={self.layer}: must be at least 0")

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "TokenEmbedder":
        return TokenEmbedder(self, storage)

    def fingerprint(self, storage: Storage | None = None) -> str:
        return fingerprint({"sentence": super().fingerprint(storage), "layer": self.layer})


class TokenEmbedder(SentenceEmbedder):
    """Vectors are made of length 1 in float32."""

    _all_layers = True

    def __init__(self, config: TokenConfig, storage: Storage | None = None) -> None:
        super().__init__(config, storage)
        there = self._model.config.num_hidden_layers
        if config.layer is None or config.layer > there:
            raise PreflightError(f"{config.path}.layer={config.layer}: {config.model} has {there} layers")
        self._read_layer = config.layer
        marks = ("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id")
        self._marks = [mark for name in marks if (mark := getattr(self._tokenizer, name)) is not None]
        self._first = " " if self._model.config.model_type in _SPACE_FIRST else ""

    def _encode(self, inputs: Sequence[dict[str, Any]]) -> list[Encoded | AskFailed]:
        return super()._encode([{"text": self._first + one["text"].strip()} for one in inputs])

    def _tokens(self, read: Any, ids: list[list[int]]) -> Sequence[tuple[np.ndarray, ...]]:
        hidden = read.hidden_states[self._read_layer].float()
        vectors = self._torch.nn.functional.normalize(hidden, dim=-1).cpu().numpy()
        return [
            (vectors[i, : len(row)].copy(), np.isin(row, self._marks), np.array(row, dtype=np.int64))
            for i, row in enumerate(ids)
        ]

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return len(self._tokenizer)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens that `answer` would give vectors of, for each text."""
        encoded = self._encode([{"text": text} for text in texts]) if texts else []
        return [one[0]["input_ids"] for one in encoded if not isinstance(one, AskFailed)]


@cache
def layers() -> dict[str, int]:
    """Last part of a model's name -> the layer that was published for it."""
    return yaml.safe_load(resources.files("trust.ask").joinpath("token_layers.yaml").read_text(encoding="utf-8"))
