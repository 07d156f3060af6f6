"""Entailment by a T5 model of the TRUE form (google/t5_xxl_true_nli_mixture, or any T5 trained to write "1" or "0").

The published evaluator generates up to ten tokens a pair and compares the text with "1". The first token decides that,
so one decoder step is enough: the label is 1 where "1" is the most likely first token (equal on every golden pair).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trust.ask import AskFailed, Verdict, bf16
from trust.errors import ConfigError, PreflightError
from trust.fingerprint import fingerprint
from trust.storage import Storage, is_s3

_BATCH_TOKENS = {"cuda": 16_384, "cpu": 2_048}

TEMPLATE = "premise: {premise} hypothesis: {hypothesis}"


@dataclass
class T5Config:
    """A T5 judge.

    Attributes:
        model: hub id, folder, s3:// folder or package:// address.
        revision: of a hub model; recorded, and part of the judge's fingerprint.
        dtype: bfloat16 is what the published scores used; float32 moves near-ties.
        max_length: tokens an input is cut to; null never cuts (as published).
        batch_size: pairs a batch at most.
        max_batch_tokens: padded tokens a batch at most, so that long premises do not exhaust memory; null is 16,384 on
            a GPU and 2,048 on a CPU, which is busy by then and would only compute more padding.
        gpus: an actor's share of GPUs; null takes one where the cluster has one now, else none.
        threads: CPU threads; null shares the machine's among the actors.
    """

    backend: str = "t5"
    model: str = "google/t5_xxl_true_nli_mixture"
    revision: str | None = None
    dtype: str = "bfloat16"
    max_length: int | None = None
    batch_size: int = 32
    max_batch_tokens: int | None = None
    gpus: float | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in ("bfloat16", "float16", "float32"):
            raise ConfigError(f"judge.entails.dtype={self.dtype}: bfloat16, float16 or float32")
        for key in ("batch_size", "max_batch_tokens"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise ConfigError(f"judge.entails.{key}={value}: must be at least 1")


class T5Judge:
    """Loads the model in the actor. Labels do not depend on how pairs are batched (measured on the golden pairs);
    p_yes, the probability of "1" as first token, may move by thousandths in bfloat16."""

    def __init__(self, config: T5Config, storage: Storage | None = None) -> None:
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        from trust import models

        folder = models.fetch(config.model, config.revision, storage)
        self.batch_size = config.batch_size
        # Of the copy on this node: the same content, and nothing is read from the storage again.
        copy = replace(config, model=folder) if is_s3(config.model) else config
        self.fingerprint = judge_fingerprint(copy, storage)
        self._config = config
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._batch_tokens = config.max_batch_tokens or _BATCH_TOKENS[self._device]
        if self._device == "cpu":
            torch.set_num_threads(config.threads or os.cpu_count() or 1)
        options = {"revision": config.revision, "trust_remote_code": False}
        self._tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        self._model = (
            AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=getattr(torch, config.dtype), **options)
            .to(self._device)
            .eval()
        )
        if self._device == "cpu" and config.dtype == "bfloat16" and bf16.without_instructions():
            bf16.multiply_in_float32(self._model)
        self._yes = _single_token(self._tokenizer, "1", config.model)
        self._torch = torch

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Verdict | AskFailed]:
        texts = [TEMPLATE.format_map(pair) for pair in inputs]
        encoded = self._tokenizer(texts, truncation=False).input_ids
        cut = self._config.max_length
        lengths = [len(ids) if cut is None else min(len(ids), cut) for ids in encoded]
        answers: list[Verdict | AskFailed | None] = [None] * len(inputs)
        for chunk in _chunks(lengths, self._batch_tokens):
            rows = [_cut(encoded[i], cut) for i in chunk]
            for i, (label, p_yes) in zip(chunk, self._step(rows), strict=True):
                answers[i] = Verdict(label, p_yes, truncated=len(encoded[i]) > lengths[i])
        return [answer for answer in answers if answer is not None]

    def _step(self, rows: list[list[int]]) -> list[tuple[int, float]]:
        """Label and probability of "1" for token rows, by the encoder and one decoder step."""
        torch = self._torch
        padded = self._tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self._device)
        start = torch.full((len(rows), 1), self._model.config.decoder_start_token_id, device=self._device)
        with torch.inference_mode():
            logits = self._model(**padded, decoder_input_ids=start, use_cache=False).logits[:, -1].float()
        p_yes = torch.softmax(logits, dim=-1)[:, self._yes].tolist()
        labels = (logits.argmax(dim=-1) == self._yes).int().tolist()
        return list(zip(labels, p_yes, strict=True))


def judge_fingerprint(config: T5Config, storage: Storage | None = None) -> str:
    """Identity of the judge's answers: model content, precision and cut; not batch sizes or devices."""
    from trust import models

    return fingerprint(
        {
            "backend": "t5",
            "model": models.fingerprint(config.model, config.revision, storage),
            "dtype": config.dtype,
            "max_length": config.max_length,
            "template": TEMPLATE,
        }
    )


def _single_token(tokenizer: Any, text: str, model: str) -> int:
    ids = tokenizer(text, add_special_tokens=False).input_ids
    if len(ids) != 1:
        raise PreflightError(
            f"judge.entails.model={model}: its tokenizer writes {text!r} in {len(ids)} tokens, not one"
        )
    return int(ids[0])


def _chunks(lengths: list[int], budget: int) -> list[list[int]]:
    """Indices in groups of like length whose padded size stays within `budget` tokens."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if groups and (len(groups[-1]) + 1) * lengths[groups[-1][0]] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _cut(ids: list[int], limit: int | None) -> list[int]:
    """The first `limit` tokens, the last of them the end mark, as the tokenizer's own truncation leaves it."""
    return ids if limit is None or len(ids) <= limit else [*ids[: limit - 1], ids[-1]]
