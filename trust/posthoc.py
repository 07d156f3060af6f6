"""Post-hoc citing of one response: for each sentence the best of the row's documents, by embeddings or by entailment.

The baselines PostCite (embeddings) and PostAttr (a judge of entailment) of arXiv 2409.11242, after ALCE (arXiv 2305.14627).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import regex

from trust import config as configs
from trust.ask import Ask
from trust.compat import CITING, Choices, choices
from trust.errors import ConfigError, RowError
from trust.metrics.citations import as_premise
from trust.metrics.em5 import read_items
from trust.metrics.response import Reading, Rules, read
from trust.text.citations import DEFAULT_STYLES, closing, detach, read_upstream, remove_upstream
from trust.text.normalize import UNSPACED
from trust.text.refusals import Detector
from trust.text.sentences import punkt

BY = ("embedding", "entailment")
KEPT, REPLACED = "kept", "replaced"

_UNSPACED = regex.compile(UNSPACED)
_DIGITS = 6  # of a score: beyond them the batch that a text was in may decide


@dataclass
class CiteOptions:
    """How responses are cited.

    Attributes:
        by: `embedding` (cosine of sentence and document) or `entailment` (the judge's probability that the document
            entails the sentence).
        name: added to the prompt's name, as in `closedbook+postcite`, so that tables and reports tell the responses apart.
        docs: documents that may be cited, the first of the row.
        min_score: below it a sentence gets no citation; null always cites, as published.
        existing: citations that are there are `kept`, and only sentences without one get one, or `replaced`; null is the
            mode's way: replaced in strict, kept in upstream.
    """

    by: str
    name: str
    docs: int = 5
    min_score: float | None = None
    existing: str | None = None

    def __post_init__(self) -> None:
        configs.one_of("cite.by", self.by, BY)
        if self.existing is not None:
            configs.one_of("cite.existing", self.existing, (KEPT, REPLACED))
        if not self.name.strip():
            raise ConfigError("cite.name is empty: it is how tables tell these responses from those they were made of")
        if self.docs < 1:
            raise ConfigError(f"cite.docs={self.docs}: must be at least 1")
        low = -1 if self.by == "embedding" else 0
        if self.min_score is not None and not low <= self.min_score <= 1:
            raise ConfigError(f"cite.min_score={self.min_score:g}: a score by {self.by} lies between {low} and 1")


@dataclass(frozen=True)
class Choice:
    """What was chosen for a sentence.

    Attributes:
        sentence: its index.
        text: what the documents were compared with.
        scores: of each document that may be cited; None for one without text.
        doc: number of the document cited, from 1; None where none is.
    """

    sentence: int
    text: str
    scores: list[float | None] = field(default_factory=list)
    doc: int | None = None


class Citer:
    """Cites responses in one mode (`trust.compat.Citing`: where citations are put; `Choices`: what gets any)."""

    def __init__(self, options: CiteOptions, compat: str) -> None:
        self.options = options
        self._rules = Rules(choices(compat), Detector(), DEFAULT_STYLES)
        self._ways = CITING[compat]
        self._replace = (options.existing or self._ways.existing) == REPLACED

    async def cite(self, row: Mapping[str, Any], ask: Ask) -> tuple[str, list[Choice]]:
        """The output with its citations, and what was chosen. A response that gets none stays as it is.

        Args:
            row: of the responses table, with the documents that its citations count.

        Raises:
            RowError: the row cannot be read, or a model could not answer.
        """
        reading = read(row, self._rules)
        layout = self._layout(row, reading)
        docs = reading.docs[: self.options.docs]
        if layout is None or not docs:
            return reading.output, []
        wanted = [(index, query) for index, query in enumerate(layout.queries) if query is not None]
        chosen = await asyncio.gather(*(self._choose(index, query, docs, ask) for index, query in wanted))
        return layout.render({choice.sentence: choice.doc for choice in chosen}), chosen

    def _layout(self, row: Mapping[str, Any], reading: Reading) -> "_Layout | None":
        """The response's sentences and where their citations go; None where it gets none."""
        if self._rules.choices.cited_rows == "answers" and reading.response != "answered":
            return None
        if self._ways.placed == "start":
            return _AtStart(reading, self._replace)
        if self._replace and (plain := detach(reading.output, self._rules.styles).text) != reading.output:
            reading = read({**row, "output": plain}, self._rules)
        return _BeforeMark(reading, self._rules)

    async def _choose(self, index: int, query: str, docs: list[dict[str, Any]], ask: Ask) -> Choice:
        scores = await self._scores(index, query, docs, ask)
        known = [score for score in scores if score is not None]
        least = self.options.min_score
        if not known or (least is not None and max(known) < least):
            return Choice(index, query, scores)
        return Choice(index, query, scores, scores.index(max(known)) + 1)

    async def _scores(self, index: int, query: str, docs: list[dict[str, Any]], ask: Ask) -> list[float | None]:
        """How well each document fits; of equals the first is taken."""
        made = self._rules.choices
        texts = [as_text(doc, made) if self.options.by == "embedding" else as_premise(doc, made) for doc in docs]
        usable = [number for number, text in enumerate(texts) if text.strip() or made.empty_asks == "asked"]
        found = (
            await _by_embedding(query, [texts[number] for number in usable], ask)
            if self.options.by == "embedding"
            else await asyncio.gather(*(self._entailed(texts[n], query, index, n + 1, ask) for n in usable))
        )
        scores = dict(zip(usable, found, strict=True))
        return [round(scores[number], _DIGITS) if number in scores else None for number in range(len(docs))]

    async def _entailed(self, premise: str, query: str, index: int, number: int, ask: Ask) -> float:
        verdict = await ask.entails(premise, query, role="post_hoc", sentence=index, doc=number)
        if self._ways.attribution == "certainty" and not verdict.label:
            return 1 - verdict.p_yes  # the published code adds up the log-probabilities of whatever the judge wrote
        return verdict.p_yes


