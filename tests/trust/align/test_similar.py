"""Which documents are most alike, by hand (facts B5 item 5)."""

import pytest

from trust.align.similar import Similarity, terms

RIVER, BOAT, CAKE = "river bank water", "boat on the water", "cake with sugar"


def test_the_most_similar_come_first_and_equals_in_their_order() -> None:
    texts = [RIVER, CAKE, "river and bank", "sugar", BOAT, "sugar"]
    assert Similarity(texts, False).ranked([0], [1, 2, 3, 4, 5]) == [2, 4, 1, 3, 5]
    assert Similarity(texts, False).ranked([1], [5, 4, 3, 2]) == [5, 3, 4, 2]


def test_published_only_the_first_document_is_looked_at() -> None:
    texts = [RIVER, CAKE, "sugar cake", "water river", "sugar icing cake", "bank water river"]
    assert Similarity(texts, True).ranked([0, 1], [2, 3, 4, 5])[:2] == [5, 3]
    assert Similarity(texts, True).ranked([1, 0], [2, 3, 4, 5])[:2] == [2, 4]


def test_all_documents_that_fillers_stand_beside_are_looked_at() -> None:
    texts = [RIVER, CAKE, "river bank water", "river bank cake sugar"]
    assert Similarity(texts, True).ranked([0, 1], [2, 3]) == [2, 3]
    # Cosines 1 and 0 have the mean 0.5, those of the other are about 0.6 each.
    assert Similarity(texts, False).ranked([0, 1], [2, 3]) == [3, 2]
    assert Similarity(texts, False).ranked([1, 0], [2, 3]) == [3, 2]


def test_scripts_without_spaces_are_compared_by_their_characters() -> None:
    texts = ["日本で最も長い川は信濃川である", "琵琶湖は大きい湖", "信濃川は長い川", "東京の空"]
    assert Similarity(texts, False).ranked([0], [1, 2, 3]) == [2, 1, 3]
    assert terms("長い川 River") == ["長", "い", "川", "river", "長い", "い川"]


@pytest.mark.parametrize("published", [True, False])
def test_documents_without_a_word_stay_in_their_order(published: bool) -> None:
    assert Similarity(["!", "?", "."], published).ranked([0], [2, 1]) == [2, 1]
    assert Similarity(["!"], published).ranked([0], []) == []
