"""Grounded citations (F1_GC): does what a sentence cites entail it, and is every citation needed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trust.ask import Ask, Verdict
from trust.compat import Choices
from trust.metrics import Stat
from trust.metrics.em5 import read_items
from trust.metrics.ratios import BIG, Sums
from trust.metrics.response import Reading, Rules
from trust.text.citations import detach, read_upstream, remove_upstream, unread
from trust.text.normalize import has_content
from trust.text.sentences import Sentence, punkt

_VIEWS = ("regular", "answered")
TERMS = (
    *(f"{view}_{name}" for view in _VIEWS for name in ("cite_rows", "cite_rec", "cite_prec_rows", "cite_prec")),
    "cite_sentences",
    "cite_supported",
    "cite_citations",
    "cite_credited",
    "uncited_format",
)
_CREDITED = frozenset({"supports", "needed", "redundant"})


@dataclass
class Statement:
    """A sentence (or list item) that citations are judged for.

    Attributes:
        text: as written.
        hypothesis: what the judge is asked about.
        numbers: document numbers cited, as written.
        needs: whether it makes a claim that needs a citation.
        citations: per citation, what became of it.
        recall: 1 if what it cites entails it, 0 if not, None if it needs no citation.
        p_yes: the judge's probability for that, where it was asked.
        counted: citations in the precision's denominator.
    """

    text: str
    hypothesis: str
    numbers: tuple[int, ...]
    needs: bool = True
    citations: list[dict[str, Any]] = field(default_factory=list)
    recall: int | None = None
    p_yes: float | None = None
    counted: int = 0

    @property
    def credited(self) -> int:
        """Citations that count as right."""
        return sum(citation["verdict"] in _CREDITED for citation in self.citations)


def read(reading: Reading, rules: Rules) -> list[Statement]:
    """The statements of a response; an item of a list is judged together with the question."""
    choices = rules.choices
    if reading.task == "em5":
        items = read_items(reading, rules)
        return [_statement(item, choices, f"{reading.question} ") for item in items]
    if choices.sentences == "punkt":
        return [_statement(Sentence(text, remove_upstream(text)), choices) for text in punkt(reading.output)]
    skip = reading.refusing if choices.statements == "claims" else frozenset()
    return [
        _statement(sentence, choices, needs=bool(sentence.cited) or index not in skip)
        for index, sentence in enumerate(reading.sentences)
    ]


async def judge(reading: Reading, statements: list[Statement], ask: Ask, rules: Rules) -> None:
    """Fill in every statement's recall and verdicts; statements and independent asks go out together."""
    if rules.choices.cited_rows == "answers" and reading.response != "answered":
        return
    await asyncio.gather(*(_Judge(reading, i, s, ask, rules).run() for i, s in enumerate(statements) if s.needs))


def score(reading: Reading, statements: list[Statement], rules: Rules) -> tuple[dict[str, float], dict[str, float]]:
    """Terms and values of one response, after `judge`: mean over statements, share of citations (App. D.2)."""
    judged = [statement for statement in statements if statement.recall is not None]
    answered = reading.response == "answered"
    terms: dict[str, float] = {}
    values: dict[str, float] = {}
    if answered and not any(statement.numbers for statement in statements):
        terms["uncited_format"] = float(bool(unread(detach(reading.output, rules.styles).text)))
    if not judged:
        return terms, values
    counted, credited = sum(s.counted for s in judged), sum(s.credited for s in judged)
    supported = sum(s.recall or 0 for s in judged)
    values["citation_recall"] = supported / len(judged)
    if counted or rules.choices.no_citation == "zero":
        values["citation_precision"] = credited / counted if counted else 0.0
    for view in _VIEWS[: 2 if answered else 1]:
        terms |= {f"{view}_cite_rows": 1.0, f"{view}_cite_rec": values["citation_recall"]}
        if "citation_precision" in values:
            terms |= {f"{view}_cite_prec_rows": 1.0, f"{view}_cite_prec": values["citation_precision"]}
    if answered:
        pooled = (len(judged), supported, counted, credited)
        names = ("cite_sentences", "cite_supported", "cite_citations", "cite_credited")
        terms |= {name: number * BIG for name, number in zip(names, pooled, strict=True)}
    return terms, values


def as_premise(doc: Mapping[str, Any], choices: Choices) -> str:
    """A document as a judge is shown it."""
    title, text = doc.get("title") or "", doc.get("text") or ""
    if choices.premise == "text" and not title.strip():
        return text
    return f"Title: {title}\n{text}" if text or choices.premise == "titled" else f"Title: {title}"


def traced(statement: Statement) -> dict[str, Any]:
    """A judged statement for the trace of a score."""
    return {
        "text": statement.text,
        "hypothesis": statement.hypothesis,
        "citations": statement.citations,
        "recall": statement.recall,
        "p_yes": statement.p_yes,
    }


def final(sums: Sums, choices: Choices) -> dict[str, Stat]:
    """Dataset means of recall and precision, and their harmonic mean, over all responses and over answers."""
    stats = {}
    for view in _VIEWS:
        mean = sums.mean_or_na if view == "regular" else sums.mean
        recall = mean(f"{view}_cite_rec", f"{view}_cite_rows")
        precision = mean(f"{view}_cite_prec", f"{view}_cite_prec_rows")
        stats[f"{view}_citation_rec"] = recall
        stats[f"{view}_citation_prec"] = precision
        stats[f"{view}_citation_f1"] = Stat(sums.f1(precision.value, recall.value), recall.n)
    return stats


