"""Which documents of a question support which of its gold answers, and the few that support most of them together.

Labels by task (arXiv 2409.11242; facts B4). A pair of document and answer is supported where

- `em`: an alias stands in the document, and a judge says that the document entails the sub-question (`context.sub_questions`)
  with the first alias, or the question with it;
- `em5`: an alias stands in it, and it entails the question with the first alias;
- `cm`: it entails the claim. Where a row has long answers alone, a language model first writes its claims.

A judge is asked only about what the words leave open, and about the second hypothesis only where the first is not entailed.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trust.align.claims import ClaimsOptions, write_claims
from trust.align.oracle import oracle_set, rec_score
from trust.ask import Ask
from trust.compat import choices
from trust.errors import RowError
from trust.metrics.citations import as_premise
from trust.metrics.response import TASKS
from trust.prepare.releases import SUB_QUESTIONS
from trust.text.languages import base_language
from trust.text.matching import contains
from trust.text.normalize import has_content, normalize, normalize_answer

CLAIMS_BY = "claims_by"  # in `meta` of a row whose claims a model wrote: which one
COUNTS = (
    "pairs",  # of a document and a gold answer
    "pairs_skipped_by_string",  # no alias stands in the document: nobody is asked
    "pairs_skipped_empty",  # the document says nothing: nobody is asked
    "second_hypotheses",  # asks about the question where the sub-question was not entailed
    "pairs_supported",
    "rows_answerable",
    "claims_written",  # rows
)


@dataclass(frozen=True)
class Labelling:
    """The named choices in which the published labelling and the right one differ, beside `trust.compat.Choices` (how an alias
    is matched, what a judge is shown, whether it is asked about an empty document).

    Attributes:
        looked_in: an alias is looked for in a document's `text` alone, or in `title_and_text`, which is what a judge, and the
            model that is to answer, is shown.
        aliases: which are looked at: `all`, or only those `with_content`. One that normalises to nothing is in every text.
        oracle: documents are swapped in `one_pass` over the places, or `until_no_gain`, where one that went out may return.
    """

    looked_in: Literal["text", "title_and_text"]
    aliases: Literal["all", "with_content"]
    oracle: Literal["one_pass", "until_no_gain"]


LABELLING = {
    "strict": Labelling(looked_in="title_and_text", aliases="with_content", oracle="until_no_gain"),
    "upstream": Labelling(looked_in="text", aliases="all", oracle="one_pass"),
}


@dataclass(frozen=True)
class Labelled:
    """A sample with its labels.

    Attributes:
        sample: of the table samples, each document with `answers_found` (0 or 1 for each gold answer) and `rec_score`.
        oracle: the same with the documents of the oracle set alone.
    """

    sample: dict[str, Any]
    oracle: dict[str, Any]


@dataclass(frozen=True)
class _Gold:
    """A gold answer.

    Attributes:
        forms: of its aliases, normalised; empty where words decide nothing (claims).
        hypotheses: of which a document has to entail one.
    """

    forms: frozenset[str]
    hypotheses: tuple[str, ...]


class Labeller:
    """Labels samples in one mode.

    Args:
        oracle_docs: size of the oracle set.
        claims_by: name of the model that writes claims; None where there is none.
    """

    def __init__(self, oracle_docs: int, claims: ClaimsOptions, compat: str, claims_by: str | None = None) -> None:
        self._choices = choices(compat)
        self._ways = LABELLING[compat]
        self._oracle_docs = oracle_docs
        self._claims = claims
        self._claims_by = claims_by

    async def label(self, row: Mapping[str, Any], ask: Ask, counts: Counter[str]) -> Labelled:
        """The sample with its labels.

        Args:
            row: of the table samples, of task em, em5 or cm.
            counts: of `COUNTS`, to which the row's are added.

        Raises:
            RowError: `no_docs`, `no_answers`, `empty_answer`, `invalid_task`, `sub_questions`, `no_claims_model`,
                `claims_unreadable`, or a model could not answer.
        """
        docs: list[dict[str, Any]] = row.get("docs") or []
        if not docs:
            raise RowError("no_docs", "the row has no documents to label: run jobs.retrieve first", "docs")
        if row["task"] not in ("em", "em5", "cm"):
            raise RowError("invalid_task", f"task is {row['task']!r}; known are {', '.join(TASKS)}", "task")
        sample = dict(row)
        if not row.get("answers"):
            sample |= await self._write_claims(row, ask)
            counts["claims_written"] += 1
        gold = self._gold(sample)
        counts["pairs"] += len(docs) * len(gold)
        pairs = [
            pair
            for number, doc in enumerate(docs, start=1)
            for pair in self._pairs(doc, number, gold, row["language"], ask, counts)
        ]
        answers = iter(await settled(pair for pair in pairs if pair is not None))
        flat = [0 if pair is None else next(answers) for pair in pairs]
        counts["pairs_supported"] += sum(flat)
        counts["rows_answerable"] += any(flat)
        labels = [flat[start : start + len(gold)] for start in range(0, len(flat), len(gold))]
        sample["docs"] = [
            doc | {"answers_found": found, "rec_score": rec_score(found, row["task"])}
            for doc, found in zip(docs, labels, strict=True)
        ]
        chosen = oracle_set(labels, row["task"], self._oracle_docs, self._ways.oracle)
        return Labelled(sample, sample | {"docs": [sample["docs"][index] for index in chosen]})

    def _gold(self, row: Mapping[str, Any]) -> list[_Gold]:
        asides = sub_questions(row) if row["task"] == "em" else []
        return [self._one(row, index, asides) for index in range(len(row["answers"]))]

    def _one(self, row: Mapping[str, Any], index: int, asides: Sequence[str | None]) -> _Gold:
        aliases = [alias for alias in row["answers"][index] or [] if alias is not None]
        claim = row["task"] == "cm"
        if self._ways.aliases == "with_content":
            aliases = [a for a in aliases if (has_content(a) if claim else self._normal(a, row["language"]))]
        if not aliases:
            raise RowError(
                "empty_answer",
                f"answers[{index}] is {json.dumps(row['answers'][index], ensure_ascii=False)[:80]}: nothing is left of it "
                "once articles and punctuation are dropped, so no document can be said to hold it",
                f"answers[{index}]",
            )
        first = aliases[0].strip()
        if claim:
            return _Gold(frozenset(), (first,))
        questions = [question for question in (asides[index] if asides else None, row["question"]) if question]
        hypotheses = dict.fromkeys(f"{question} {first}" for question in questions)
        return _Gold(frozenset(self._normal(alias, row["language"]) for alias in aliases), tuple(hypotheses))

    def _normal(self, text: str, language: str) -> str:
        return normalize_answer(text) if self._choices.matching == "substring" else normalize(text, language)

    def _pairs(
        self,
        doc: Mapping[str, Any],
        number: int,
        gold: Sequence[_Gold],
        language: str,
        ask: Ask,
        counts: Counter[str],
    ) -> Iterator[Awaitable[int] | None]:
        """For each gold answer, 1 where the document supports it, else 0; None where nobody has to be asked."""
        places = ("title", "text") if self._ways.looked_in == "title_and_text" else ("text",)
        texts = [self._normal(doc.get(place) or "", language) for place in places]
        premise = as_premise(doc, self._choices)
        empty = self._choices.empty_asks == "skipped" and not has_content(premise)
        for index, one in enumerate(gold):
            if one.forms and not any(self._holds(text, form, language) for text in texts for form in one.forms):
                counts["pairs_skipped_by_string"] += 1
                yield None
            elif empty:
                counts["pairs_skipped_empty"] += 1
                yield None
            else:
                yield self._entails(premise, one, (index, number), ask, counts)

    def _holds(self, text: str, form: str, language: str) -> bool:
        if self._choices.matching == "substring":
            return form in text
        return contains(text, form, base_language(language))

    async def _entails(self, premise: str, gold: _Gold, place: tuple[int, int], ask: Ask, counts: Counter[str]) -> int:
        index, number = place
        for nth, hypothesis in enumerate(gold.hypotheses):
            counts["second_hypotheses"] += nth > 0
            if (await ask.entails(premise, hypothesis, role="label", sentence=index, doc=number)).label:
                return 1
        return 0

    async def _write_claims(self, row: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        """`answers` and `meta` of a row that has a long answer alone; of several references the first is taken."""
        references = [text for text in row.get("references") or [] if text and has_content(text)]
        if row["task"] != "cm" or not references:
            raise RowError("no_answers", "the row has no gold answers, so there is nothing to label for", "answers")
        if self._claims_by is None:
            raise RowError(
                "no_claims_model",
                "the row has a long answer and no claims: choose a model that writes them with judge/complete=",
                "answers",
            )
        claims = await write_claims(row["question"], references[0], self._claims, ask)
        return {
            "answers": [[claim] for claim in claims],
            "meta": dict(row.get("meta") or {}) | {CLAIMS_BY: self._claims_by},
        }


def sub_questions(row: Mapping[str, Any]) -> list[str | None]:
    """The question behind each gold answer (`context.sub_questions`); empty where the row has none.

    Raises:
        RowError: `sub_questions`: they are not one for each answer.
    """
    told = (row.get("context") or {}).get(SUB_QUESTIONS)
    if not told:
        return []
    try:
        found = json.loads(told)
    except ValueError:
        found = None
    fits = isinstance(found, list) and len(found) == len(row["answers"])
    if not fits or any(not isinstance(text, str | None) for text in found):
        raise RowError(
            "sub_questions",
            f"context.{SUB_QUESTIONS} must be a JSON list with a text or null for each of the {len(row['answers'])} answers",
            f"context.{SUB_QUESTIONS}",
        )
    return [text.strip() if text else None for text in found]


async def settled(asks: Iterable[Awaitable[int]]) -> list[int]:
    """All answers. Of several that failed, the first in order is raised, once none is under way any more."""
    found = await asyncio.gather(*asks, return_exceptions=True)
    errors = [one for one in found if isinstance(one, BaseException)]
    if errors:
        raise next((error for error in errors if not isinstance(error, RowError)), errors[0])
    return [one for one in found if not isinstance(one, BaseException)]
