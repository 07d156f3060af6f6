"""Reading one row of responses: labels, answers, what kind of response it is."""

from dataclasses import dataclass
from typing import Any

from trust.compat import Choices
from trust.errors import RowError
from trust.metrics import Row
from trust.text.citations import detach, remove_upstream
from trust.text.languages import base_language, support
from trust.text.matching import contains
from trust.text.normalize import normalize, normalize_answer
from trust.text.refusals import FLAG, THRESHOLD, Detector, Response, ratio_to_flag
from trust.text.sentences import Sentence, split

TASKS = ("em", "em5", "cm", "none")


@dataclass(frozen=True)
class Rules:
    """What the metric was configured to, for reading rows.

    Attributes:
        choices: the mode's.
        detector: finds refusals by phrases.
        styles: citation brackets.
        flag: sentence that the fuzzy rule compares with.
        threshold: the ratio above which the fuzzy rule says refusal.
        cap: citations a sentence that count; None for all.
    """

    choices: Choices
    detector: Detector
    styles: tuple[str, ...]
    flag: str = FLAG
    threshold: int = THRESHOLD
    cap: int | None = 3


@dataclass(frozen=True)
class Reading:
    """A row, read.

    Attributes:
        question, language, task, output, docs: of the row.
        plain: the output without citations.
        sentences: of the output (strict reading).
        response: `answered`, `refused` or `empty`.
        ratio: fuzzy ratio to the refusal sentence, where that rule decided.
        phrase: refusal phrase found, where phrases decided.
        refusing: indexes of sentences that only say that something cannot be answered.
        counts: whether correctness takes the response for an answer.
        answers: gold answers with their aliases, those that can be matched at all.
        supported: per gold answer, whether a document supports it; None where that is not known.
        answerable: whether a document supports any gold answer; None where that is not known.
    """

    question: str
    language: str
    task: str
    output: str
    docs: list[dict[str, Any]]
    plain: str
    sentences: list[Sentence]
    response: Response
    ratio: int | None
    phrase: str | None
    refusing: frozenset[int]
    counts: bool
    answers: list[list[str]]
    supported: list[bool] | None
    answerable: bool | None

    def normal(self, text: str, choices: Choices) -> str:
        """A text in the form in which answers are compared."""
        return normalize_answer(text) if choices.matching == "substring" else normalize(text, self.language)

    def holds(self, text: str, answer: str, choices: Choices) -> bool:
        """Whether a text holds an answer, both of them as `normal` gives them."""
        return (
            answer in text if choices.matching == "substring" else contains(text, answer, base_language(self.language))
        )

    def traced(self, choices: Choices) -> dict[str, Any]:
        """What every metric says of how the row was read, for the trace of its score."""
        trace: dict[str, Any] = {
            "answerable": self.answerable,
            "response": self.response,
            "refusal": {"ratio": self.ratio, "phrase": self.phrase},
        }
        standing = support(self.language, choices.known_languages)
        return trace if standing == "supported" else trace | {"language": standing}


def read(row: Row, rules: Rules) -> Reading:
    """Read and check a row.

    Raises:
        RowError: no output, an unknown task, no documents column, or `answers_found` that do not fit.
    """
    output, docs = row.get("output"), row.get("docs")
    if output is None:
        raise RowError("no_output", "the row has no output to score", "output")
    if row["task"] not in TASKS:
        raise RowError("invalid_task", f"task is {row['task']!r}; known are {', '.join(TASKS)}", "task")
    if docs is None:
        raise RowError("no_docs", "docs is null; a question without documents has an empty list", "docs")
    answers = [[alias for alias in aliases or [] if alias is not None] for aliases in row.get("answers") or []]
    labels = checked_labels(docs, len(answers))
    answerable = _answerable(docs, labels, bool(answers))
    supported = None if answerable is None or labels is None else [any(column) for column in zip(*labels, strict=True)]
    if answers and answerable is not None and not docs:
        supported = [False] * len(answers)
    choices, language = rules.choices, row["language"]

    strict_text = choices.citations == "bracketed" or choices.refusals == "phrases"
    sentences = split(output, language, rules.styles) if strict_text else []
    plain = detach(output, rules.styles).text if choices.citations == "bracketed" else remove_upstream(output)
    ratio: int | None = None
    phrase: str | None = None
    refusing: frozenset[int] = frozenset()
    if choices.refusals == "flag_ratio":
        ratio = ratio_to_flag(output, rules.flag)
        response: Response = "refused" if ratio > rules.threshold else "answered"
        if choices.empty == "empty" and not plain.strip():
            response = "empty"
    else:
        response, phrase, refusing = _classify(sentences, language, rules)
    counts = response == "answered"
    if choices.correctness_refusals == "without_citations":
        counts = ratio_to_flag(plain, rules.flag) <= rules.threshold
    usable = list(range(len(answers)))
    if choices.matching == "tokens":
        usable = [i for i in usable if any(normalize(alias, language) for alias in answers[i])]
    return Reading(
        question=row["question"],
        language=language,
        task=row["task"],
        output=output,
        docs=list(docs),
        plain=plain,
        sentences=sentences,
        response=response,
        ratio=ratio,
        phrase=phrase,
        refusing=refusing,
        counts=counts,
        answers=[answers[i] for i in usable],
        supported=None if supported is None else [bool(supported[i]) for i in usable if i < len(supported)],
        answerable=answerable,
    )


def _classify(sentences: list[Sentence], language: str, rules: Rules) -> tuple[Response, str | None, frozenset[int]]:
    finding = rules.detector.classify(sentences, language)
    response = finding.response
    if response == "empty" and rules.choices.empty == "answered":
        response = "answered"
    return response, finding.phrase, finding.refusing


def checked_labels(docs: list[dict[str, Any]], answers: int) -> list[list[int]] | None:
    """`answers_found` of every document, checked; None where no document has any.

    Args:
        answers: how many gold answers the row has; 0 where it does not say.

    Raises:
        RowError: they do not fit: some are missing, of another length, or neither 0 nor 1.
    """
    labels = [doc.get("answers_found") for doc in docs]
    if all(label is None for label in labels):
        return None
    width = answers or len(next(label for label in labels if label is not None))
    checked: list[list[int]] = []
    for number, label in enumerate(labels, start=1):
        if label is None:
            raise RowError(
                "answers_found_missing",
                f"document {number} has no answers_found although others have: give it to all documents or to none",
                f"docs[{number - 1}].answers_found",
            )
        if len(label) != width:
            raise RowError(
                "answers_found_length",
                f"answers_found of document {number} has {len(label)} entries for {width} answers: one each is needed",
                f"docs[{number - 1}].answers_found",
            )
        if any(value not in (0, 1) for value in label):
            raise RowError(
                "answers_found_value",
                f"answers_found of document {number} is {list(label)}: only 0 and 1 have a meaning",
                f"docs[{number - 1}].answers_found",
            )
        checked.append([int(value) for value in label])
    return checked


def _answerable(docs: list[dict[str, Any]], labels: list[list[int]] | None, has_answers: bool) -> bool | None:
    """Without documents a question is unanswerable; without labels, or with neither answers nor labels, who knows."""
    if not docs:
        return False
    if labels is None or (not has_answers and not labels[0]):
        return None
    return any(any(label) for label in labels)
