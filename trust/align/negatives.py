"""Negatives: which hallucinations a response holds, and how severe they are.

Source: arXiv 2409.11242, Table 1 and sec. 4; facts.md B1, B6.

Five types, each with a size e_i from 0 to 1:

| e_i | type | size |
|---|---|---|
| e_1 | `unwarranted_refusal` | 1 where the question is answerable and the response refuses |
| e_2 | `over_responsiveness` | 1 where it is not and the response answers |
| e_3 | `overcitation` | 1 - citation precision |
| e_4 | `improper_citation` | 1 - citation recall |
| e_5 | `inaccurate_claims` | 1 - F1_AC of the sample |

The severity of a response is the sum of w_i e_i. A wrong refusal and a wrong answer exclude the other three, and a right
refusal has no error. F1_AC of one sample is its answer correctness, as P_AC and R_AC are the same there. What does not
apply is no error: without citations nothing is cited too much (in strict mode; as published, the precision is 0 then), and
without a statement that needs a citation none is missing.

As published, each sentence satisfies one gold answer at most and citations have no cap. The published labelling also cuts
sentences with a fixed list of abbreviations that is not known here: English Punkt takes its place.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal

from trust.ask import Ask
from trust.errors import ConfigError, RowError
from trust.metrics import Row, citations, correctness
from trust.metrics.response import Reading, Rules, read
from trust.metrics.trust_score import TrustScoreConfig, correctness_of, rules
from trust.text.citations import remove_upstream
from trust.text.normalize import has_content
from trust.text.sentences import punkt

TYPES = ("unwarranted_refusal", "over_responsiveness", "overcitation", "improper_citation", "inaccurate_claims")
COLUMNS = tuple(f"e_{number}" for number in range(1, len(TYPES) + 1))  # of the table errors


@dataclass
class Weights:
    """w_i of the five types. The defaults are the published ones; a type of weight 0 makes no response a negative."""

    unwarranted_refusal: float = 0.50
    over_responsiveness: float = 0.50
    overcitation: float = 0.34
    improper_citation: float = 0.26
    inaccurate_claims: float = 0.40

    def __post_init__(self) -> None:
        for name, weight in zip(TYPES, astuple(self), strict=True):
            if not 0 <= weight < math.inf:
                raise ConfigError(f"weights.{name}={weight:g}: must be a number, 0 or more")
        if not any(astuple(self)):
            raise ConfigError("weights: all are 0, so that nothing is an error")


@dataclass(frozen=True)
class Labelling:
    """How one mode labels errors, beside how it reads responses (trust.compat).

    Attributes:
        coverage: a gold answer is looked for in the whole `response`, or sentence by sentence, where each `sentence` satisfies
            the first supported one that it holds and no other.
        cap: citations of a sentence that count: as `configured`, or `none` is left out.
    """

    coverage: Literal["response", "sentence"]
    cap: Literal["configured", "none"]


LABELLING = {
    "strict": Labelling(coverage="response", cap="configured"),
    "upstream": Labelling(coverage="sentence", cap="none"),
}


@dataclass(frozen=True)
class Errors:
    """What is wrong with a response.

    Attributes:
        answerable: whether the documents shown support a gold answer.
        sizes: e_1 to e_5.
    """

    answerable: bool
    sizes: tuple[float, ...]

    def severity(self, weights: Weights) -> float:
        """Sum of w_i e_i; 0 for a response without error."""
        return sum(self._weighed(weights))

    def primary(self, weights: Weights) -> str | None:
        """The type with the largest w_i e_i, the first of equals; None for a response without error."""
        weighed = self._weighed(weights)
        return TYPES[weighed.index(max(weighed))] if any(weighed) else None

    def _weighed(self, weights: Weights) -> list[float]:
        return [weight * size for weight, size in zip(astuple(weights), self.sizes, strict=True)]


class Labeller:
    """Labels the errors of responses.

    Args:
        config: how the Trust-Score reads responses.
        compat: `strict` or `upstream`.

    Raises:
        ConfigError: an option is out of range, or does nothing in this mode.
    """

    def __init__(self, config: TrustScoreConfig, compat: str) -> None:
        self._how = LABELLING[compat]
        found = rules(config, compat, "trust_score")
        self._rules = replace(found, cap=None) if self._how.cap == "none" else found

    async def label(self, row: Row, ask: Ask) -> Errors:
        """The errors of one response (a row of the table responses).

        Raises:
            RowError: `empty_output`, `no_answers`, `no_labels`, `no_correctness`, `unmatchable_answers`; the row cannot be
                read, or a judge could not answer.
        """
        reading = read(row, self._rules)
        _check(row, reading)
        answers, answerable = reading.response == "answered", bool(reading.answerable)
        if not answerable or not answers:
            return Errors(answerable, (float(answerable and not answers), float(answers and not answerable), 0, 0, 0))
        statements = citations.read(reading, self._rules)
        correct, _ = await asyncio.gather(
            self._correctness(reading, ask), citations.judge(reading, statements, ask, self._rules)
        )
        _, cited = citations.score(reading, statements, self._rules)
        rates = (cited.get("citation_precision", 1.0), cited.get("citation_recall", 1.0), correct)
        return Errors(answerable, (0, 0, *(1.0 - rate for rate in rates)))

    async def _correctness(self, reading: Reading, ask: Ask) -> float:
        if self._how.coverage == "sentence" and reading.task in ("em", "cm"):
            values = correctness.share(reading, await _by_sentence(reading, ask, self._rules))[1]
        else:
            values = (await correctness_of(reading, ask, self._rules)).values
        if "answer_correctness" not in values:
            raise RowError(
                "unmatchable_answers",
                "the documents support only gold answers that nothing can be compared with: they hold no letter or digit",
                "answers",
            )
        return values["answer_correctness"]


def totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Counts over rows of the table errors that did not fail, for receipts and cards.

    Returns:
        `with_error`, and of these `with_error:answerable` and `with_error:unanswerable`; `type:NAME` counts each type of a
        row, so their sum is no count of rows; `primary:NAME` counts each row with an error once, so their sum is `with_error`.
    """
    found: Counter[str] = Counter()
    for row in rows:
        if row["primary_type"] is None:
            continue
        found["with_error"] += 1
        found[f"with_error:{'answerable' if row['answerable'] else 'unanswerable'}"] += 1
        found[f"primary:{row['primary_type']}"] += 1
        found.update(f"type:{name}" for name in types_of(row))
    return {key: float(count) for key, count in found.items()}


