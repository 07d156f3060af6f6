import pytest

from trust.errors import RowError
from trust.prepare.answers import drop_empty, long_answers, read_answers


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ([["a1", "a2"], ["b"]], [["a1", "a2"], ["b"]]),
        (["A whole claim.", "Another one."], [["A whole claim."], ["Another one."]]),
        (["a", ["b", "c"]], [["a"], ["b", "c"]]),
        ("Paris", [["Paris"]]),
        ([], []),
    ],
)
def test_forms_of_answers(value: object, answers: list[list[str]]) -> None:
    assert read_answers(value, {}) == (answers, "answers")


def test_alce_forms() -> None:
    pairs = [{"question": "Who?", "short_answers": ["Ann", "Anna"], "context": "c"}, {"short_answers": ["Bob"]}]
    assert read_answers(None, {"qa_pairs": pairs, "claims": ["x"]}) == ([["Ann", "Anna"], ["Bob"]], "qa_pairs")
    assert read_answers(None, {"claims": ["One.", "Two."]}) == ([["One."], ["Two."]], "claims")
    listed = [{"answer_text": "Oslo", "aliases": ["Oslo", "Christiania"], "proof": []}, ["Bergen"]]
    assert read_answers(None, {"answer_list": listed}) == ([["Oslo", "Christiania"], ["Bergen"]], "answer_list")
    assert read_answers(None, {}) == ([], None)


@pytest.mark.parametrize(
    ("value", "row", "field"),
    [
        ([["a", 3]], {}, "answers[0][1]"),
        ([None], {}, "answers[0]"),
        ({"a": 1}, {}, "answers"),
        (None, {"qa_pairs": [{"question": "q"}]}, "qa_pairs[0]"),
        (None, {"qa_pairs": {}}, "qa_pairs"),
        (None, {"claims": ["x", 1]}, "claims[1]"),
        (None, {"answer_list": [{"answer_text": 1}]}, "answer_list[0].answer_text"),
    ],
)
def test_faults_are_named(value: object, row: dict, field: str) -> None:
    with pytest.raises(RowError) as caught:
        read_answers(value, row)
    assert caught.value.field == field


def test_aliases_that_normalise_to_nothing() -> None:
    assert drop_empty([["The", "The Who"], ["!!!", "Chk"]], "en", "answers") == ([["The Who"], ["Chk"]], ["The", "!!!"])
    assert drop_empty([["+"], ["日本"], ["A"]], "fr", "answers")[1] == []
    for answers, language in [([["x"], ["The"]], "en"), ([["x"], ["a", "!"]], "und"), ([["x"], []], "en")]:
        with pytest.raises(RowError) as caught:
            drop_empty(answers, language, "answers")
        assert (caught.value.reason, caught.value.field) == ("empty_answer", "answers[1]")


def test_long_answers_are_read_only_from_alce_rows() -> None:
    row = {"answer": "Long text.", "annotations": [{"long_answer": "One."}, {"long_answer": "Two."}, {}]}
    assert long_answers(row, "qa_pairs") == ["One.", "Two."]
    assert long_answers({"answer": "Long text."}, "claims") == ["Long text."]
    assert long_answers(row, "answers") == []
