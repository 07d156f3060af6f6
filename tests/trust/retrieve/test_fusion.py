"""Fusion by hand-written numbers."""

import pytest

from trust.retrieve.fusion import average, ranked, reciprocal_rank


def test_the_average_of_three_ways_with_what_was_not_found_at_nothing() -> None:
    bm25 = {"a": 12.0, "b": 7.0, "c": 2.0}
    dense = {"b": 0.9, "c": 0.5}
    late = {"a": 30.0, "d": 20.0, "b": 25.0}
    found = average([bm25, dense, late])
    # a: (1 + 0 + 1) / 3; b: (0.5 + 1 + 0.5) / 3; c: all lowest; d: lowest of its only one.
    assert found == pytest.approx({"a": 2 / 3, "b": 2 / 3, "c": 0, "d": 0})
    assert [doc for doc, _ in ranked(found, 3)] == ["a", "b", "c"], "ties by document"


def test_equal_scores_and_no_document_at_all() -> None:
    assert average([{"a": 3.0}, {}]) == {"a": 0.5}
    assert average([{"a": 3.0, "b": 3.0}]) == {"a": 1, "b": 1}
    assert average([{}, {}]) == {}


def test_reciprocal_ranks() -> None:
    found = reciprocal_rank([{"a": 9.0, "b": 8.0}, {"b": 0.2, "c": 0.1}], 60)
    assert found == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})
    assert [doc for doc, _ in ranked(found, 2)] == ["b", "a"]


def test_equal_scores_are_ranked_by_document() -> None:
    assert reciprocal_rank([{"b": 1.0, "a": 1.0}], 0) == {"a": 1, "b": 0.5}