def final_pooled(sums: Sums) -> dict[str, Stat]:
    """Beside the published means of means: over all sentences and over all citations of all answers.

    `*_by_sentence` is the share of supported sentences, `*_by_citation` the share of citations that are right;
    `uncited_format_num` counts answers without a readable citation that hold something which looks like one.
    """
    answers, cited = sums.rows("answered_cite_rows"), sums.rows("answered_cite_prec_rows")
    return {
        "answered_citation_rec_by_sentence": Stat(
            sums.percent(sums["cite_supported"], sums["cite_sentences"]), answers
        ),
        "answered_citation_prec_by_citation": Stat(sums.percent(sums["cite_credited"], sums["cite_citations"]), cited),
        "uncited_format_num": sums.count("uncited_format"),
    }


def _statement(sentence: Sentence, choices: Choices, prefix: str = "", needs: bool = True) -> Statement:
    if choices.citations == "leading_number":
        numbers = tuple(read_upstream(prefix + sentence.text))
        hypothesis = remove_upstream(prefix + sentence.text).strip()
    else:
        numbers = sentence.numbers
        hypothesis = prefix + sentence.claim
    lead_in = choices.statements == "claims" and sentence.lead_in
    return Statement(prefix + sentence.text, hypothesis, numbers, needs and not lead_in)


class _Judge:
    """Judges the citations of one statement."""

    def __init__(self, reading: Reading, index: int, statement: Statement, ask: Ask, rules: Rules) -> None:
        self.docs = reading.docs
        self.index = index
        self.statement = statement
        self.ask = ask
        self.choices = rules.choices
        self.cap = rules.cap

    async def run(self) -> None:
        statement, choices = self.statement, self.choices
        statement.recall = 0
        statement.citations = [{"doc": number, "verdict": None, "p_yes": None} for number in statement.numbers]
        kept = self._in_range()
        beyond = [citation for citation in statement.citations if citation["verdict"] == "out_of_range"]
        if beyond and choices.out_of_range == "voids":
            for citation in kept:
                citation["verdict"] = "not_entailed"
            return
        if self.cap is not None:
            for citation in kept[self.cap :]:
                citation["verdict"] = "over_cap"
        capped, kept = kept[self.cap :] if self.cap is not None else [], kept[: self.cap]
        statement.counted = len(kept) + len(beyond) + (len(capped) if choices.over_cap == "wrong" else 0)
        if kept:
            await self._entailment(kept)

    def _in_range(self) -> list[dict[str, Any]]:
        """Citations of documents that are there; marks the rest, and repeats where they are merged."""
        kept: list[dict[str, Any]] = []
        seen: set[int] = set()
        for citation in self.statement.citations:
            number = citation["doc"]
            if number in seen and self.choices.repeated_citations == "merged":
                citation["verdict"] = "duplicate"
            elif 1 <= number <= len(self.docs) or (number == 0 and self.choices.zero == "last" and self.docs):
                kept.append(citation)
            else:
                citation["verdict"] = "out_of_range"
            seen.add(number)
        return kept

    async def _entailment(self, kept: list[dict[str, Any]]) -> None:
        joint = await self._entails(kept, "citation_recall")
        self.statement.recall, self.statement.p_yes = joint.label, joint.p_yes
        if not joint.label or len(kept) == 1:
            for citation in kept:
                citation["verdict"] = "supports" if joint.label else "not_entailed"
                citation["p_yes"] = joint.p_yes if len(kept) == 1 else None
            return
        await asyncio.gather(*(self._necessity(i, kept) for i in range(len(kept))))

    async def _necessity(self, index: int, kept: list[dict[str, Any]]) -> None:
        """Eq. 12: a citation is wrong only if it does not entail the sentence by itself and the others do."""
        citation, rest = kept[index], kept[:index] + kept[index + 1 :]
        alone = await self._entails([citation], "citation_precision")
        citation["p_yes"] = alone.p_yes
        if alone.label:
            citation["verdict"] = "supports"
        elif not (await self._entails(rest, "citation_rest", citation["doc"])).label:
            citation["verdict"] = "needed"
        elif self.choices.shared_claim == "forgives" and self._shares(citation, rest):
            citation["verdict"] = "redundant"
        else:
            citation["verdict"] = "irrelevant"

    async def _entails(self, cited: Sequence[dict[str, Any]], role: str, doc: int | None = None) -> Verdict:
        premise = "\n".join(filter(None, (as_premise(self._doc(citation), self.choices) for citation in cited)))
        if self.choices.empty_asks == "skipped" and not (premise.strip() and has_content(self.statement.hypothesis)):
            return Verdict(0, 0.0)
        if doc is None and len(cited) == 1:
            doc = cited[0]["doc"]
        return await self.ask.entails(premise, self.statement.hypothesis, role=role, sentence=self.index, doc=doc)

    def _doc(self, citation: dict[str, Any]) -> dict[str, Any]:
        return self.docs[citation["doc"] - 1]

    def _shares(self, citation: dict[str, Any], rest: list[dict[str, Any]]) -> bool:
        """Whether a gold answer is supported by this document and by one of the others (facts.md A4 item 30)."""
        own = self._doc(citation).get("answers_found") or []
        others = [self._doc(other).get("answers_found") or [] for other in rest]
        return any(a and b for other in others for a, b in zip(own, other, strict=False))
