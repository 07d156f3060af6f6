"""What can be said of responses without gold answers: refusals against a judge's reading of the documents, citations, and
groundedness.

- **Answerable** is a question where one of the documents shown, alone, entails the hypothesis made of the question (sufficient
  context, arXiv 2411.06037, asked of one document as `answers_found` is). It depends on question and documents, never on the
  response: all models are held against the same, and a fluent wrong answer cannot make its question answerable.
- **Citation recall and precision** need no gold answers; they are those of the Trust-Score (arXiv 2409.11242, eqs. 11-12).
- **Groundedness** is the share of an answer's statements that the documents shown entail, cited or not: all together, or one
  of them alone where they are too much for a judge to read at once (faithfulness of arXiv 2309.15217, with sentences as
  statements).

Correctness, and with it Trust-Score, cannot be had without gold answers.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trust.ask import Ask
from trust.compat import Choices, choices
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat, basic, citations
from trust.metrics.ratios import BIG, Sums
from trust.metrics.response import Reading, read
from trust.metrics.trust_score import (
    TrustScoreConfig,
    resolve,  # noqa: F401  trust.metrics.resolve looks for it here
    rules,
)
from trust.text.normalize import has_content
from trust.text.sentences import preflight

_GROUNDED = ("grounded_rows", "grounded", "grounded_statements", "grounded_supported")
_JUDGED = {  # of trust.metrics.basic, where they rest on the judge here and on gold answers there
    "answerable_num": "judged_answerable_num",
    "refuse_rec": "judged_refuse_rec",
    "refuse_prec": "judged_refuse_prec",
    "refuse_f1": "judged_refuse_f1",
    "answerable_rec": "judged_answer_rec",
    "answerable_prec": "judged_answer_prec",
    "answerable_f1": "judged_answer_f1",
    "macro_f1": "judged_macro_f1",
}
_KEPT = ("num_samples", "answered_ratio", "answered_num", "regular_length", "answered_length")


@dataclass
class NoGoldConfig(TrustScoreConfig):
    """Options of the metric: those of `trust_score`, and one more.

    Attributes:
        answerable_if: the hypothesis that a document entails where it answers the `{question}`.
    """

    answerable_if: str = "{question}"


class NoGold:
    """The metric (trust.metrics.Metric) for rows without gold answers; those that rows have are not looked at.

    Args:
        config: options.
        compat: `strict` or `upstream` (how citations and refusals are read).

    Raises:
        ConfigError: an option is out of range, or does nothing in this mode.
    """

    name = "no_gold"
    asks = ("entails",)
    terms = (*basic.TERMS, *citations.TERMS, *_GROUNDED)

    def __init__(self, config: NoGoldConfig, compat: str) -> None:
        if "{question}" not in config.answerable_if:
            raise ConfigError(f"metrics.no_gold.answerable_if={config.answerable_if!r}: has no {{question}} in it")
        self.choices = choices(compat)
        self._hypothesis = config.answerable_if
        self._rules = rules(config, compat, self.name)

    def preflight(self) -> None:
        """Raises PreflightError where the sentence splitter's data is missing."""
        preflight(self.choices.sentences)

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response; roles of its asks: `answerable`, `grounded`, `grounded_alone` and those of citations.

        Raises:
            RowError: the row cannot be read, or a judge could not answer.
        """
        reading = read(_without_gold(row), self._rules)
        statements = citations.read(reading, self._rules)
        answerable, grounded, _ = await asyncio.gather(
            self._answerable(reading, ask),
            self._grounded(reading, statements, ask),
            citations.judge(reading, statements, ask, self._rules),
        )
        reading = replace(reading, answerable=any(answerable))
        terms, values = basic.score(reading, self.choices)
        cited_terms, cited_values = citations.score(reading, statements, self._rules)
        judged = [mark for mark in grounded if mark is not None]
        grounded_terms, grounded_values = _score(judged)
        return RowScore(
            terms=terms | cited_terms | grounded_terms,
            values=values | cited_values | grounded_values,
            trace=_trace(reading, statements, answerable, grounded, self.choices),
        )

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """Rates as percentages; what rests on judged answerability is named `judged_*`."""
        own = Sums(sums, self.choices.undefined)
        found = basic.final(own, self.choices)
        stats = {key: found[key] for key in _KEPT} | {name: found[key] for key, name in _JUDGED.items()}
        stats |= citations.final(own, self.choices)
        stats["groundedness"] = own.mean_or_na("grounded", "grounded_rows")
        stats["groundedness_by_statement"] = Stat(
            own.percent(own["grounded_supported"], own["grounded_statements"]), own.rows("grounded_rows")
        )
        if self.choices.empty == "empty":
            stats |= {"empty_num": own.count("empty")} | citations.final_pooled(own)
        return stats

    async def _answerable(self, reading: Reading, ask: Ask) -> list[bool]:
        """Per document, whether it answers the question."""
        hypothesis = self._hypothesis.replace("{question}", reading.question)
        premises = [citations.as_premise(doc, self.choices) for doc in reading.docs]
        return await asyncio.gather(
            *(_entails(premise, hypothesis, ask, "answerable", None, n) for n, premise in enumerate(premises, start=1))
        )

    async def _grounded(self, reading: Reading, statements: list[citations.Statement], ask: Ask) -> list[bool | None]:
        """Per statement, whether the documents entail it; None where it says nothing that they could."""
        if reading.response != "answered":
            return [None] * len(statements)
        premises = [citations.as_premise(doc, self.choices) for doc in reading.docs]
        return await asyncio.gather(*(self._entailed(premises, s, i, ask) for i, s in enumerate(statements)))

    async def _entailed(self, premises: list[str], statement: citations.Statement, index: int, ask: Ask) -> bool | None:
        if not statement.needs or not has_content(statement.hypothesis):
            return None
        if await _entails("\n".join(filter(None, premises)), statement.hypothesis, ask, "grounded", index, None):
            return True
        if len(premises) < 2:
            return False
        alone = (
            _entails(premise, statement.hypothesis, ask, "grounded_alone", index, n)
            for n, premise in enumerate(premises, start=1)
        )
        return any(await asyncio.gather(*alone))


METRIC = NoGold
CONFIG = NoGoldConfig


def _without_gold(row: Row) -> dict[str, Any]:
    docs = row.get("docs")
    bare = None if docs is None else [{**doc, "answers_found": None} for doc in docs]
    return {**row, "answers": [], "docs": bare}


async def _entails(premise: str, hypothesis: str, ask: Ask, role: str, sentence: int | None, doc: int | None) -> bool:
    """Nothing empty is asked: it entails nothing."""
    if not premise.strip():
        return False
    return bool((await ask.entails(premise, hypothesis, role=role, sentence=sentence, doc=doc)).label)


def _score(judged: list[bool]) -> tuple[dict[str, float], dict[str, float]]:
    if not judged:
        return {}, {}
    share = sum(judged) / len(judged)
    terms = {
        "grounded_rows": 1.0,
        "grounded": share,
        "grounded_statements": len(judged) * BIG,
        "grounded_supported": sum(judged) * BIG,
    }
    return terms, {"groundedness": share}


def _trace(
    reading: Reading,
    statements: list[citations.Statement],
    answerable: list[bool],
    grounded: list[bool | None],
    choices: Choices,
) -> dict[str, Any]:
    return reading.traced(choices) | {
        "judged": True,
        "answering": [number for number, answers in enumerate(answerable, start=1) if answers],
        "answers": [],
        "sentences": [
            {**citations.traced(statement), "grounded": mark}
            for statement, mark in zip(statements, grounded, strict=True)
        ],
    }
