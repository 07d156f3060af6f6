"""Repeats, ratings and draws on hand-made vectors, texts and strata."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from trust.align.curate import (
    CURATING,
    RatingOptions,
    allocate,
    draw,
    first_like,
    near_repeats,
    question_key,
    rate,
    read_rating,
    sampled,
)
from trust.ask import Completion
from trust.errors import RowError


def angles(*degrees: float) -> np.ndarray:
    """Vectors of length 1 at these angles."""
    turns = np.radians(degrees)
    return np.stack([np.cos(turns), np.sin(turns)], axis=1).astype(np.float32)


TEN_DEGREES = float(np.cos(np.radians(10.5)))


def test_questions_that_differ_in_form_alone_share_a_key() -> None:
    key = question_key("What is the capital of Australia?", "en")
    assert question_key("what is  capital of AUSTRALIA", "en") == key
    assert question_key("What is the capital of Austria?", "en") != key
    assert question_key("???", "en") != question_key("!!!", "en"), "where no word is left, the text counts"


def test_a_near_repeat_is_one_of_what_is_kept() -> None:
    # A chain: each is near its neighbours only. The second repeats the first, the third repeats nothing that is kept.
    assert near_repeats(angles(0, 10, 20, 30, 90), TEN_DEGREES).tolist() == [-1, 0, -1, 2, -1]
    assert near_repeats(angles(), 0.5).tolist() == []


def test_near_repeats_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = angles(*np.random.default_rng(0).uniform(0, 3600, 200))
    whole = near_repeats(vectors, 0.999).tolist()
    monkeypatch.setattr("trust.align.curate._BLOCK", 7)
    assert near_repeats(vectors, 0.999).tolist() == whole
    assert 0 < whole.count(-1) < 200
    for row, kept in enumerate(whole):
        alike = [other for other in range(row) if whole[other] < 0 and vectors[other] @ vectors[row] >= 0.999]
        assert kept == (alike[0] if alike else -1)


def test_the_first_that_is_near() -> None:
    assert first_like(angles(0, 45, 90), angles(91, 2, 1), TEN_DEGREES).tolist() == [1, -1, 0]
    assert first_like(angles(0), angles()[:0], 0.0).tolist() == [-1]


@pytest.mark.parametrize(
    ("text", "demand"),
    [
        ('{"topic": "Rivers", "demand": 5}', 5),
        ('Sure:\n```json\n{"topic": "Rivers", "demand": "seven"}\n```', 7),
        ('{"topic": "Rivers", "demand": 5.0}', 5),
        ("Topic: Rivers\nDemanding value: 4/7", 4),
        ("**Topic:** Rivers\n**Demand:** Six.", 6),
        ("topic = Rivers\ndemand = 3 out of 7", 3),
    ],
)
def test_a_rating_as_models_word_it(text: str, demand: int) -> None:
    rating = read_rating(text, "whole")
    assert (rating.topic, rating.demand) == ("Rivers", demand)


@pytest.mark.parametrize(
    "text",
    [
        '{"topic": "Rivers", "demand": "eight"}',
        '{"topic": "Rivers", "demand": 7.5}',
        '{"topic": "Rivers", "demand": 0}',
        '{"topic": "Rivers", "demand": true}',
        '{"topic": "Rivers", "demand": null}',
        '{"topic": "Rivers"}',
        '{"topic": "", "demand": 5}',
        '{"demand": 5}',
        "[5]",
        "Topic: Rivers\nDemand: 7.5",
        "Topic: Rivers\nDemand: 45",
        "Topic: Rivers\nDemand: rather high",
        "",
    ],
)
def test_what_is_no_rating_is_not_made_one(text: str) -> None:
    with pytest.raises(RowError) as told:
        read_rating(text, "whole")
    assert told.value.reason == "rating_unread"


def test_the_published_way_to_read_a_rating() -> None:
    assert read_rating("Topic: Rivers\nDemanding value: 7.5", "first_digit").demand == 7
    assert read_rating('{"topic": "Rivers", "demand": 4}', "first_digit").topic == "Rivers"
    with pytest.raises(RowError, match="no digit"):
        read_rating("Topic: Rivers\nDemanding value: eight", "first_digit")


class Rater:
    """Answers `complete` with one text after the other."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = list(texts), list[dict[str, Any]]()

    async def complete(self, messages: Any, sampling: Any, schema: Any = None, *, role: str = "") -> Completion:
        self.asked.append({"prompt": messages[0]["content"], "sampling": sampling, "schema": schema})
        return Completion(self.texts.pop(0), "stop", 1, 1)


def rated(*texts: str, **options: Any) -> tuple[Any, Rater]:
    ask: Any = Rater(*texts)
    shown = ["Which is  the\nlongest river?", "x" * 500]
    return asyncio.run(rate(shown, RatingOptions(**options), CURATING["strict"], ask)), ask


def test_a_rating_is_asked_for_again_with_another_seed() -> None:
    rating, ask = rated('{"topic": "Rivers", "demand": "eight"}', '{"topic": "Rivers", "demand": 6}', seed=5)
    assert (rating.topic, rating.demand) == ("Rivers", 6)
    assert [one["sampling"]["seed"] for one in ask.asked] == [5, 6]
    prompt = ask.asked[0]["prompt"]
    assert "- Which is the longest river?\n- " + "x" * 420 + "\n" in prompt
    assert json.loads(prompt[prompt.rindex("{") :]) == {"topic": "…", "demand": 1}
    assert ask.asked[0]["schema"]["properties"]["demand"]["enum"] == [1, 2, 3, 4, 5, 6, 7]


def test_a_rating_that_is_never_read_fails() -> None:
    with pytest.raises(RowError, match="none of 2 answers") as told:
        rated("eight", "7.5", tries=2, json_schema=False)
    assert told.value.reason == "rating_unread"


def test_which_questions_are_shown() -> None:
    ids = [f"q{number}" for number in range(100)]
    shown = sampled(ids, RatingOptions(), "different")
    assert len(set(shown)) == 30
    assert shown == sampled(reversed(ids), RatingOptions(), "different")
    assert shown != sampled(ids, RatingOptions(seed=1), "different")
    assert sampled(["b", "a"], RatingOptions(), "different") in (["a", "b"], ["b", "a"])
    again = sampled(["b", "a"], RatingOptions(), "replacement")
    assert (len(again), set(again)) == (30, {"a", "b"})


def test_strata_get_their_share() -> None:
    assert allocate({"4": 50, "5": 30, "6": 20}, 10) == {"4": 5, "5": 3, "6": 2}
    # 10 of 7, 7 and 7: 3.33 each, the one that is left to the first.
    assert allocate({"a": 7, "b": 7, "c": 7}, 10) == {"a": 4, "b": 3, "c": 3}
    assert allocate({"a": 1, "b": 2}, 10) == {"a": 1, "b": 2}
    assert allocate({}, 3) == {}


def test_a_draw_does_not_hang_on_the_order_of_rows() -> None:
    strata = {"4": [f"a{number}" for number in range(20)], "5": [f"b{number}" for number in range(10)]}
    drawn = draw(strata, 9, seed=0)
    assert sorted(name[0] for name in drawn) == list("aaaaaabbb")
    assert drawn == draw({name: ids[::-1] for name, ids in reversed(strata.items())}, 9, seed=0)
    assert drawn != draw(strata, 9, seed=1)
    assert drawn < draw(strata, 30, seed=0) == draw(strata, None, seed=0)
