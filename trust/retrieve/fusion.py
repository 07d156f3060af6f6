"""Joining what several retrievers found of a question."""

from collections.abc import Mapping, Sequence

Scores = Mapping[str, float]  # document -> score


def ranked(scores: Scores, k: int) -> list[tuple[str, float]]:
    """The `k` best documents with their scores: highest first, ties by document."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


def average(found: Sequence[Scores]) -> dict[str, float]:
    """Mean of the scores, each retriever's brought to 0 to 1 over what it found (facts D: NoMIRACL's hybrid).

    A document that a retriever has not found has its lowest score, 0. Of a retriever all of whose scores are equal every
    document it found has 1.
    """
    joined: dict[str, float] = {}
    for scores in found:
        low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        for doc, score in scores.items():
            joined[doc] = joined.get(doc, 0.0) + ((score - low) / (high - low) if high > low else 1.0) / len(found)
    return joined


def reciprocal_rank(found: Sequence[Scores], constant: float) -> dict[str, float]:
    """Sum of 1 / (constant + rank), ranks from 1 (Cormack, Clarke and Büttcher, SIGIR 2009; their constant is 60)."""
    joined: dict[str, float] = {}
    for scores in found:
        for rank, (doc, _) in enumerate(ranked(scores, len(scores)), 1):
            joined[doc] = joined.get(doc, 0.0) + 1 / (constant + rank)
    return joined
