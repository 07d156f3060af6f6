"""What Transformers models in the actor have in common: options, loading, batches by padded tokens."""

import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from trust import config as configs
from trust import models
from trust.ask import AskFailed, Verdict, bf16, languages
from trust.errors import ConfigError, PreflightError
from trust.storage import Storage, is_s3

_BATCH_TOKENS = {"cuda": 16_384, "cpu": 2_048}

_LANES = 4  # batches that a CPU works on at once, at most

_UNLIMITED = 1_000_000  # tokenizers that know no limit write a huge one

Encoded = tuple[dict[str, list[int]], bool]  # the tokenizer's lists for one input, and whether it was cut


@dataclass
class ModelOptions(ABC):
    """Options of a Transformers model that answers asks.

    Attributes:
        model: hub id, folder, s3:// folder or package:// address.
        revision: commit, tag or branch of a hub model; what it means when a job starts is taken, recorded as a commit, and
            part of the fingerprint.
        dtype: bfloat16, float16 or float32.
        max_length: tokens an input is cut to.
        batch_size: inputs a batch at most.
        max_batch_tokens: padded tokens a batch at most, so that long inputs do not exhaust memory; null is 16,384 on
            a GPU and 2,048 on a CPU, which is busy by then and would only compute more padding.
        gpus: an actor's share of GPUs; null takes one where the cluster has one now, else none.
        threads: CPU threads; null shares the machine's among the actors. Batches share them: threads that work on one
            batch together wait for each other at every product.
    """

    backend: str = ""
    model: str = ""
    revision: str | None = None
    dtype: str = "float32"
    max_length: int | None = None
    batch_size: int = 32
    max_batch_tokens: int | None = None
    gpus: float | None = None
    threads: int | None = None

    path: ClassVar[str] = "judge.entails"  # how messages call the options
    all_cpus: ClassVar[bool] = True
    cost_limit: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        configs.one_of(f"{self.path}.dtype", self.dtype, ("bfloat16", "float16", "float32"))
        for key in ("batch_size", "max_batch_tokens"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise ConfigError(f"{self.path}.{key}={value}: must be at least 1")

    def describe(self) -> str:
        return f"{self.backend} {self.model}" + (f"@{self.revision}" if self.revision else "") + f" {self.dtype}"

    def preflight(self, storage: Storage | None = None) -> None:
        self.revision = models.preflight(self.model, self.revision, storage)

    def for_actor(self, cpus: int) -> dict[str, Any]:
        return configs.plain(self) | {"threads": self.threads or cpus, "model": models.portable(self.model)}

    @abstractmethod
    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the model's answers."""


@dataclass
class TransformerConfig(ModelOptions):
    """Options of a judge that is a Transformers model.

    Attributes:
        languages: what the model was trained for (primary BCP 47 tags); null is any. Says which rows are marked.
    """

    languages: list[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        languages.check(self.languages)


class TransformerModel(ABC):
    """Loads tokenizer and model in the actor and answers batches; a backend says how an input is written and read.

    Args:
        storage: the door to a model on s3://; None builds one from the environment.
    """

    def __init__(self, config: ModelOptions, storage: Storage | None = None) -> None:
        import torch
        from transformers import AutoTokenizer

        folder = models.fetch(config.model, config.revision, storage)
        self.batch_size = config.batch_size
        # Of the copy on this node: the same content, and nothing is read from the storage again.
        copy = replace(config, model=folder) if is_s3(config.model) else config
        self.fingerprint = copy.fingerprint(storage)
        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._batch_tokens = config.max_batch_tokens or _BATCH_TOKENS[self._device]
        threads = config.threads or os.cpu_count() or 1
        self.lanes = min(threads, _LANES) if self._device == "cpu" else 1
        self._lane_threads = threads // self.lanes
        self._encoding = threading.Lock()  # a tokenizer cuts for one thread at a time
        self._alone, self._began = threading.Lock(), False
        self._tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model = self._load(folder, dtype=getattr(torch, config.dtype), use_safetensors=True, trust_remote_code=False)
        self._model = model.to(self._device).eval()
        if self._device == "cpu" and config.dtype == "bfloat16" and bf16.without_instructions():
            bf16.multiply_in_float32(self._model)

    def close(self) -> None:
        """Lets go of the model."""
        self._model = None

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
        # The first batch runs alone: what torch and transformers import and set up on first use, several threads at once
        # can wait for each other's halves of.
        with self._alone:
            if not self._began:
                answers = self._batch(inputs)
                self._began = True
                return answers
        return self._batch(inputs)

    def _batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
        answers: dict[int, Any] = {}
        rows: dict[int, Encoded] = {}
        if self._device == "cpu":
            self._torch.set_num_threads(self._lane_threads)  # of this thread's products
        with self._encoding:
            tokens = self._encode(inputs)
        for i, encoded in enumerate(tokens):
            if isinstance(encoded, AskFailed):
                answers[i] = encoded
            else:
                rows[i] = encoded
        lengths = {i: max(map(len, row.values())) for i, (row, _) in rows.items()}
        for group in chunks(lengths, self._batch_tokens):
            answers |= zip(group, self._answers([rows[i] for i in group]), strict=True)
        return [answers[i] for i in range(len(inputs))]

    @abstractmethod
    def _load(self, folder: str, **options: Any) -> Any:
        """The model, on the CPU."""

    @abstractmethod
    def _encode(self, inputs: Sequence[dict[str, Any]]) -> list[Encoded | AskFailed]:
        """Each input as tokens, cut where it is too long."""

    @abstractmethod
    def _answers(self, rows: list[Encoded]) -> list[Any]:
        """The answers to inputs that share one forward pass."""

    def _find_limit(self, config: ModelOptions, stated: int | None = None) -> int | None:
        """Tokens of an input at most: as configured, else what tokenizer and model were made for; None where neither says.

        Args:
            stated: what else says how many it was made for.
        """
        most = self._positions()
        if config.max_length is not None:
            if most is not None and config.max_length > most:
                raise PreflightError(
                    f"{config.path}.max_length={config.max_length}: {config.model} reads at most {most}"
                )
            return config.max_length
        told = self._tokenizer.model_max_length
        known = [
            most,
            stated,
            told if told < _UNLIMITED else getattr(self._model.config, "max_position_embeddings", None),
        ]
        return min((limit for limit in known if limit), default=None)

    def _positions(self) -> int | None:
        """Positions that the model has embeddings for; None where it only knows distances. RoBERTa's begin behind the
        padding's, BART's behind an offset of its own."""
        for name, module in self._model.named_modules():
            if not isinstance(module, self._torch.nn.Embedding):
                continue
            if name.endswith("position_embeddings"):
                return int(module.num_embeddings) - (0 if module.padding_idx is None else module.padding_idx + 1)
            if name.endswith("embed_positions"):
                return int(module.num_embeddings) - int(getattr(module, "offset", 0))
        return None


class TransformerJudge(TransformerModel):
    """A judge of pairs."""

    def __init__(self, config: TransformerConfig, storage: Storage | None = None) -> None:
        super().__init__(config, storage)
        self.languages = config.languages

    def _answers(self, rows: list[Encoded]) -> list[Verdict | AskFailed]:
        return [
            Verdict(label, p_yes, truncated=cut)
            if math.isfinite(p_yes)
            else AskFailed("judge_overflow", "the judge's scores are no numbers; take a wider dtype")
            for (label, p_yes), (_, cut) in zip(self._step([row for row, _ in rows]), rows, strict=True)
        ]

    @abstractmethod
    def _step(self, rows: list[dict[str, list[int]]]) -> list[tuple[int, float]]:
        """Label and p_yes of pairs that share one forward pass."""


def chunks(lengths: dict[int, int], budget: int) -> list[list[int]]:
    """Keys in groups of like length whose padded size stays within `budget` tokens."""
    groups: list[list[int]] = []
    for key in sorted(lengths, key=lengths.__getitem__, reverse=True):
        if groups and (len(groups[-1]) + 1) * lengths[groups[-1][0]] <= budget:
            groups[-1].append(key)
        else:
            groups.append([key])
    return groups
