"""What variants a question gets: numbers, and the choices in which the published way and the right one differ."""

from dataclasses import dataclass
from typing import Literal

from trust.align.subsets import check_number
from trust.config import one_of
from trust.errors import ConfigError

SUPPORTED, UNANSWERABLE = "supported", "unanswerable"  # kinds of variants
DROP = "drop"


@dataclass(frozen=True)
class Recombining:
    """The named choices in which the published recombination and the right one differ.

    Attributes:
        supporting: of too many supporting documents some are `drawn`, or drawn so that no answer is lost (`covering`).
        slots: a variant may hold as many irrelevant documents as it takes (`needed`), or no more than a tenth of them, say
            (`share`: their number divided by that of the variants wanted), so that a question with one supporting document
            and few others gets no answerable variant.
        size: a question with fewer documents than a variant is to have gets `smaller` variants, or `none`.
        patterns: of too many patterns the lexicographically `first`, or `drawn` ones.
        kept_back: as many irrelevant documents as an unanswerable variant takes (`variant`) are kept from variants beyond one of
            each pattern, and from fillers where some have to serve twice anyway; or `nothing` is, so that a question with
            few documents may have answerable variants alone.
        similar: fillers are like the `first` supporting document of the variant by weights of the fillers that are left, or
            like `all` of them by weights of all documents.
        no_support: a question that no document supports is dropped (`drop`), or has `unanswerable` variants.
    """

    supporting: Literal["drawn", "covering"]
    slots: Literal["needed", "share"]
    size: Literal["smaller", "none"]
    patterns: Literal["first", "drawn"]
    kept_back: Literal["variant", "nothing"]
    similar: Literal["first", "all"]
    no_support: Literal["drop", "unanswerable"]


RECOMBINING = {
    "strict": Recombining(
        supporting="covering",
        slots="needed",
        size="smaller",
        patterns="drawn",
        kept_back="variant",
        similar="all",
        no_support="unanswerable",
    ),
    "upstream": Recombining(
        supporting="drawn",
        slots="share",
        size="none",
        patterns="first",
        kept_back="nothing",
        similar="first",
        no_support="drop",
    ),
}


@dataclass
class VariantOptions:
    """What variants a question gets; the published numbers.

    Attributes:
        docs: documents of a variant.
        answerable, unanswerable: variants of a question at most, of each kind.
        supporting: supporting documents that are looked at, at most.
        irrelevant: irrelevant documents that are looked at, at most: those with the highest retrieval score.
        no_support: what becomes of a question that no document supports: `unanswerable` variants, or `drop`; null is the
            mode's way: unanswerable in strict, drop in upstream.
        seed: of all draws, with the row's id.
    """

    docs: int = 5
    answerable: int = 10
    unanswerable: int = 10
    supporting: int = 15
    irrelevant: int = 50
    no_support: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for key, least in (("docs", 1), ("answerable", 1), ("supporting", 1), ("unanswerable", 0), ("irrelevant", 0)):
            if (value := getattr(self, key)) < least:
                raise ConfigError(f"variants.{key}={value}: must be at least {least}")
        if self.no_support is not None:
            one_of("variants.no_support", self.no_support, (UNANSWERABLE, DROP))
        check_number(self.supporting, self.docs)
