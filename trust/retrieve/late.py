"""Late interaction: a vector a token, compared by MaxSim (Khattab and Zaharia, SIGIR 2020, eq. 3), with any model that
`sentence_transformers.MultiVectorEncoder` reads (ColBERT, PyLate, its own).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from trust import config as configs
from trust import models
from trust.ask.modules import read_file
from trust.errors import ConfigError, PreflightError, RowError
from trust.fingerprint import fingerprint
from trust.storage import Storage

_TOKENS = 4096  # of passages that are compared with all questions at a time


@dataclass
class LateOptions:
    """A multi-vector encoder.

    Attributes:
        model: hub id, folder or s3:// folder.
        revision: commit, tag or branch of a hub model.
        dtype: bfloat16, float16 or float32.
        batch_size: texts a batch.
        gpus: an actor's share of GPUs; null takes one where the cluster has one now, else none.
    """

    model: str = "lightonai/LateOn"
    revision: str | None = None
    dtype: str = "float32"
    batch_size: int = 32
    gpus: float | None = None

    all_cpus: ClassVar[bool] = True

    def __post_init__(self) -> None:
        configs.one_of("retriever.late.dtype", self.dtype, ("bfloat16", "float16", "float32"))
        if self.batch_size < 1:
            raise ConfigError(f"retriever.late.batch_size={self.batch_size}: must be at least 1")

    def preflight(self, storage: Storage) -> None:
        """Whether there is such a model, made for late interaction. Raises PreflightError."""
        self.revision = models.preflight(self.model, self.revision, storage)
        if not _made_for_it(self.model, self.revision, storage):
            raise PreflightError(
                f"retriever.late.model={self.model}: no multi-vector encoder (ColBERT, PyLate or sentence-transformers): the "
                "library would put a layer of random weights behind it"
            )

    def fingerprint(self, storage: Storage) -> str:
        """Identity of the vectors."""
        return fingerprint({"late": models.fingerprint(self.model, self.revision, storage), "dtype": self.dtype})

    def for_actor(self) -> dict[str, Any]:
        return configs.plain(self) | {"model": models.portable(self.model)}


class LateEncoder:
    """The model, loaded in an actor."""

    def __init__(self, options: LateOptions, storage: Storage, cpus: int) -> None:
        import torch
        from sentence_transformers import MultiVectorEncoder

        device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cpu":
            torch.set_num_threads(cpus)
        self._batch_size = options.batch_size
        self._model = MultiVectorEncoder(
            models.fetch(options.model, options.revision, storage),
            device=device,
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"dtype": getattr(torch, options.dtype), "use_safetensors": True},
        )

    def encode(self, texts: Sequence[str], questions: bool) -> list[np.ndarray | RowError]:
        """Of each text the vectors of its tokens, float16, shape (tokens, width), or why there are none."""
        encode = self._model.encode_query if questions else self._model.encode_document
        found = encode(
            list(texts),
            batch_size=self._batch_size,
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return [_checked(vectors) for vectors in found]


class TokenVectors:
    """Vectors of tokens, compared by MaxSim: of each of the question's tokens the best product with a token of the passage,
    added up.

    Args:
        questions, passages: float32, shape (tokens of all, width).
        question_lengths, passage_lengths: tokens of each, at least one.
    """

    slack = 1e-3

    def __init__(
        self, questions: np.ndarray, question_lengths: np.ndarray, passages: np.ndarray, passage_lengths: np.ndarray
    ) -> None:
        self._questions, self._asked = questions, question_lengths
        self._passages, self._held = passages, passage_lengths
        self._question_starts = np.concatenate([[0], np.cumsum(question_lengths)])
        self._starts = np.concatenate([[0], np.cumsum(passage_lengths)])

    def rough(self) -> np.ndarray:
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        questions = torch.from_numpy(self._questions).to(device).T
        asked = torch.from_numpy(self._asked).to(device)
        scores = np.empty((len(self._asked), len(self._held)), dtype=np.float32)
        with torch.inference_mode():
            for start, end in self._pieces():
                tokens = torch.from_numpy(self._passages[self._starts[start] : self._starts[end]]).to(device)
                held = torch.from_numpy(self._held[start:end]).to(device)
                most = torch.segment_reduce(tokens @ questions, "max", lengths=held, axis=0)
                added = torch.segment_reduce(most.T.contiguous(), "sum", lengths=asked, axis=0)
                scores[:, start:end] = added.cpu().numpy()
        return scores

    def exact(self, questions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        scores = np.empty(len(rows))
        for i, (question, row) in enumerate(zip(questions.tolist(), rows.tolist(), strict=True)):
            asked = self._questions[self._question_starts[question] : self._question_starts[question + 1]]
            tokens = self._passages[self._starts[row] : self._starts[row + 1]]
            scores[i] = maxsim(asked, tokens)
        return scores

    def _pieces(self) -> list[tuple[int, int]]:
        """Neighbouring passages of about `_TOKENS` tokens together."""
        marks = np.searchsorted(self._starts, np.arange(_TOKENS, self._starts[-1] + _TOKENS, _TOKENS), side="right") - 1
        bounds = sorted({0, *marks.tolist(), len(self._held)})
        return list(pairwise(bounds))


def maxsim(question: np.ndarray, passage: np.ndarray) -> float:
    """The score of one passage, in double precision.

    Args:
        question, passage: vectors of their tokens, shape (tokens, width).
    """
    return float(np.einsum("qw,pw->qp", question.astype(np.float64), passage.astype(np.float64)).max(axis=1).sum())


def _made_for_it(model: str, revision: str | None, storage: Storage) -> bool:
    """Whether a model says of itself that it gives a vector a token."""
    own, base = (
        json.loads(read_file(model, name, revision, storage) or b"{}")
        for name in ("config_sentence_transformers.json", "config.json")
    )
    named = any(name == "HF_ColBERT" or name.endswith("ForRetrieval") for name in base.get("architectures") or ())
    return named or own.get("model_type") in ("MultiVectorEncoder", "ColBERT") or "query_prefix" in own


def _checked(vectors: np.ndarray) -> np.ndarray | RowError:
    if not len(vectors):
        return RowError("no_tokens", "the model leaves out every token of the text, so there is nothing to compare")
    if not np.isfinite(vectors).all():
        return RowError("embed_overflow", "the model's vectors hold what is no number; take a wider dtype")
    return np.asarray(vectors, dtype=np.float16)
