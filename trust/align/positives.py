"""Positives of Trust-Align: the answer to each question that a model should have given, cited, or the refusal (facts.md B7).

What upstream gets wrong is right here in both modes: an answer that could not be written never becomes a refusal (pitfalls.md
B67), a text without tags is no empty positive (B66), and no tag is left in a target (B64). What else differs between the
modes is a named choice (`trust.align.minimal_citations.Ways`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from trust.align.minimal_citations import WAYS, Ways, append, covering, insert
from trust.align.positive_texts import (
    WRITTEN,
    Label,
    as_list,
    has_bracket,
    joined,
    listable,
    prompt,
    read_tagged,
    refusal,
)
from trust.ask import Ask, Completion
from trust.compat import choices
from trust.errors import RowError
from trust.metrics.response import Rules, read
from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.text.citations import DEFAULT_STYLES
from trust.text.normalize import has_content, normalize, normalize_answer
from trust.text.refusals import Detector

ASSEMBLED, REFUSAL = "assembled", "refusal"
_NEARLY = 1 - 1e-9  # of a share that is a sum of shares
_MEASURES = ("answer_correctness", "citation_recall", "citation_precision")


class Refused(RowError):
    """A text that is no positive; the writer may be asked again."""


@dataclass(frozen=True)
class Evidence:
    """What the labels of a row support.

    Attributes:
        labels: the supported gold answers as a writer is given them, each once.
        tagged: number in a tag -> the label that it stands for.
    """

    labels: list[Label]
    tagged: dict[int, Label]


@dataclass
class Positive:
    """What became of a row.

    Attributes:
        by: who made it: the writer's name, `assembled` or `refusal`.
        output: the positive; None where there is none.
        error: why there is none.
        completion: the last text.
        texts: how many were written.
        refused: reason -> how many of these texts were no positives for it.
        deleted: sentences without a tag that were left out of the output.
        tokens: of all prompts, and of all texts.
    """

    by: str
    output: str | None = None
    error: RowError | None = None
    completion: Completion | None = None
    texts: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    deleted: int = 0
    tokens: tuple[int, int] = (0, 0)


class Builder:
    """Makes positives in one mode.

    Args:
        writer: name of the model that writes; None where there is none.
        sampling: (sample id, try from 0) -> the sampling of a request.
        tries: texts that are asked for at most, until one is a positive.
        max_citations: task -> the most documents that a sentence, or an item of a list, cites.
        max_sentences: of a text that a model writes.
        refusals: language -> refusal sentence, before those of refusal_sentences.yaml.
        check: whether what our own Trust metrics do not score as perfect is refused.
    """

    def __init__(
        self,
        compat: str,
        writer: str | None,
        sampling: Callable[[str, int], dict[str, Any]],
        tries: int,
        max_citations: Mapping[str, int],
        max_sentences: int,
        refusals: Mapping[str, str],
        check: bool,
    ) -> None:
        self.ways: Ways = WAYS[compat]
        self._choices = choices(compat)
        self._rules = Rules(self._choices, Detector(), DEFAULT_STYLES)
        self._metric = TrustScore(TrustScoreConfig(), compat) if check else None
        self._writer, self._sampling, self._tries = writer, sampling, tries
        self._caps, self._most, self._refusals = max_citations, max_sentences, refusals

    async def build(self, row: Mapping[str, Any], ask: Ask, before: int = 0) -> Positive:
        """The positive of a labelled sample; what goes wrong is in its `error`. Roles of its asks: `positive`, and those of
        trust_score.

        Args:
            before: rounds in which the row failed already: it gets other seeds than it had there.
        """
        made = Positive(self._writer or "none")
        try:
            evidence = self.evidence(row)
            if evidence is None:
                made.by = REFUSAL
                made.output = await self._checked(row, refusal(row["language"], self._refusals), ask)
            elif row["task"] == "em5":
                made.by = ASSEMBLED
                made.output = await self._checked(row, self.assembled(row, evidence), ask)
            else:
                await self._write(row, evidence, made, ask, before * self._tries)
        except RowError as error:
            made.error = error
        return made

    def evidence(self, row: Mapping[str, Any]) -> Evidence | None:
        """What the documents support; None where they answer nothing.

        Raises:
            RowError: the row's labels cannot be read, it has none, or no answer that could be written.
        """
        reading = read({**row, "output": ""}, self._rules)
        if reading.answerable is None:
            raise RowError("no_labels", "no document says which answers it supports: label the samples first", "docs")
        if not reading.answerable:
            return None
        if row["task"] not in (*WRITTEN, "em5"):
            raise RowError("no_recipe", f"there are no positives of answerable rows of task {row['task']}", "task")
        shown: dict[str, Label] = {}
        supported: list[Label] = []
        for index, aliases in enumerate(row["answers"] or []):
            docs = frozenset(i for i, doc in enumerate(row["docs"]) if doc["answers_found"][index])
            text = self._alias([alias for alias in aliases or [] if alias and has_content(alias)], row["task"])
            if not docs or text is None:
                continue
            supported.append(Label(len(supported) + 1, text, docs))
            form = self._form(text, row["language"])
            if known := shown.get(form):
                shown[form] = Label(known.number, known.text, known.docs | docs)
            else:
                shown[form] = Label(len(shown) + 1, text, docs)
        if not shown:
            raise RowError("no_usable_answer", "no supported answer has an alias that says anything", "answers")
        labels = list(shown.values())
        by_supported = self.ways.tags == "supported" and row["task"] == "em"
        return Evidence(labels, {label.number: label for label in (supported if by_supported else labels)})

    def asked(self, row: Mapping[str, Any], evidence: Evidence) -> list[dict[str, str]]:
        """What the writer is asked. Raises RowError."""
        return prompt(row["task"], row, evidence.labels, self._most)

    def assembled(self, row: Mapping[str, Any], evidence: Evidence) -> str:
        """The answer list of task em5, each item with its citation. No model is asked.

        Raises:
            RowError: `unknown_bracket`: an answer holds brackets, which would be read as a citation.
        """
        if any(has_bracket(label.text) for label in evidence.labels):
            raise Refused(
                "unknown_bracket", "an answer holds a bracket, which could be taken for a citation", "answers"
            )
        items = [append(label.text, self._cited({label.number}, evidence, row)) for label in evidence.labels]
        return as_list(items, row["language"], self.ways)

    def target(self, row: Mapping[str, Any], evidence: Evidence, completion: Completion) -> tuple[str, int]:
        """The positive that a writer's text makes, and how many of its sentences are left out since they have no tag.

        Raises:
            Refused: it makes none.
        """
        if completion.finish_reason == "length":
            raise Refused("cut_off", f"the text was cut off at writing.max_tokens: {completion.text!r}")
        try:
            kept, deleted = read_tagged(completion.text, row["task"], row["language"], evidence.tagged)
            cited = [(one.gap, insert(one.text, self._cited(one.labels, evidence, row), self.ways)) for one in kept]
        except RowError as error:
            raise Refused(error.reason, error.detail) from error
        if len(kept) > self._most:
            raise Refused("too_many_sentences", f"{len(kept)} sentences, more than {self._most}: {completion.text!r}")
        return joined(cited), deleted

    async def _write(self, row: Mapping[str, Any], evidence: Evidence, made: Positive, ask: Ask, first: int) -> None:
        if self._writer is None:
            raise RowError(
                "no_writer", f"a positive of task {row['task']} is written by a model: choose judge/complete"
            )
        messages = self.asked(row, evidence)
        for number in range(first, first + self._tries):
            completion = await ask.complete(messages, self._sampling(row["sample_id"], number), role="positive")
            made.completion = completion
            made.texts += 1
            prompts, texts = made.tokens
            made.tokens = (prompts + (completion.prompt_tokens or 0), texts + (completion.output_tokens or 0))
            try:
                output, made.deleted = self.target(row, evidence, completion)
                made.output = await self._checked(row, output, ask)
                return
            except Refused as error:
                made.refused[error.reason] += 1
                last = error
        raise RowError(last.reason, f"the last of {self._tries} texts was refused: {last.detail}")

    async def _checked(self, row: Mapping[str, Any], output: str, ask: Ask) -> str:
        """The output, if our own Trust metrics score it as perfect: an answer whose correctness, citation recall and citation
        precision are 1, or a refusal.

        Raises:
            Refused: `not_perfect`: it is not.
            RowError: the judge could not answer.
        """
        if self._metric is None:
            return output
        result = await self._metric.row({**row, "output": output}, ask)
        trace = result.trace or {}
        wanted = "answered" if trace["answerable"] else "refused"
        if trace["response"] != wanted:
            raise Refused("not_perfect", f"it is read as {trace['response']}, not {wanted}: {output!r}")
        for name in _MEASURES if trace["answerable"] else ():
            value = result.values.get(name)
            if value is None or value < _NEARLY:
                told = "cannot be told" if value is None else f"is {value:.4g}, not 1"
                raise Refused("not_perfect", f"{name} {told}: {output!r}")
        return output

    def _cited(self, labels: Collection[int], evidence: Evidence, row: Mapping[str, Any]) -> tuple[int, ...]:
        task = row["task"]
        known = evidence.tagged
        column = self.ways.cm_score if task == "cm" else "score"
        scores = [doc.get(column) for doc in row["docs"]]
        return covering(labels, {n: known[n].docs for n in labels}, scores, self._caps[task], self.ways)

    def _alias(self, aliases: list[str], task: str) -> str | None:
        """The alias that is used: the first; in a list the first that it can hold, where there is one (`lists=language`)."""
        if task == "em5" and self.ways.lists == "language":
            aliases = [alias for alias in aliases if listable(alias)] or aliases
        return aliases[0].strip() if aliases else None

    def _form(self, text: str, language: str) -> str:
        return normalize_answer(text) if self._choices.matching == "substring" else normalize(text, language)
