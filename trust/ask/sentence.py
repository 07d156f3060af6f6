"""Vectors of texts by a sentence embedding model: any Transformer encoder, with the modules that its folder names
(`trust.ask.modules`): GTR (a T5 encoder, mean pooling, a linear layer), MiniLM, MPNet, BGE and the like.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trust import models
from trust.ask import AskFailed, Embedding
from trust.ask.modules import read_file, read_modules
from trust.ask.transformer import Encoded, ModelOptions, TransformerModel
from trust.errors import PreflightError
from trust.fingerprint import fingerprint
from trust.storage import Storage

MODEL = "sentence-transformers/gtr-t5-large"  # of the published post-hoc citations


@dataclass
class SentenceConfig(ModelOptions):
    """A sentence embedding model.

    Attributes:
        max_length: tokens a text is cut to; null is what the model was made for.
    """

    backend: str = "sentence"
    model: str = MODEL

    path: ClassVar[str] = "judge.embed"

    def preflight(self, storage: Storage | None = None) -> None:
        super().preflight(storage)
        if models.is_gguf(self.model):
            raise PreflightError(f"{self.path}.model={self.model}: a language model; an embedding model is wanted")
        read_modules(self.model, self.revision, storage)

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "SentenceEmbedder":
        return SentenceEmbedder(self, storage)

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the vectors: model content, its modules among it, precision and cut; not batch sizes or devices."""
        return fingerprint(
            {
                "backend": self.backend,
                "model": models.fingerprint(self.model, self.revision, storage),
                "dtype": self.dtype,
                "max_length": self.max_length,
            }
        )


class SentenceEmbedder(TransformerModel):
    """Pooling and what follows are done in float32; a vector may move in its sixth digit with the batch it was in."""

    _all_layers = False  # whether `_tokens` is given the hidden states of every layer

    def __init__(self, config: SentenceConfig, storage: Storage | None = None) -> None:
        super().__init__(config, storage)
        self._modules = read_modules(self._folder, config.revision, storage)
        self._dense = [self._layer(module.weights, config.revision, storage) for module in self._modules.dense]
        self._limit = self._find_limit(config, self._modules.max_length)
        self._tokenizer.padding_side = "right"  # the first token is the one that `cls` takes

    def _load(self, folder: str, **options: Any) -> Any:
        from transformers import MODEL_FOR_TEXT_ENCODING_MAPPING, AutoConfig, AutoModel, AutoModelForTextEncoding

        self._folder = folder
        settings = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        encodes = type(settings) in MODEL_FOR_TEXT_ENCODING_MAPPING
        if settings.is_encoder_decoder and not encodes:
            raise PreflightError(f"judge.embed.model={folder}: a {settings.model_type} has no encoder to take alone")
        model, found = (AutoModelForTextEncoding if encodes else AutoModel).from_pretrained(
            folder, output_loading_info=True, **options
        )
        # The layer that some models pool with is not used here, and often not stored.
        if missing := sorted(key for key in found["missing_keys"] if not key.startswith("pooler.")):
            raise PreflightError(f"judge.embed.model={folder}: its weights lack {', '.join(missing[:3])}")
        return model

    def _layer(self, name: str, revision: str | None, storage: Storage | None) -> tuple[Any, Any]:
        """Weight and bias (None where there is none) of a linear layer, in float32."""
        from safetensors.torch import load

        tensors = load(read_file(self._folder, name, revision, storage) or b"")
        weight, bias = tensors["linear.weight"], tensors.get("linear.bias")
        return weight.float().to(self._device), None if bias is None else bias.float().to(self._device)

    def _encode(self, inputs: Sequence[dict[str, Any]]) -> list[Encoded | AskFailed]:
        texts = [one["text"].lower() if self._modules.lower else one["text"] for one in inputs]
        encoded = self._tokenizer(texts, truncation=False, verbose=False)
        rows = [{key: values[i] for key, values in encoded.items()} for i in range(len(texts))]
        limit = self._limit
        return [
            (row, False)
            if limit is None or len(row["input_ids"]) <= limit
            else (dict(self._tokenizer(text, truncation=True, max_length=limit, verbose=False)), True)
            for row, text in zip(rows, texts, strict=True)
        ]

    def _answers(self, rows: list[Encoded]) -> list[Embedding | AskFailed]:
        torch = self._torch
        padded = self._tokenizer.pad([row for row, _ in rows], return_tensors="pt").to(self._device)
        with torch.inference_mode():
            read = self._model(**padded, output_hidden_states=self._all_layers)
            vectors = self._pool(read.last_hidden_state.float(), padded["attention_mask"])
            for (weight, bias), module in zip(self._dense, self._modules.dense, strict=True):
                vectors = torch.nn.functional.linear(vectors, weight, bias)
                vectors = torch.tanh(vectors) if module.activation == "Tanh" else vectors
            vectors = torch.nn.functional.normalize(vectors, dim=-1)
            tokens = self._tokens(read, [row["input_ids"] for row, _ in rows])
        finite = torch.isfinite(vectors).all(dim=-1).tolist()
        return [
            Embedding(vector, cut, *more)
            if good
            else AskFailed("embed_overflow", "the model's vector holds what is no number; take a wider dtype")
            for vector, good, more, (_, cut) in zip(vectors.cpu().numpy(), finite, tokens, rows, strict=True)
        ]

    def _tokens(self, read: Any, ids: list[list[int]]) -> Sequence[tuple[np.ndarray, ...]]:
        """`tokens`, `special` and `ids` of each text's Embedding, where they are given: not here."""
        return [()] * len(ids)

    def _pool(self, hidden: Any, attention: Any) -> Any:
        """One vector a text of its tokens' (texts, tokens, width)."""
        if self._modules.pooling == "cls":
            return hidden[:, 0]
        mask = attention.unsqueeze(-1).float()
        return (hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1e-9)
