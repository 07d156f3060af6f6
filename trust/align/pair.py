"""Training rows from positives and negatives: prompt-completion rows for SFT, pairs for DPO, and their side of the split.

A prompt is rendered as `jobs.respond` renders it, so that the model is trained on what it will see. One that is too long for
the training's limits loses documents here, rather than its end there: those that no answer of the row cites, the lowest-ranked
first, and the citations of all answers are renumbered. A row that is still too long is refused.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trust.align.negatives import types_of
from trust.errors import ConfigError, RowError
from trust.prompts import Messages, Prompt
from trust.text.citations import detach, renumber
from trust.text.normalize import normalize

SIDES = ("train", "test")
_KEY = ("sample_id", "model", "prompt", "draw")


@dataclass
class LengthConfig:
    """What a training takes, in tokens of the model that is trained, with its chat template.

    Attributes:
        max_length: prompt and answer together, as the training config has it.
        max_prompt_length: the prompt alone; null for no limit of its own.
        max_completion_length: an answer alone; null for no limit of its own.
    """

    max_length: int = 2048
    max_prompt_length: int | None = 1600
    max_completion_length: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_length", "max_prompt_length", "max_completion_length"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigError(f"lengths.{name}={value}: must be at least 1")


class Tokens(NamedTuple):
    """Tokens of a prompt and of the answer behind it."""

    prompt: int
    answer: int


Measure = Callable[[Messages, Messages], Tokens]


@dataclass(frozen=True)
class Fitted:
    """A prompt with its answers, short enough.

    Attributes:
        prompt: messages.
        answers: one a message list, in the order given.
        tokens: of each answer.
        docs_dropped: documents that the prompt lost.
    """

    prompt: Messages
    answers: list[Messages]
    tokens: list[Tokens]
    docs_dropped: int


class Maker:
    """Makes rows of the tables `sft` and `pairs`.

    Args:
        prompt: as the model will be asked; of chat messages.
        lengths: what the training takes.
        measure: tokens of a prompt and of an answer behind it.
        test_share: share of the questions that are held out for the test side.
        seed: of the split.
    """

    def __init__(self, prompt: Prompt, lengths: LengthConfig, measure: Measure, test_share: float, seed: int) -> None:
        self._prompt = prompt
        self._lengths = lengths
        self._measure = measure
        self._share, self._seed = test_share, seed

    def sft(self, positive: Mapping[str, Any]) -> tuple[dict[str, Any], Fitted]:
        """The row of the table sft for a positive.

        Raises:
            RowError: `blank`, `cites_unseen`, `too_long`, or the prompt cannot be rendered.
        """
        fitted = self._fit(positive, [_text(positive, "the positive")])
        return self._key(positive) | {"prompt": fitted.prompt, "completion": fitted.answers[0]}, fitted

    def pair(self, positive: Mapping[str, Any], negative: Mapping[str, Any]) -> tuple[dict[str, Any], Fitted]:
        """The row of the table pairs for a positive and a row of the table errors for the same sample.

        Raises:
            RowError: as `sft`, and `identical_pair`, `docs_differ`.
        """
        chosen, rejected = _text(positive, "the positive"), _text(negative, "the negative")
        if chosen.split() == rejected.split():
            raise RowError("identical_pair", "positive and negative are the same text: there is nothing to prefer")
        if _shown(self._prompt.shown(positive)) != _shown(negative["docs"] or []):
            raise RowError(
                "docs_differ",
                "the response was made from other documents, or in another order, than the prompt of the pair shows: respond and "
                "pair need the same variants and the same prompt.docs and prompt.doc_tokens",
                "docs",
            )
        fitted = self._fit(positive, [chosen, rejected])
        row = self._key(positive, negative) | {
            "prompt": fitted.prompt,
            "chosen": fitted.answers[0],
            "rejected": fitted.answers[1],
            "error_types": types_of(negative),
            "primary_type": negative["primary_type"],
            "severity": negative["severity"],
        }
        return row, fitted

    def _key(self, *rows: Mapping[str, Any]) -> dict[str, Any]:
        """The key columns; the id is made of the rows' own keys."""
        keys = [[row[column] for column in _KEY] for row in rows]
        digest = hashlib.sha256(json.dumps(keys, ensure_ascii=False).encode()).hexdigest()
        columns = ("sample_id", "parent_id", "dataset", "language", "task")
        return {
            "pair_id": digest[:16],
            **{column: rows[0].get(column) for column in columns},
            "split": side(rows[0]["question"], self._share, self._seed),
        }

    def _fit(self, row: Mapping[str, Any], texts: Sequence[str]) -> Fitted:
        """The prompt and the answers, with as few documents dropped as it takes."""
        docs = list(row.get("docs") or [])[: self._prompt.config.docs]
        cited = [_cited(text) for text in texts]
        if unseen := sorted(number for number in cited[0] if not 1 <= number <= len(docs)):
            raise RowError(
                "cites_unseen",
                f"the positive cites document {unseen[0]}, the prompt shows {len(docs)}: raise prompt.docs",
                "output",
            )
        free = _lowest_first(docs, kept=set().union(*cited)) if not self._prompt.config.exact_docs else []
        kept = list(range(len(docs)))
        while True:
            prompt = self._prompt.render({**row, "docs": [docs[index] for index in kept]})
            assert not isinstance(prompt, str)  # the config has prompt.chat=true
            numbers = {index + 1: place for place, index in enumerate(kept, start=1)}
            written = texts if len(kept) == len(docs) else [renumber(text, numbers) for text in texts]
            answers = [[{"role": "assistant", "content": text}] for text in written]
            tokens = [self._measure(prompt, answer) for answer in answers]
            problem = self._problem(tokens)
            if not problem:
                return Fitted(prompt, answers, tokens, len(docs) - len(kept))
            if not free or problem.startswith("an answer"):
                raise RowError("too_long", problem, "docs")
            kept.remove(free.pop(0))

    def _problem(self, tokens: Sequence[Tokens]) -> str:
        """What is longer than allowed, in words; empty where nothing is."""
        lengths = self._lengths
        answer, prompt = max(one.answer for one in tokens), max(one.prompt for one in tokens)
        whole = max(one.prompt + one.answer for one in tokens)
        for what, found, name in (
            ("an answer has", answer, "max_completion_length"),
            ("the prompt has", prompt, "max_prompt_length"),
            ("prompt and answer have", whole, "max_length"),
        ):
            if (limit := getattr(lengths, name)) is not None and found > limit:
                return f"{what} {found} tokens, more than lengths.{name}={limit}, with no document left that could be dropped"
        return ""