def types_of(row: Mapping[str, Any]) -> list[str]:
    """The error types of a row of the table errors, in the order of `TYPES`."""
    return [name for name, column in zip(TYPES, COLUMNS, strict=True) if row[column]]


def _check(row: Row, reading: Reading) -> None:
    if reading.response == "empty" or not has_content(reading.plain):
        raise RowError("empty_output", "the response says nothing: there is no error to name in it", "output")
    if not row.get("answers"):
        raise RowError("no_answers", "the row has no gold answers: nothing says what a right response is", "answers")
    if reading.answerable is None:
        raise RowError(
            "no_labels", "no document says which answers it holds (answers_found): run jobs.label first", "docs"
        )
    if reading.task == "none":
        raise RowError(
            "no_correctness", "of a row of task none nobody knows what is correct: give em, em5 or cm", "task"
        )


async def _by_sentence(reading: Reading, ask: Ask, rules: Rules) -> list[bool]:
    """Per gold answer, whether a sentence was given to it (facts.md B6): the first supported one that it holds, and no other."""
    texts = [remove_upstream(text) for text in punkt(reading.output)]
    given = await asyncio.gather(*(_first_held(reading, text, ask, rules) for text in texts))
    return [index in given for index in range(len(reading.answers))]


async def _first_held(reading: Reading, text: str, ask: Ask, rules: Rules) -> int | None:
    for index, aliases in enumerate(reading.answers):
        if reading.supported and reading.supported[index] and await _holds(reading, text, aliases, index, ask, rules):
            return index
    return None


async def _holds(reading: Reading, text: str, aliases: Sequence[str], index: int, ask: Ask, rules: Rules) -> bool:
    if reading.task == "cm":
        return bool((await ask.entails(text, aliases[0] if aliases else "", role="claim", sentence=index)).label)
    normal = reading.normal(text, rules.choices)
    return any(reading.holds(normal, reading.normal(alias, rules.choices), rules.choices) for alias in aliases)
