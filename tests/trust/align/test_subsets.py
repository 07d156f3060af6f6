"""Patterns and subsets by hand (facts B5 items 3-4)."""

import random
from collections import Counter

import pytest

from trust.align.subsets import by_pattern, check_number, choose, mask, thinned, union
from trust.errors import ConfigError

A, B = 0b10, 0b01


def draw(seed: int = 0) -> random.Random:
    return random.Random(seed)


def test_patterns_are_numbers_in_the_order_of_their_bits() -> None:
    found = [(0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0)]
    assert [mask(each) for each in sorted(found)] == sorted(mask(each) for each in found) == [1, 2, 3, 4]
    assert union([A, B]) == 0b11
    assert union([]) == 0


def test_every_subset_that_fillers_can_fill_up_is_there_once() -> None:
    masks = {3: A, 5: B, 9: A}
    found = by_pattern(masks, size=2, fillers=1)
    assert found == {A: [(3,), (9,), (3, 9)], B: [(5,)], A | B: [(3, 5), (5, 9)]}
    assert by_pattern(masks, size=2, fillers=0) == {A: [(3, 9)], A | B: [(3, 5), (5, 9)]}
    assert by_pattern({0: A}, size=5, fillers=3) == {}, "published: a question with one such document gets nothing"
    assert by_pattern({0: A}, size=5, fillers=4) == {A: [(0,)]}
    whole = by_pattern(dict.fromkeys(range(15), 1), size=5, fillers=9)
    assert {width: sum(len(s) == width for s in whole[1]) for width in range(1, 6)} == {
        1: 15,
        2: 105,
        3: 455,
        4: 1365,
        5: 3003,
    }


def test_every_pattern_occurs_and_no_subset_twice() -> None:
    found = by_pattern({0: A, 1: A, 2: B}, size=3, fillers=2)
    for seed in range(50):
        chosen = choose(found, 6, 3, 100, 0, False, draw(seed))
        assert {one.pattern for one in chosen} == set(found) == {A, B, A | B}
        assert len({one.documents for one in chosen}) == len(chosen) == 6
        assert all(union([A, A, B][index] for index in one.documents) == one.pattern for one in chosen)
    # Seven subsets in all: (0) (1) (0,1) of A, (2) of B, (0,2) (1,2) (0,1,2) of both.
    assert len(choose(found, 10, 3, 100, 0, False, draw())) == 7
    assert choose({}, 10, 3, 100, 0, False, draw()) == []


def test_of_too_many_patterns_the_first_are_taken_only_as_published() -> None:
    found = {pattern: [(pattern,)] for pattern in range(1, 13)}
    first = choose(found, 10, 5, 100, 0, True, draw())
    assert [one.pattern for one in first] == list(range(1, 11))
    drawn = [{one.pattern for one in choose(found, 10, 5, 100, 0, False, draw(seed))} for seed in range(30)]
    assert all(len(patterns) == 10 for patterns in drawn)
    assert set.union(*drawn) == set(found)


def test_a_subset_with_more_documents_is_likelier_in_proportion() -> None:
    found = {1: [(0,), (0, 1, 2)]}
    widths = Counter(len(choose(found, 1, 5, 100, 0, False, draw(seed))[0].documents) for seed in range(2000))
    assert widths[3] / 2000 == pytest.approx(3 / 4, abs=0.04)


def test_fillers_are_kept_back_for_patterns_to_come() -> None:
    # A variant of three with one of A takes two fillers, with two of A one. Of five fillers B needs two and both one.
    found = by_pattern({0: A, 1: A, 2: B}, size=3, fillers=5)
    for seed in range(50):
        chosen = choose(found, 3, 3, 3, 0, False, draw(seed))
        assert {one.pattern for one in chosen} == {A, B, A | B}
        assert sum(3 - len(one.documents) for one in chosen) == 3, "the fewest with which all three occur"
        more = choose(found, 10, 3, 5, 0, False, draw(seed))
        assert sum(3 - len(one.documents) for one in more) <= 5
    for kept_back in (1, 2):
        more = choose(found, 10, 3, 5, kept_back, False, draw())
        assert {one.pattern for one in more} == {A, B, A | B}
        assert sum(3 - len(one.documents) for one in more) <= 5 - kept_back
    scarce = choose(found, 3, 3, 1, 0, False, draw())
    assert {one.pattern for one in scarce} == {A, B, A | B}, "patterns go before fillers used once"


def test_of_many_supporting_documents_no_answer_is_lost() -> None:
    masks = dict.fromkeys(range(30), A) | {30: B, 31: A | B}
    for seed in range(50):
        kept = thinned(masks, 3, True, draw(seed))
        assert len(kept) == 3
        assert set(kept.values()) == {A, B, A | B}
        assert list(kept) == sorted(kept)
    lost = [union(thinned(masks, 3, False, draw(seed)).values()) != A | B for seed in range(50)]
    assert any(lost), "published: drawn, whatever they hold"
    assert thinned(masks, 32, False, draw()) == masks


def test_too_many_subsets_are_refused() -> None:
    check_number(15, 5)
    check_number(15, 20)
    with pytest.raises(ConfigError, match=r"variants\.supporting=50 and variants\.docs=5: 2,369,935 subsets"):
        check_number(50, 5)
