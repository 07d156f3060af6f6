import pytest

from trust.errors import RowError
from trust.prepare import DataConfig
from trust.prepare.documents import read_docs


def test_all_fields() -> None:
    doc = {
        "id": 7,
        "title": "T",
        "text": "long",
        "sent": "short",
        "score": "80.5",
        "answers_found": [True, 0.0, 1],
        "rec_score": 1,
        "extra": "x",
    }
    assert read_docs([doc, "plain text"][:1], DataConfig(), 3) == [
        {"doc_id": "7", "title": "T", "text": "short", "score": 80.5, "answers_found": [1, 0, 1], "rec_score": 1.0}
    ]
    assert read_docs(["plain text"], DataConfig(), 0)[0]["text"] == "plain text"
    assert read_docs(None, DataConfig(), 2) == []
    assert read_docs([{"text": "", "title": None}], DataConfig(), 1)[0] == {
        "doc_id": None,
        "title": "",
        "text": "",
        "score": None,
        "answers_found": None,
        "rec_score": None,
    }


def test_mapped_fields() -> None:
    data = DataConfig(columns={"doc_text": "body.plain", "doc_title": "", "answers_found": "labels"})
    docs = read_docs([{"body": {"plain": "x"}, "title": 3, "labels": [1], "answers_found": "no"}], data, 1)
    assert (docs[0]["text"], docs[0]["title"], docs[0]["answers_found"]) == ("x", "", [1])


def test_plain_texts_need_no_name() -> None:
    assert read_docs(["x"], DataConfig(columns={"doc_text": "body.plain"}), 1)[0]["text"] == "x"


@pytest.mark.parametrize(
    ("columns", "field"), [({"doc_text": "body"}, "text"), ({"answers_found": "lables"}, "lables")]
)
def test_mapped_fields_that_are_not_there(columns: dict[str, str], field: str) -> None:
    with pytest.raises(RowError, match=r"docs\[0\].*" if field == "text" else "lables, but docs") as caught:
        read_docs([{"text": "x", "labels": [1]}], DataConfig(columns=columns), 1)
    assert (caught.value.reason, caught.value.field) == ("missing_field", f"docs[0].{field}")
    assert columns.popitem()[1] in str(caught.value)


def _doc(found: object) -> dict:
    return {"text": "x"} | ({} if found is ... else {"answers_found": found})


@pytest.mark.parametrize(
    ("docs", "answers", "reason", "field"),
    [
        ([_doc([1, 0]), _doc(...)], 2, "missing_field", "docs[1].answers_found"),
        ([_doc([1, 0]), _doc(None)], 2, "missing_field", "docs[1].answers_found"),
        ([_doc([1, 0]), _doc([1])], 2, "length_mismatch", "docs[1].answers_found"),
        ([_doc([1])], 0, "length_mismatch", "docs[0].answers_found"),
        ([_doc([1]), _doc([1, 0])], None, "length_mismatch", "docs[1].answers_found"),
        ([_doc([0, 0.5])], 2, "invalid_label", "docs[0].answers_found[1]"),
        ([_doc([2])], 1, "invalid_label", "docs[0].answers_found[0]"),
        ([_doc(["1"])], 1, "invalid_label", "docs[0].answers_found[0]"),
        ([_doc([None])], 1, "invalid_label", "docs[0].answers_found[0]"),
        ([_doc([float("nan")])], 1, "invalid_label", "docs[0].answers_found[0]"),
        ([_doc(1)], 1, "invalid_type", "docs[0].answers_found"),
        ([{"title": "T"}], 0, "missing_field", "docs[0].text"),
        ([{"text": 5}], 0, "invalid_type", "docs[0].text"),
        ([{"text": "x", "title": ["T"]}], 0, "invalid_type", "docs[0].title"),
        ([{"text": "x", "score": float("nan")}], 0, "not_finite", "docs[0].score"),
        ([{"text": "x", "rec_score": "good"}], 0, "invalid_type", "docs[0].rec_score"),
        ([None], 0, "invalid_type", "docs[0]"),
        ("text", 0, "invalid_type", "docs"),
    ],
)
def test_faults_are_named(docs: object, answers: int | None, reason: str, field: str) -> None:
    with pytest.raises(RowError) as caught:
        read_docs(docs, DataConfig(), answers)
    assert (caught.value.reason, caught.value.field) == (reason, field)


def test_labels_without_answers_are_kept() -> None:
    assert [doc["answers_found"] for doc in read_docs([_doc([1, 0]), _doc([0, 0])], DataConfig(), None)] == [
        [1, 0],
        [0, 0],
    ]
