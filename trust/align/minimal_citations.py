"""Which documents a sentence of a positive cites for the labels that stand in it, and where the citations go.

The strict way: the smallest set of documents that supports all labels, and never more than the cap. The published one
(facts.md B7 5-7) is one of the named choices below; pitfalls.md B68 and B69 say what is wrong with it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import regex

from trust.errors import RowError
from trust.text.citations import closing
from trust.text.normalize import UNSPACED

_UNSPACED = regex.compile(UNSPACED)
_EDGES = regex.compile(r"^[\s\p{P}]+|[\s\p{P}]+$")
_PUBLISHED_MARKS = "!.;)"


@dataclass(frozen=True)
class Ways:
    """How one mode turns labels into citations.

    Attributes:
        sets: one smallest `minimal` set, refused where it exceeds the cap; or `whole` sets of the smallest size, one after
            the other, until the cap is reached or exceeded.
        placed: citations stand before the sentence's `closing` marks, or before the `last` of `! . ; )`, behind which the
            rest is lost.
        tags: a number in a tag counts the labels as `shown` to the model, or (task em) all `supported` gold answers,
            repeats too.
        cm_score: the column that decides between equal sets in task cm.
        lists: an answer list is written by the `language`'s marks, from aliases that a list can hold, or `as_is`: first
            aliases, ", " and ".".
    """

    sets: Literal["minimal", "whole"]
    placed: Literal["closing", "last"]
    tags: Literal["shown", "supported"]
    cm_score: Literal["score", "rec_score"]
    lists: Literal["language", "as_is"]


WAYS = {
    "strict": Ways(sets="minimal", placed="closing", tags="shown", cm_score="score", lists="language"),
    "upstream": Ways(sets="whole", placed="last", tags="supported", cm_score="rec_score", lists="as_is"),
}


def covering(
    wanted: Collection[int],
    supporters: Mapping[int, Collection[int]],
    scores: Sequence[float | None],
    cap: int,
    ways: Ways,
) -> tuple[int, ...]:
    """The documents to cite, as indexes in ascending order.

    Args:
        wanted: labels that they must support together.
        supporters: label -> indexes of the documents that support it; none of `wanted` is without any.
        scores: of each document; of equal sets the one with the highest sum is taken, then the one that stands first. A
            document without a score comes after those that have one.
        cap: the most documents.

    Raises:
        RowError: `too_many_citations`: more than `cap` are needed (`sets=minimal` alone).
    """
    supports = {
        doc: frozenset(label for label in wanted if doc in supporters[label])
        for doc in sorted({doc for label in wanted for doc in supporters[label]})
    }
    worth = {doc: _worth(scores[doc]) for doc in supports}
    if ways.sets == "whole":
        return _whole_sets(frozenset(wanted), supports, worth, cap)
    for size in range(1, min(cap, len(supports)) + 1):
        if found := [docs for docs in combinations(supports, size) if _covers(docs, supports, wanted)]:
            return min(found, key=lambda docs: (-math.fsum(worth[doc] for doc in docs), docs))
    raise RowError(
        "too_many_citations",
        f"no {cap} documents support all of the {len(wanted)} labels of one sentence: it would need more citations",
    )


def insert(text: str, docs: Sequence[int], ways: Ways) -> str:
    """A sentence with its citations; nothing else of it changes (`placed=closing`).

    Args:
        docs: indexes of documents; they are cited by number, from 1.
    """
    if ways.placed == "closing":
        at = closing(text)
        return append(text[:at], docs) + text[at:]
    at = max(text.rfind(mark) for mark in _PUBLISHED_MARKS)
    body, mark = (text, "") if at < 0 else (text[:at], text[at])
    return f"{_EDGES.sub('', body)} {_numbers(docs)}{mark}"


def append(text: str, docs: Sequence[int]) -> str:
    """The text with citations behind it, without a blank in scripts that write none."""
    blank = "" if text and _UNSPACED.match(text[-1]) else " "
    return f"{text}{blank}{_numbers(docs)}"


def _whole_sets(
    wanted: frozenset[int], supports: Mapping[int, frozenset[int]], worth: Mapping[int, float], cap: int
) -> tuple[int, ...]:
    ranked = sorted(supports, key=lambda doc: (-len(supports[doc]), -worth[doc], doc))
    cited: list[int] = []
    for size in range(1, len(ranked) + 1):
        for docs in combinations(ranked, size):
            if len(cited) >= cap:
                break
            if _covers(docs, supports, wanted):
                cited += [doc for doc in docs if doc not in cited]
        if cited:
            break
    return tuple(sorted(cited))


def _numbers(docs: Sequence[int]) -> str:
    return "".join(f"[{doc + 1}]" for doc in docs)


def _covers(docs: Sequence[int], supports: Mapping[int, frozenset[int]], wanted: Collection[int]) -> bool:
    return len(frozenset().union(*(supports[doc] for doc in docs))) == len(wanted)


def _worth(score: float | None) -> float:
    return score if score is not None and math.isfinite(score) else -math.inf
