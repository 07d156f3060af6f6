"""The named choices in which the published arithmetic and the right one differ.

One code path serves both modes; a mode is a set of choices. `facts.md` A4 says what upstream does, `pitfalls.md` what
is right.
"""

from dataclasses import dataclass
from typing import Literal

from trust.errors import ConfigError
from trust.text.languages import PUBLISHED, SUPPORTED


@dataclass(frozen=True)
class Choices:
    """How one mode reads responses and does its sums.

    Attributes:
        sentences: `punkt` (NLTK, English) or `sentencex` (by language, citations behind the full stop attached).
        citations: `leading_number` (digits behind an opening bracket) or `bracketed` (lists, ranges, labels).
        refusals: `flag_ratio` (fuzzy ratio to one sentence) or `phrases` (by language).
        correctness_refusals: whether correctness decides on refusal anew, on the text without citations
            (`without_citations`), or keeps the one decision on the response (`response`).
        empty: whether a response without content counts as `answered` or is a class of its own (`empty`).
        matching: an answer is found as `substring` or as whole `tokens`.
        lists: an answer list parts at `commas` only, or at bullets, lines and commas (`items`).
        repeated_predictions: repeated items of a list are `kept` or `merged`.
        shared_claim: a citation that fails alone and is not needed is forgiven where it shares a supported gold answer
            with the others (`forgives`), or not (`counts`).
        out_of_range: a citation of a document that is not there `voids` the sentence and leaves the precision, or is
            `wrong` in the precision and ignored in the recall.
        zero: the citation [0] is the `last` document or `out_of_range`.
        over_cap: citations behind the first `at_most_citations` are `ignored`, or `wrong` in the precision.
        repeated_citations: `kept` or `merged`.
        statements: `all` sentences need a citation, or only `claims` (no headings, lead-ins and uncited remarks that
            something cannot be answered).
        cited_rows: citations are scored for `all` responses, or only for `answers`.
        no_citation: the precision of a response without citations is `zero` or not applicable (`na`).
        premise: a document without title is `titled` all the same, or `text` alone.
        empty_asks: whether a judge is asked about an empty text (`asked`) or not (`skipped`: it is not entailed).
        words: a response's length is counted by `spaces` alone, or by `script` (characters where no spaces are written).
        undefined: a rate over nothing is `zero` or not applicable (`na`).
        answered_ratio_digits: decimals that `answered_ratio` is rounded to; None for all.
    """

    sentences: Literal["punkt", "sentencex"]
    citations: Literal["leading_number", "bracketed"]
    refusals: Literal["flag_ratio", "phrases"]
    correctness_refusals: Literal["without_citations", "response"]
    empty: Literal["answered", "empty"]
    matching: Literal["substring", "tokens"]
    lists: Literal["commas", "items"]
    repeated_predictions: Literal["kept", "merged"]
    shared_claim: Literal["forgives", "counts"]
    out_of_range: Literal["voids", "wrong"]
    zero: Literal["last", "out_of_range"]
    over_cap: Literal["ignored", "wrong"]
    repeated_citations: Literal["kept", "merged"]
    statements: Literal["all", "claims"]
    cited_rows: Literal["all", "answers"]
    no_citation: Literal["zero", "na"]
    premise: Literal["titled", "text"]
    empty_asks: Literal["asked", "skipped"]
    words: Literal["spaces", "script"]
    undefined: Literal["zero", "na"]
    answered_ratio_digits: int | None

    @property
    def known_languages(self) -> frozenset[str]:
        """Base codes of the languages that this way of reading has rules for."""
        return SUPPORTED if self.sentences == "sentencex" else PUBLISHED


UPSTREAM = Choices(
    sentences="punkt",
    citations="leading_number",
    refusals="flag_ratio",
    correctness_refusals="without_citations",
    empty="answered",
    matching="substring",
    lists="commas",
    repeated_predictions="kept",
    shared_claim="forgives",
    out_of_range="voids",
    zero="last",
    over_cap="ignored",
    repeated_citations="kept",
    statements="all",
    cited_rows="all",
    no_citation="zero",
    premise="titled",
    empty_asks="asked",
    words="spaces",
    undefined="zero",
    answered_ratio_digits=2,
)

STRICT = Choices(
    sentences="sentencex",
    citations="bracketed",
    refusals="phrases",
    correctness_refusals="response",
    empty="empty",
    matching="tokens",
    lists="items",
    repeated_predictions="merged",
    shared_claim="counts",
    out_of_range="wrong",
    zero="out_of_range",
    over_cap="wrong",
    repeated_citations="merged",
    statements="claims",
    cited_rows="answers",
    no_citation="na",
    premise="text",
    empty_asks="skipped",
    words="script",
    undefined="na",
    answered_ratio_digits=None,
)

MODES = {"strict": STRICT, "upstream": UPSTREAM}


@dataclass(frozen=True)
class Citing:
    """How one mode cites responses afterwards (trust.posthoc), beside how it reads them.

    Attributes:
        placed: a citation stands at the sentence's `start`, or before its closing `mark`.
        attribution: by a judge, the document to cite is the one with its most certain answer, yes or no (`certainty`), or
            the one that most likely entails the sentence (`entailment`).
        existing: sentences that have citations keep them (`kept`), or theirs are `replaced`.
    """

    placed: Literal["start", "mark"]
    attribution: Literal["certainty", "entailment"]
    existing: Literal["kept", "replaced"]


CITING = {
    "strict": Citing(placed="mark", attribution="entailment", existing="replaced"),
    "upstream": Citing(placed="start", attribution="certainty", existing="kept"),
}


def choices(compat: str) -> Choices:
    """The choices of a mode.

    Raises:
        ConfigError: there is no such mode.
    """
    if compat not in MODES:
        raise ConfigError(f"compat={compat!r} is no mode; choose one of {', '.join(sorted(MODES))}")
    return MODES[compat]
