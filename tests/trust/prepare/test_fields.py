import json

import pytest

from trust.errors import RowError
from trust.prepare import fields


def test_take_follows_dots_and_leaves_the_rest() -> None:
    row = {"input": {"query": "q", "lang": "en"}, "a.b": 1, "only": {"x": {"y": 2}}}
    assert fields.take(row, "input.query") == ("q", {"input": {"lang": "en"}, "a.b": 1, "only": {"x": {"y": 2}}})
    assert fields.take(row, "a.b") == (1, {"input": row["input"], "only": row["only"]})
    assert fields.take(row, "only.x.y") == (2, {"input": row["input"], "a.b": 1})
    assert fields.take(row, "input.none") == (None, row)
    assert fields.has({"a": None}, "a")
    assert not fields.has({"a": None}, "a.b")


@pytest.mark.parametrize(("value", "number"), [(1, 1.0), ("82.5", 82.5), (None, None), (0.0, 0.0)])
def test_number(value: object, number: float | None) -> None:
    assert fields.number(value, "x") == number


@pytest.mark.parametrize(
    ("value", "reason"),
    [(True, "invalid_type"), ("high", "invalid_type"), ([1], "invalid_type"), (10**400, "invalid_type"),
     (float("nan"), "not_finite"), ("inf", "not_finite")],
)  # fmt: skip
def test_what_is_no_number(value: object, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        fields.number(value, "docs[0].score")
    assert (caught.value.reason, caught.value.field) == (reason, "docs[0].score")


def test_count() -> None:
    assert fields.count(3.0, "draw") == 3
    assert fields.count(None, "draw") is None
    for value, reason in [(-1, "out_of_range"), (0.5, "out_of_range"), (2**31, "out_of_range"), ("1", "invalid_type")]:
        with pytest.raises(RowError) as caught:
            fields.count(value, "draw")
        assert caught.value.reason == reason


def test_text_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(RowError, match="surrogate") as caught:
        fields.text(json.loads('"ab\\ud800"'), "question")
    assert caught.value.reason == "invalid_unicode"
    caught.value.detail.encode()


def test_as_map_keeps_texts_and_writes_all_else_as_json() -> None:
    value = {"a": "x", "b": 1, "c": True, "d": None, "e": {"z": 1, "y": ["é"]}}
    assert fields.as_map(value, "meta") == {"a": "x", "b": "1", "c": "true", "e": '{"y": ["é"], "z": 1}'}