def as_text(doc: Mapping[str, Any], made: Choices) -> str:
    """A document as it is embedded: title and text in one, as published."""
    title, text = doc.get("title") or "", doc.get("text") or ""
    return text if made.premise == "text" and not title.strip() else f"{title}. {text}"


async def _by_embedding(query: str, texts: Sequence[str], ask: Ask) -> list[float]:
    own, *others = await asyncio.gather(ask.embed(query), *(ask.embed(text) for text in texts))
    return [float(np.dot(own.vector, other.vector)) for other in others]


class _Layout(Protocol):
    """Sentences of a response.

    Attributes:
        queries: what documents are compared with, a sentence each; None for one that gets no citation.
    """

    queries: list[str | None]

    def render(self, cited: Mapping[int, int | None]) -> str:
        """The response with citations: index of the sentence -> number of the document."""
        ...


class _BeforeMark:
    """A citation stands before what closes its sentence, and nothing else of the text changes. Headings, lead-ins and remarks
    that something cannot be answered get none: no citation is asked of them."""

    def __init__(self, reading: Reading, rules: Rules) -> None:
        self._text = reading.output
        listed = reading.task == "em5"
        items = read_items(reading, rules) if listed else reading.sentences
        skip = frozenset() if listed else reading.refusing
        prefix = f"{reading.question} " if listed else ""
        self._ends = [item.start + closing(item.text) for item in items]
        self.queries: list[str | None] = [
            None if item.cited or item.lead_in or index in skip else prefix + item.claim
            for index, item in enumerate(items)
        ]

    def render(self, cited: Mapping[int, int | None]) -> str:
        text = self._text
        for index, at in sorted(enumerate(self._ends), key=lambda item: item[1], reverse=True):
            if number := cited.get(index):
                blank = "" if _UNSPACED.match(text[at - 1]) else " "
                text = f"{text[:at]}{blank}[{number}]{text[at:]}"
        return text


class _AtStart:
    """As published: a citation before each sentence, whatever it says, with one blank between sentences where lines were."""

    def __init__(self, reading: Reading, replace: bool) -> None:
        self._listed = reading.task == "em5"
        prefix = f"{reading.question} " if self._listed else ""
        parts = reading.output.rstrip(".").split(",") if self._listed else punkt(reading.output)
        self.queries: list[str | None] = []
        self._texts = []
        for part in map(str.strip, parts) if self._listed else parts:
            keeps = bool(read_upstream(prefix + part)) and not replace
            self.queries.append(None if keeps else remove_upstream(prefix + part).strip())
            self._texts.append(part if keeps else remove_upstream(part))

    def render(self, cited: Mapping[int, int | None]) -> str:
        # Of a list item the question is taken away again behind the citation; the blank before and the one after it stay.
        gap, separator = ("  ", ", ") if self._listed else (" ", " ")
        made = []
        for index, text in enumerate(self._texts):
            number = cited.get(index)
            whole = f"[{number}]{gap}{text}" if number else text
            made.append((whole.strip() if self._listed else whole) + separator)
        return "".join(made).rstrip().rstrip(",")


def documents(row: Mapping[str, Any], of_sample: Sequence[Mapping[str, Any]] | None, most: int) -> list[dict[str, Any]]:
    """The documents that a response's citations count: those it was shown, in that order; for one that was shown none
    (closed book), the first `most` of its sample.

    Raises:
        RowError: it was shown none, and its sample is not among the run's.
    """
    if shown := row.get("docs"):
        return list(shown)
    if of_sample is None:
        raise RowError("no_sample", "the response was shown no documents, and its sample is not in the run any more")
    return [dict(doc) for doc in of_sample[:most]]
