"""Covering sets and where citations go, on cases made by hand; what upstream does is in facts.md B7 5-6."""

from collections.abc import Mapping

import pytest

from trust.align.minimal_citations import WAYS, append, covering, insert
from trust.errors import RowError

STRICT, UPSTREAM = WAYS["strict"], WAYS["upstream"]
FLAT = [1.0] * 6


def cover(
    supporters: Mapping[int, set[int]], cap: int, mode: str = "strict", scores: list[float | None] | None = None
) -> tuple[int, ...]:
    return covering(set(supporters), supporters, scores or FLAT, cap, WAYS[mode])


def test_one_document_that_supports_all_is_cited_alone() -> None:
    assert cover({1: {0, 2}, 2: {1, 2}, 3: {2}}, 2) == (2,)


def test_of_equal_sets_the_one_with_the_highest_scores_then_the_first() -> None:
    supporters = {1: {0, 1}, 2: {2, 3}}
    assert cover(supporters, 2) == (0, 2)
    assert cover(supporters, 2, scores=[1.0, 2.0, 5.0, 5.0]) == (1, 2)
    assert cover({1: {0, 1}}, 1, scores=[None, -3.0]) == (1,), "a document without a score comes last"
    assert cover({1: {0, 1}}, 1, scores=[float("nan"), -3.0]) == (1,)
    assert cover({1: {0, 1}}, 1, scores=[None, None]) == (0,)


def test_a_smaller_set_goes_before_a_better_scored_one() -> None:
    assert cover({1: {0, 2}, 2: {1, 2}}, 2, scores=[9.0, 9.0, 0.1]) == (2,)


def test_the_greedy_choice_is_not_always_the_smallest() -> None:
    # Document 0 supports most; with it two more would be needed.
    supporters = {1: {0, 1}, 2: {0, 1}, 3: {0, 2}, 4: {0, 2}, 5: {1}, 6: {2}}
    assert cover(supporters, 2) == (1, 2)


# pitfalls.md B68
THREE = {1: {0}, 2: {1}, 3: {2}}
SAME = {1: {0, 1, 2}}


def test_three_facts_in_three_documents_are_refused_where_two_may_be_cited() -> None:
    with pytest.raises(RowError, match="no 2 documents support all of the 3 labels") as error:
        cover(THREE, 2)
    assert error.value.reason == "too_many_citations"
    assert cover(THREE, 3) == (0, 1, 2)
    assert cover(THREE, 2, "upstream") == (0, 1, 2), "the cap is tested before a whole set is added"


def test_three_documents_with_the_same_fact_give_one_citation() -> None:
    assert cover(SAME, 2) == (0,)
    assert cover(SAME, 2, "upstream") == (0, 1), "equal sets are added until the cap is reached"
    assert cover(SAME, 1, "upstream") == (0,)


def test_upstream_ranks_by_labels_then_by_score() -> None:
    supporters = {1: {0, 1, 2}, 2: {1, 2}}
    assert cover(supporters, 1, "upstream") == (1,)
    assert cover(supporters, 1, "upstream", [9.0, 1.0, 2.0]) == (2,)
    assert cover({1: {0, 1}, 2: {2, 3}}, 2, "upstream", [1.0, 2.0, 3.0, 4.0]) == (1, 3)
    # With room for three, the second best set of two, documents 3 and 0, is added whole.
    assert cover({1: {0, 1}, 2: {2, 3}}, 3, "upstream", [1.0, 2.0, 3.0, 4.0]) == (0, 1, 3)


@pytest.mark.parametrize(
    ("sentence", "strict", "upstream"),
    [
        ("Paris is it.", "Paris is it [1].", "Paris is it [1]."),
        # pitfalls.md B69
        ("The U.S. Army won", "The U.S. Army won [1]", "The U.S [1]."),
        (
            'Lived in Paris (until 1990). "Yes" he said',
            'Lived in Paris (until 1990). "Yes" he said [1]',
            "Lived in Paris (until 1990 [1].",
        ),
        ("Is it Paris?", "Is it Paris [1]?", "Is it Paris [1]"),
        ("It is!", "It is [1]!", "It is [1]!"),
        ("Who knows …?!", "Who knows [1] …?!", "Who knows [1]!"),
        ('He said "yes."', 'He said "yes." [1]', 'He said "yes [1].'),
        ("它是巴黎。", "它是巴黎[1]。", "它是巴黎 [1]"),
        ("यह दिल्ली है।", "यह दिल्ली है [1]।", "यह दिल्ली है [1]"),
        ("ของไทย", "ของไทย[1]", "ของไทย [1]"),
    ],
)
def test_where_citations_go(sentence: str, strict: str, upstream: str) -> None:
    assert insert(sentence, [0], STRICT) == strict
    assert insert(sentence, [0], UPSTREAM) == upstream


def test_documents_are_cited_by_number_from_one() -> None:
    assert insert("Both.", (0, 3), STRICT) == "Both [1][4]."
    assert append("U.S.", [1]) == "U.S. [2]"
    assert append("北京", [1]) == "北京[2]"