def side(question: str, test_share: float, seed: int) -> str:
    """`train` or `test`, by a hash of the question and the seed alone.

    All variants of a question, and equal questions of several data sets, fall on the same side: a variant has its question's
    words, which are compared in normalised form.
    """
    words = normalize(question, "und") or question.strip()
    digest = hashlib.sha256(json.dumps([words, seed], ensure_ascii=False).encode()).digest()
    return SIDES[int.from_bytes(digest[:8]) < test_share * 2**64]


def worst(errors: Iterable[Mapping[str, Any]], rank: Callable[[Mapping[str, Any]], bytes]) -> dict[str, dict[str, Any]]:
    """sample_id -> its most severe response, the first by `rank` (trust.align.select.key)."""
    found: dict[str, tuple[bytes, dict[str, Any]]] = {}
    for row in errors:
        key = rank(row)
        if row["sample_id"] not in found or key < found[row["sample_id"]][0]:
            found[row["sample_id"]] = key, dict(row)
    return {sample: row for sample, (_, row) in found.items()}


def _text(row: Mapping[str, Any], what: str) -> str:
    text = row.get("output") or ""
    if not text.strip():
        raise RowError("blank", f"{what} holds nothing but blanks", "output")
    return str(text)


def _cited(text: str) -> set[int]:
    return {number for place in detach(text).places for number in place.numbers}


def _shown(docs: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(doc.get("title") or "", doc.get("text") or "") for doc in docs]


def _lowest_first(docs: Sequence[Mapping[str, Any]], kept: set[int]) -> list[int]:
    """Indexes of documents that may be dropped, the lowest retrieval score first; of equal ones, and of those without a
    score, the one that stands last.

    Args:
        kept: numbers, from 1, of documents that stay.
    """

    def rank(index: int) -> tuple[float, int]:
        score = docs[index].get("score")
        return (-math.inf if score is None else score, -index)

    return sorted((index for index in range(len(docs)) if index + 1 not in kept), key=rank)
