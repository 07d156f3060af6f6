"""Variants of a question: the same question with other documents, so that a model learns to go by what it is shown.

From a question's labelled documents (arXiv 2409.11242; facts B5):

- `supported` variants: subsets of the supporting documents, filled up with irrelevant ones that are like them, in which every
  support pattern occurs (which of the gold answers the documents hold together);
- `unanswerable` variants: disjoint groups of irrelevant documents that are left.

All that is drawn is seeded by the row's id. (Published are two global streams of random numbers over the whole file; the
arithmetic can be kept over shards, the draws cannot.)
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trust.align.similar import Similarity
from trust.align.subsets import Chosen, by_pattern, choose, mask, thinned, union
from trust.align.variants import DROP, RECOMBINING, SUPPORTED, UNANSWERABLE, VariantOptions
from trust.errors import RowError
from trust.metrics.response import checked_labels

COUNTS = (
    "variants_answerable",
    "variants_unanswerable",
    "seeds_answerable_only",  # the balance of classes, seed by seed
    "seeds_unanswerable_only",
    "seeds_both",
    "seeds_without_support",
    "seeds_without_irrelevant",
    "seeds_with_few_docs",  # fewer in all than a variant is to have
    "patterns",
    "patterns_covered",
    "fillers",
    "fillers_reused",  # in a second variant, since a pattern would have been left out otherwise
    "docs_repeated",  # in one question, taken once
)


@dataclass(frozen=True)
class Recombined:
    """What became of a question.

    Attributes:
        variants: rows of the table variants.
        dropped: why there is none: `no_support`, or `no_combination` (as published: too few documents for any).
    """

    variants: list[dict[str, Any]]
    dropped: str | None = None


@dataclass(frozen=True)
class _Variant:
    """Indexes of its documents."""

    kind: str
    documents: tuple[int, ...]


class Recombiner:
    """Makes variants in one mode."""

    def __init__(self, options: VariantOptions, compat: str) -> None:
        self._options = options
        self._ways = RECOMBINING[compat]
        self._no_support = options.no_support or self._ways.no_support

    def recombine(self, row: Mapping[str, Any], counts: Counter[str]) -> Recombined:
        """The variants of a question.

        Args:
            row: of the table samples, each document with `answers_found`.
            counts: of `COUNTS`, to which the row's are added.

        Raises:
            RowError: `no_docs`, `no_answers`, `not_labelled`, or labels that do not fit.
        """
        docs, keys, masks = _read(row, counts)
        support = {index: found for index, found in enumerate(masks) if found}
        if not support and self._no_support == DROP:
            return Recombined([], "no_support")
        rank = [index for index in sorted(range(len(docs)), key=lambda i: _below(docs[i])) if not masks[index]]
        irrelevant = rank[: self._options.irrelevant]
        draw = random.Random(_seed(self._options.seed, row["sample_id"]))
        support = thinned(support, self._options.supporting, self._ways.supporting == "covering", draw)
        size = self._size(len(support) + len(irrelevant), counts)
        counts["seeds_without_support"] += not support
        counts["seeds_without_irrelevant"] += not rank
        made, left = self._supported(docs, support, irrelevant, len(rank), size, draw, counts)
        made += self._unanswerable(left, self._options.docs if support else size, draw)
        balance = Counter(variant.kind for variant in made)
        counts["variants_answerable"] += balance[SUPPORTED]
        counts["variants_unanswerable"] += balance[UNANSWERABLE]
        if not made:
            return Recombined([], "no_combination")
        counts["seeds_both" if len(balance) > 1 else _ONLY[made[0].kind]] += 1
        return Recombined([_row(row, variant, docs, keys, masks, draw) for variant in made])

    def _size(self, there: int, counts: Counter[str]) -> int:
        """Documents of a variant."""
        wanted = self._options.docs
        counts["seeds_with_few_docs"] += there < wanted
        return min(wanted, there) if self._ways.size == "smaller" else wanted

    def _supported(
        self,
        docs: Sequence[Mapping[str, Any]],
        support: Mapping[int, int],
        irrelevant: Sequence[int],
        all_irrelevant: int,
        size: int,
        draw: random.Random,
        counts: Counter[str],
    ) -> tuple[list[_Variant], list[int]]:
        """The answerable variants, and the irrelevant documents that are in none of them."""
        if not support:
            return [], list(irrelevant)
        options = self._options
        slots = len(irrelevant)
        if self._ways.slots == "share":
            slots = min(slots, options.answerable, all_irrelevant // options.answerable)
        found = by_pattern(support, size, slots)
        kept_back = options.docs if options.unanswerable and self._ways.kept_back == "variant" else 0
        first = self._ways.patterns == "first"
        chosen = choose(found, options.answerable, size, len(irrelevant), kept_back, first, draw)
        counts["patterns"] += len(found)
        counts["patterns_covered"] += len({one.pattern for one in chosen})
        draw.shuffle(chosen)
        return self._filled(chosen, docs, irrelevant, kept_back, size, counts)

    def _filled(
        self,
        chosen: Sequence[Chosen],
        docs: Sequence[Mapping[str, Any]],
        irrelevant: Sequence[int],
        kept_back: int,
        size: int,
        counts: Counter[str],
    ) -> tuple[list[_Variant], list[int]]:
        """Subsets with the irrelevant documents most like them, none of which serves twice where there are enough for all; else
        `kept_back` of them are touched last."""
        wanted = sum(size - len(one.documents) for one in chosen)
        spared = kept_back if wanted > len(irrelevant) else 0
        like = Similarity([_text(doc) for doc in docs], published=self._ways.similar == "first")
        made, left, used = [], list(irrelevant), list[int]()
        for one in chosen:
            needed = size - len(one.documents)
            if not needed:
                made.append(_Variant(SUPPORTED, one.documents))
                continue
            ranked = like.ranked(one.documents, left)
            free = max(0, min(needed, len(left) - spared))
            again = like.ranked(one.documents, used)[: needed - free]
            fresh = ranked[: needed - len(again)]
            left = [index for index in left if index not in set(fresh)]
            used += fresh
            counts["fillers"] += needed
            counts["fillers_reused"] += len(again)
            made.append(_Variant(SUPPORTED, (*one.documents, *fresh, *again)))
        return made, left

    def _unanswerable(self, left: Sequence[int], size: int, draw: random.Random) -> list[_Variant]:
        """Disjoint groups of irrelevant documents."""
        order = list(left)
        draw.shuffle(order)
        groups = min(self._options.unanswerable, len(order) // size if size else 0)
        return [_Variant(UNANSWERABLE, tuple(order[size * n : size * (n + 1)])) for n in range(groups)]


_ONLY = {SUPPORTED: "seeds_answerable_only", UNANSWERABLE: "seeds_unanswerable_only"}


def doc_key(doc: Mapping[str, Any]) -> str:
    """What tells a document from others: its id, else 16 hex digits of a sha256 over title and text."""
    return doc.get("doc_id") or _hash([doc.get("title") or "", doc.get("text") or ""])


def variant_id(parent: str, keys: Sequence[str]) -> str:
    """The id of a variant: its question's, and a hash over the keys of its documents in their order."""
    return f"{parent}#{_hash(list(keys))}"


