"""The asks: all that a metric or a builder may want from a model.

A metric awaits answers and reads like its formula; who answers, in which batches, and whether the answer was known
already is the runner's business (`trust.ask.runner`). Nothing here imports a model library.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from trust.errors import RowError

SERVED = "served:"  # in totals, before the name of the model that answered


@dataclass(frozen=True)
class Verdict:
    """Answer to `entails`.

    Attributes:
        label: 1 if the premise entails the hypothesis, else 0.
        p_yes: the judge's probability of "yes", 0 to 1 (for the lexical judge: word recall).
        truncated: whether the judge had to cut its input.
        raw: what a language model wrote.
        totals: additive numbers of the requests behind it, for the manifest.
    """

    label: int
    p_yes: float
    truncated: bool = False
    raw: str | None = None
    totals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Completion:
    """Answer to `complete`.

    Attributes:
        finish_reason: why it ended (`stop`, `length`).
        prompt_tokens, output_tokens: None where an endpoint does not say.
        totals: additive numbers of this request for the manifest (cost, retries, which model answered).
        first_tokens: the likeliest first tokens with their log-probabilities, where they were asked for and told.
    """

    text: str
    finish_reason: str
    prompt_tokens: int | None
    output_tokens: int | None
    totals: Mapping[str, float] = field(default_factory=dict)
    first_tokens: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Likelihood:
    """Answer to `logprob`.

    Attributes:
        mean: mean natural log-probability of a token of the continuation, at most 0.
        tokens: how many the continuation has, its special ones included.
        truncated: whether the model had to cut context or continuation.
        totals: additive numbers of the request, for the manifest.
    """

    mean: float
    tokens: int
    truncated: bool = False
    totals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Embedding:
    """Answer to `embed`.

    Attributes:
        vector: float32, shape (width,), of length 1: the product of two is the cosine between their texts.
        truncated: whether the model had to cut the text.
        tokens: where the backend gives them, a vector of length 1 for each token, float32, shape (tokens, width of the layer).
        special: which of these tokens the tokenizer added, bool, shape (tokens,).
        ids: of these tokens in the model's vocabulary, int64, shape (tokens,).
    """

    vector: np.ndarray
    truncated: bool = False
    tokens: np.ndarray | None = None
    special: np.ndarray | None = None
    ids: np.ndarray | None = None


class AskFailed(RowError):
    """A model could not answer. The row that asked becomes a failed row.

    Args:
        totals: additive numbers of the request for the manifest: a failed one may have cost something.
        raw: what the model wrote.
    """

    def __init__(
        self, reason: str, detail: str, totals: Mapping[str, float] | None = None, raw: str | None = None
    ) -> None:
        super().__init__(reason, detail)
        self.totals = dict(totals or {})
        self.raw = raw


class Ask(Protocol):
    """What a row's coroutine may await. `role`, `sentence` (from 0) and `doc` (from 1) say what an ask was for; they
    are written beside the score, so that every number can be traced to the verdicts behind it."""

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict: ...

    async def complete(
        self,
        messages: list[dict[str, str]] | str,
        sampling: dict[str, Any],
        schema: dict[str, Any] | None = None,
        *,
        role: str = "",
    ) -> Completion: ...

    async def logprob(self, context: str, continuation: str, *, role: str = "") -> Likelihood: ...

    async def embed(self, text: str) -> Embedding: ...


def ask_hash(ask: str, inputs: dict[str, Any]) -> str:
    """Identity of one ask: 16 hex digits of a sha256 over its kind and inputs."""
    text = json.dumps([ask, inputs], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
