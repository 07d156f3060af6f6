"""`logprob` by an encoder-decoder, as BARTScore takes it (Yuan et al., NeurIPS 2021, arXiv 2106.11520, eq. 2): the context goes
through the encoder, and every token of the continuation counts alike, the tokenizer's special ones too, as published.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trust import models
from trust.ask import AskFailed, Likelihood
from trust.ask.transformer import Encoded, TransformerConfig, TransformerModel
from trust.errors import PreflightError
from trust.fingerprint import fingerprint
from trust.storage import Storage

_IGNORED = -100  # what Transformers leaves out of a loss


@dataclass
class Seq2SeqConfig(TransformerConfig):
    """An encoder-decoder that scores texts.

    Attributes:
        max_length: tokens that context and continuation are cut to, each; null is what the model was made for.
        languages: the default model was trained on English.
    """

    backend: str = "seq2seq"
    model: str = "facebook/bart-large-cnn"
    languages: list[str] | None = field(default_factory=lambda: ["en"])

    path: ClassVar[str] = "judge.logprob"

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "Seq2SeqScorer":
        return Seq2SeqScorer(self, storage)

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the answers: model content, precision and cut; not batch sizes or devices."""
        return fingerprint(
            {
                "backend": "seq2seq",
                "model": models.fingerprint(self.model, self.revision, storage),
                "dtype": self.dtype,
                "max_length": self.max_length,
            }
        )


class Seq2SeqScorer(TransformerModel):
    """Log-probabilities are taken in float32; one may move in its fifth digit with the batch it was in."""

    def __init__(self, config: Seq2SeqConfig, storage: Storage | None = None) -> None:
        super().__init__(config, storage)
        self.languages = config.languages
        self._limit = self._find_limit(config)

    def _load(self, folder: str, **options: Any) -> Any:
        from transformers import AutoConfig, AutoModelForSeq2SeqLM

        settings = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if not settings.is_encoder_decoder:
            raise PreflightError(
                f"judge.logprob.model={folder}: a {settings.model_type} is no encoder-decoder; take judge/logprob=vllm for it"
            )
        return AutoModelForSeq2SeqLM.from_pretrained(folder, **options)

    def _encode(self, inputs: Sequence[dict[str, Any]]) -> list[Encoded | AskFailed]:
        found: list[Encoded | AskFailed] = []
        for one in inputs:
            context, cut = self._tokens(text=one["context"])
            target, shortened = self._tokens(text_target=one["continuation"])
            found.append(({"input_ids": context, "labels": target}, cut or shortened))
        return found

    def _tokens(self, **text: str) -> tuple[list[int], bool]:
        ids = self._tokenizer(**text, truncation=False, verbose=False).input_ids
        if self._limit is None or len(ids) <= self._limit:
            return ids, False
        return self._tokenizer(**text, truncation=True, max_length=self._limit, verbose=False).input_ids, True

    def _answers(self, rows: list[Encoded]) -> list[Likelihood | AskFailed]:
        torch = self._torch
        contexts = [{"input_ids": row["input_ids"]} for row, _ in rows]
        padded = self._tokenizer.pad(contexts, padding_side="right", return_tensors="pt").to(self._device)
        longest = max(len(row["labels"]) for row, _ in rows)
        targets = [row["labels"] + [_IGNORED] * (longest - len(row["labels"])) for row, _ in rows]
        labels = torch.tensor(targets, device=self._device)
        with torch.inference_mode():
            logits = self._model(**padded, labels=labels, use_cache=False).logits.float()
            lost = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), labels, reduction="none", ignore_index=_IGNORED
            )
        counted = (labels != _IGNORED).sum(dim=1)
        means = (-lost.sum(dim=1) / counted).tolist()
        return [
            Likelihood(mean, int(tokens), truncated=cut)
            if math.isfinite(mean)
            else AskFailed("judge_overflow", "the model's log-probabilities are no numbers; take a wider dtype")
            for mean, tokens, (_, cut) in zip(means, counted.tolist(), rows, strict=True)
        ]
