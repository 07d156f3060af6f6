"""Entailment by a T5 model of the TRUE form (google/t5_xxl_true_nli_mixture, or any T5 trained to write "1" or "0").

The published evaluator generates up to ten tokens a pair and compares the text with "1". The first token decides that,
so one decoder step is enough: the label is 1 where "1" is the most likely first token (equal on every golden pair).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trust import models
from trust.ask import AskFailed
from trust.ask.transformer import Encoded, TransformerConfig, TransformerJudge
from trust.errors import PreflightError
from trust.fingerprint import fingerprint
from trust.storage import Storage

TEMPLATE = "premise: {premise} hypothesis: {hypothesis}"


@dataclass
class T5Config(TransformerConfig):
    """A T5 judge.

    Attributes:
        dtype: bfloat16 is what the published scores used; float32 moves near-ties.
        max_length: tokens an input is cut to; null never cuts (as published).
        languages: TRUE was trained on English alone.
    """

    backend: str = "t5"
    model: str = "google/t5_xxl_true_nli_mixture"
    dtype: str = "bfloat16"
    languages: list[str] | None = field(default_factory=lambda: ["en"])

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "T5Judge":
        return T5Judge(self, storage)

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the judge's answers: model content, precision and cut; not batch sizes or devices."""
        return fingerprint(
            {
                "backend": "t5",
                "model": models.fingerprint(self.model, self.revision, storage),
                "dtype": self.dtype,
                "max_length": self.max_length,
                "template": TEMPLATE,
            }
        )


class T5Judge(TransformerJudge):
    """Labels do not depend on how pairs are batched (measured on the golden pairs); p_yes, the probability of "1" as first
    token, may move by thousandths in bfloat16."""

    def __init__(self, config: T5Config, storage: Storage | None = None) -> None:
        super().__init__(config, storage)
        self._max_length = config.max_length
        self._yes = _single_token(self._tokenizer, "1", config.model)

    def _load(self, folder: str, **options: Any) -> Any:
        from transformers import AutoModelForSeq2SeqLM

        return AutoModelForSeq2SeqLM.from_pretrained(folder, **options)

    def _encode(self, inputs: Sequence[dict[str, Any]]) -> list[Encoded | AskFailed]:
        texts = [TEMPLATE.format_map(pair) for pair in inputs]
        encoded = self._tokenizer(texts, truncation=False, verbose=False).input_ids
        rows = [(_cut(ids, self._max_length), ids) for ids in encoded]
        return [({"input_ids": row}, len(row) < len(ids)) for row, ids in rows]

    def _step(self, rows: list[dict[str, list[int]]]) -> list[tuple[int, float]]:
        """Label and probability of "1", by the encoder and one decoder step."""
        torch = self._torch
        padded = self._tokenizer.pad(rows, return_tensors="pt").to(self._device)
        start = torch.full((len(rows), 1), self._model.config.decoder_start_token_id, device=self._device)
        with torch.inference_mode():
            logits = self._model(**padded, decoder_input_ids=start, use_cache=False).logits[:, -1].float()
        p_yes = torch.softmax(logits, dim=-1)[:, self._yes].tolist()
        labels = (logits.argmax(dim=-1) == self._yes).int().tolist()
        return list(zip(labels, p_yes, strict=True))


def _single_token(tokenizer: Any, text: str, model: str) -> int:
    ids = tokenizer(text, add_special_tokens=False).input_ids
    if len(ids) != 1:
        raise PreflightError(
            f"judge.entails.model={model}: its tokenizer writes {text!r} in {len(ids)} tokens, not one"
        )
    return int(ids[0])


def _cut(ids: list[int], limit: int | None) -> list[int]:
    """The first `limit` tokens, the last of them the end mark, as the tokenizer's own truncation leaves it."""
    return ids if limit is None or len(ids) <= limit else [*ids[: limit - 1], ids[-1]]