def _read(row: Mapping[str, Any], counts: Counter[str]) -> tuple[list[dict[str, Any]], list[str], list[int]]:
    """The question's documents, each once, their keys and their patterns."""
    docs: list[dict[str, Any]] = row.get("docs") or []
    answers = row.get("answers") or []
    if not docs:
        raise RowError("no_docs", "the row has no documents to recombine", "docs")
    if not answers:
        raise RowError("no_answers", "the row has no gold answers, so no document can support one", "answers")
    labels = checked_labels(docs, len(answers))
    if labels is None:
        raise RowError("not_labelled", "the documents have no answers_found: run jobs.label first", "docs")
    places: dict[str, int] = {}
    for place, doc in enumerate(docs):
        places.setdefault(doc_key(doc), place)
    counts["docs_repeated"] += len(docs) - len(places)
    once = list(places.values())
    return [docs[place] for place in once], list(places), [mask(labels[place]) for place in once]


def _row(
    row: Mapping[str, Any],
    variant: _Variant,
    docs: Sequence[dict[str, Any]],
    keys: Sequence[str],
    masks: Sequence[int],
    draw: random.Random,
) -> dict[str, Any]:
    """The row of the table variants, its documents in an order drawn at random."""
    order = list(variant.documents)
    draw.shuffle(order)
    answers = len(row["answers"])
    pattern = union(masks[index] for index in order)
    return dict(row) | {
        "sample_id": variant_id(row["sample_id"], [keys[index] for index in order]),
        "parent_id": row["sample_id"],
        "docs": [docs[index] for index in order],
        "kind": variant.kind,
        "pattern": [pattern >> (answers - 1 - place) & 1 for place in range(answers)],
    }


def _below(doc: Mapping[str, Any]) -> float:
    """Sorts by retrieval score, the highest first; documents without one behind, in their order."""
    score = doc.get("score")
    return float("inf") if score is None else -score


def _text(doc: Mapping[str, Any]) -> str:
    return f"{doc.get('title') or ''} {doc.get('text') or ''}"


def _seed(seed: int, sample_id: str) -> int:
    return int(_hash([seed, sample_id]), 16)


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:16]
