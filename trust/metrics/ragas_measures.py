"""How each measure of RAGAS is made (see `trust.metrics.ragas`): what the model is asked, and what its answers come to."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trust.ask import Ask
from trust.errors import RowError
from trust.metrics import Row
from trust.text.languages import UNDETERMINED, base_language
from trust.text.normalize import has_content, normalize
from trust.text.sentences import split

_FACTUAL, _ALIKE = 0.75, 0.25  # weights of answer correctness
_SEEDS = 1000  # of one sample
_LANGUAGES = {
    "ar": "Arabic", "bn": "Bengali", "de": "German", "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "hi": "Hindi", "id": "Indonesian", "ja": "Japanese", "ko": "Korean", "ru": "Russian", "sw": "Swahili",
    "te": "Telugu", "th": "Thai", "yo": "Yoruba", "zh": "Chinese",
}  # fmt: skip

Score = tuple[float | None, str]  # None is not applicable; what was counted, in words


class Talk:
    """One row, and how the model is asked about it.

    Args:
        questions: how many are made of a response.
        max_tokens: length of an answer of the model.
        draw: which of several samples this is, from 0; None where there is one.
    """

    def __init__(self, row: Row, ask: Ask, questions: int, max_tokens: int, draw: int | None = None) -> None:
        self.ask, self.questions, self.max_tokens, self._draw = ask, questions, max_tokens, draw
        language = row.get("language") or UNDETERMINED
        self.language = language
        self.spoken = _LANGUAGES.get(base_language(language), "the language of the texts")
        self.question: str = row["question"]
        self.output = (row.get("output") or "").strip()
        self.docs = [doc["text"] for doc in row.get("docs") or [] if has_content(doc["text"])]
        self.reference = "\n".join(text for text in row.get("references") or [] if text and has_content(text))

    @property
    def context(self) -> str:
        return "\n\n".join(self.docs)

    async def json(self, role: str, prompt: str, properties: dict[str, Any], seed: int = 0) -> dict[str, Any]:
        """What the model says, held to an object with these properties.

        Raises:
            RowError: the answer was cut, or is not of that form.
        """
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        if self._draw is not None:
            seed += _SEEDS * self._draw + _SEEDS
        temperature = 0.0 if not seed else 0.3
        sampling = {"temperature": temperature, "top_p": 1.0, "max_tokens": self.max_tokens, "seed": seed}
        answer = await self.ask.complete([{"role": "user", "content": prompt}], sampling, schema, role=role)
        if answer.finish_reason == "length":
            raise RowError(
                "judge_cut", f"{role}: the answer has more tokens than metrics.ragas.max_tokens={self.max_tokens}"
            )
        try:
            found = json.loads(answer.text)
        except ValueError as error:
            raise RowError(
                "judge_unreadable", f"{role}: not the JSON that was asked for: {answer.text[:80]!r}"
            ) from error
        if not isinstance(found, dict) or not all(_fits(found.get(key), kind) for key, kind in properties.items()):
            raise RowError("judge_unreadable", f"{role}: not of the form that was asked for: {answer.text[:80]!r}")
        return found

    async def statements(self, text: str, role: str) -> list[str]:
        """The statements that a text makes, each to be understood alone."""
        prompt = (
            f"Question:\n{self.question}\n\nAnswer:\n{text}\n\nTake the answer apart into short statements, each of which can be "
            f"understood without the others: names instead of pronouns. Leave out what states nothing. Write in {self.spoken}.\n"
            'Reply with JSON: {"statements": ["…", "…"]}'
        )
        found = await self.json(role, prompt, {"statements": {"type": "array", "items": {"type": "string"}}})
        return [text for text in found["statements"] if has_content(text)]

    async def supported(self, statements: list[str], text: str, role: str) -> list[bool]:
        """Whether a text supports each statement.

        Raises:
            RowError: `judge_incomplete`: not one verdict a statement.
        """
        listed = "\n".join(f"{number}. {statement}" for number, statement in enumerate(statements, start=1))
        prompt = (
            f"Text:\n{text}\n\nStatements:\n{listed}\n\nFor each statement, in order, decide whether the text supports it: 1 if "
            'everything it says follows from the text, else 0.\nReply with JSON: {"verdicts": [1, 0, …]}, one number a statement.'
        )
        verdict, count = {"type": "integer", "enum": [0, 1]}, len(statements)
        marks = {"type": "array", "items": verdict, "minItems": count, "maxItems": count}
        found = (await self.json(role, prompt, {"verdicts": marks}))["verdicts"]
        if len(found) != count:  # an endpoint that knows no schemas
            raise RowError("judge_incomplete", f"{role}: {len(found)} verdicts on {count} statements")
        return [mark == 1 for mark in found]

    async def cosine(self, one: str, other: str) -> float:
        first, second = await asyncio.gather(self.ask.embed(one), self.ask.embed(other))
        return float(np.clip(np.dot(first.vector, second.vector), -1.0, 1.0))


def _fits(value: Any, kind: dict[str, Any]) -> bool:
    """Whether a value is of the few kinds that are asked for here: endpoints that know no schemas send what they like."""
    if kind["type"] == "array":
        return isinstance(value, list) and all(_fits(item, kind["items"]) for item in value)
    if kind["type"] == "string":
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool) and value in kind["enum"]


async def _faithfulness(talk: Talk) -> Score:
    if not talk.output or not talk.docs:
        return None, "no response, or no documents"
    return await _supported(talk, talk.output, "statements", "faithfulness")


async def _supported(talk: Talk, text: str, taken: str, judged: str) -> Score:
    """The share of a text's statements that the documents support.

    Args:
        taken, judged: roles of the asks that take the text apart and that judge its statements.
    """
    statements = await talk.statements(text, taken)
    if not statements:
        return None, "nothing is stated"
    marks = await talk.supported(statements, talk.context, judged)
    return sum(marks) / len(marks), f"the documents support {sum(marks)} of {len(marks)} statements"


async def _answer_relevance(talk: Talk) -> Score:
    if not talk.output:
        return None, "no response"
    prompt = (
        f"Answer:\n{talk.output}\n\nWrite one question, in {talk.spoken}, that this is an answer to. Say too whether the answer "
        "is noncommittal, that is evasive, vague or an admission not to know: 1 if it is, else 0.\n"
        'Reply with JSON: {"question": "…", "noncommittal": 0}'
    )
    kinds = {"question": {"type": "string"}, "noncommittal": {"type": "integer", "enum": [0, 1]}}
    made = await asyncio.gather(
        *(talk.json("answer_relevance", prompt, kinds, seed) for seed in range(1, talk.questions + 1))
    )
    evasive = sum(one["noncommittal"] for one in made)
    if 2 * evasive > len(made):
        return 0.0, f"{evasive} of {len(made)} readings call the response noncommittal"
    near = [await talk.cosine(talk.question, one["question"]) for one in made if has_content(one["question"])]
    if not near:
        raise RowError("judge_incomplete", "answer_relevance: no question was made of the response")
    return sum(near) / len(
        near
    ), f"mean cosine of {len(near)} questions, {evasive} of {len(made)} readings noncommittal"


async def _context_relevance(talk: Talk) -> Score:
    if not talk.docs:
        return None, "no documents"
    sentences = {normalize(s.text, talk.language) for doc in talk.docs for s in split(doc, talk.language)} - {""}
    if not sentences:
        return None, "the documents have no sentences"
    prompt = (
        f"Question:\n{talk.question}\n\nText:\n{talk.context}\n\nCopy from the text, word for word, the sentences that are "
        "needed to answer the question; none where the text cannot answer it.\n"
        'Reply with JSON: {"sentences": ["…", "…"]}'
    )
    found = await talk.json("context_relevance", prompt, {"sentences": {"type": "array", "items": {"type": "string"}}})
    copied = {normalize(s.text, talk.language) for text in found["sentences"] for s in split(text, talk.language)}
    needed = len(copied & sentences)  # what is not in the documents word for word is none of their sentences
    return needed / len(sentences), f"{needed} of {len(sentences)} sentences are needed"


async def _context_precision(talk: Talk) -> Score:
    if not talk.docs or not talk.reference:
        return None, "no documents, or no reference"

    async def useful(text: str) -> bool:
        prompt = (
            f"Question:\n{talk.question}\n\nAnswer:\n{talk.reference}\n\nText:\n{text}\n\nWas the text of use in arriving at the "
            'answer? 1 if it was, else 0.\nReply with JSON: {"useful": 1}'
        )
        return bool(
            (await talk.json("context_precision", prompt, {"useful": {"type": "integer", "enum": [0, 1]}}))["useful"]
        )

    marks = await asyncio.gather(*map(useful, talk.docs))
    return average_precision(list(marks)), f"{sum(marks)} of {len(marks)} documents are of use"


async def _context_recall(talk: Talk) -> Score:
    if not talk.docs or not talk.reference:
        return None, "no documents, or no reference"
    return await _supported(talk, talk.reference, "reference_statements", "context_recall")


async def _answer_correctness(talk: Talk) -> Score:
    if not talk.output or not talk.reference:
        return None, "no response, or no reference"
    said, wanted = await asyncio.gather(
        talk.statements(talk.output, "statements"), talk.statements(talk.reference, "reference_statements")
    )
    right, given = await asyncio.gather(
        _none_or(talk.supported, said, talk.reference, "correct"),
        _none_or(talk.supported, wanted, talk.output, "given"),
    )
    true, false, missed = sum(right), len(right) - sum(right), len(given) - sum(given)
    f1 = 2 * true / (2 * true + false + missed) if true + false + missed else 0.0
    alike = max(0.0, await talk.cosine(talk.output, talk.reference))
    told = f"{true} statements right, {false} wrong, {missed} of the reference missed, cosine {alike:.2f}"
    return _FACTUAL * f1 + _ALIKE * alike, told


async def _none_or(
    judge: Callable[[list[str], str, str], Awaitable[list[bool]]], statements: list[str], text: str, role: str
) -> list[bool]:
    return await judge(statements, text, role) if statements else []


def average_precision(marks: list[bool]) -> float:
    """Mean over the useful documents of the precision at their place; 0 where none is."""
    hits, total = 0, 0.0
    for place, mark in enumerate(marks, start=1):
        if mark:
            hits += 1
            total += hits / place
    return total / hits if hits else 0.0


@dataclass(frozen=True)
class Measure:
    """How a measure is made, which asks it takes, and the range of its mean."""

    score: Callable[[Talk], Awaitable[Score]]
    asks: tuple[str, ...] = ("complete",)
    bounds: tuple[float, float] = (0.0, 100.0)


MEASURES = {
    "faithfulness": Measure(_faithfulness),
    "answer_relevance": Measure(_answer_relevance, ("complete", "embed"), (-100.0, 100.0)),
    "context_relevance": Measure(_context_relevance),
    "context_precision": Measure(_context_precision),
    "context_recall": Measure(_context_recall),
    "answer_correctness": Measure(_answer_correctness, ("complete", "embed")),
}
