"""Oracle sets and recall by hand (facts B4)."""

import itertools
import random

import pytest

from trust.align.oracle import oracle_set, rec_score


def covered(labels: list[list[int]], chosen: list[int]) -> int:
    return sum(any(labels[index][answer] for index in chosen) for answer in range(len(labels[0])))


@pytest.mark.parametrize(
    ("found", "task", "score"),
    [
        ([1, 0, 1, 0], "em", 50),
        ([1, 0, 0], "cm", 100 / 3),
        ([0, 0], "em", 0),
        ([1, 1, 1, 0, 0, 0, 0, 0], "em5", 60),  # of five that are asked for
        ([1, 1, 1, 1, 1, 1, 0, 0], "em5", 100),
        ([1, 0, 0], "em5", 100 / 3),
    ],
)
def test_recall_is_the_share_of_answers_and_of_lists_five_are_enough(found: list[int], task: str, score: float) -> None:
    assert rec_score(found, task) == pytest.approx(score)


def test_what_adds_nothing_makes_room_for_what_does() -> None:
    labels = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    for way in ("one_pass", "until_no_gain"):
        # 0 and 1 are the start. 0 is in 1 as well: 3 comes in for it. Then 1 is needed.
        assert oracle_set(labels, "em", 2, way) == [3, 1]
        assert oracle_set(labels, "em", 3, way) == [3, 1, 4]


def test_equal_documents_stay_in_their_order() -> None:
    assert oracle_set([[0], [1], [0], [1], [1]], "em", 4, "until_no_gain") == [1, 3, 4, 0]
    assert oracle_set([[0, 0]] * 7, "em", 5, "one_pass") == [0, 1, 2, 3, 4]
    assert oracle_set([[1], [0]], "em", 5, "until_no_gain") == [0, 1], "there are no more"


def test_of_a_list_five_answers_are_enough() -> None:
    many = [[int(index == place) for index in range(8)] for place in range(8)]
    many[0] = [1, 1, 1, 1, 1, 0, 0, 0]
    assert oracle_set(many, "em5", 2, "until_no_gain") == [0, 1]
    assert oracle_set(many, "em", 2, "until_no_gain") == [0, 5]


def test_one_pass_misses_what_comes_to_be_useful_again() -> None:
    labels = [[0, 0, 0, 0, 0], [1, 0, 0, 0, 1], [1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]
    # Document 2 holds most, so it is the first to be swapped out, and published it never returns.
    assert oracle_set(labels, "em", 2, "one_pass") == [3, 1]
    assert oracle_set(labels, "em", 2, "until_no_gain") == [3, 2]
    assert (covered(labels, [3, 1]), covered(labels, [3, 2])) == (4, 5)


def test_as_many_documents_as_answers_miss_none() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        labels = [[int(draw.random() < 0.15) for _ in range(5)] for _ in range(30)]
        chosen = oracle_set(labels, "em", 5, "until_no_gain")
        assert len(set(chosen)) == 5
        assert covered(labels, chosen) == covered(labels, list(range(30)))


def test_never_below_one_pass_and_seldom_below_the_best() -> None:
    short = 0
    for seed in range(100):
        draw = random.Random(seed)
        labels = [[int(draw.random() < 0.3) for _ in range(7)] for _ in range(9)]
        found = covered(labels, oracle_set(labels, "em", 3, "until_no_gain"))
        assert found >= covered(labels, oracle_set(labels, "em", 3, "one_pass"))
        short += found < max(covered(labels, list(each)) for each in itertools.combinations(range(9), 3))
    assert short <= 10
