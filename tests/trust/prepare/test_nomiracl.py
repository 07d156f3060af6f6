"""NoMIRACL's files as rows: language and subset from where they lie, question and passages out of the prompt."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trust.prepare.helpers import prepare, write
from trust.prepare.nomiracl import language_named, place

PROMPT = (
    "Read the contexts.\n\nQUESTION:\nWho was it?\n\nCONTEXTS:\n[1] Ann: Ann was it.\n\n[2] Bob: No: it was Bob. [3] too\n\n"
    "OUTPUT:\n"
)


def released(**changes: Any) -> dict[str, Any]:
    row = {
        "query_id": "7#0",
        "docids": ["1#0", "2#3"],
        "prompt": PROMPT,
        "template": "vanilla",
        "results": {"big": "Yes, answer is present", "small": ""},
    }
    return row | changes


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/d/relevant.en.first60.jsonl", ("en", "relevant")),
        ("/d/non_relevant.zh.jsonl.gz", ("zh", "non_relevant")),
        ("/d/non-relevant/en.test.vanilla_prompt.jsonl", ("en", "non_relevant")),
        ("s3://b/sw.test.relevant.x.jsonl", ("sw", "relevant")),
        ("/nomiracl/yoruba/dev.non_relevant-00000.parquet", ("yo", "non_relevant")),
        ("/d/rows.jsonl", (None, None)),
    ],
)
def test_place(file: str, expected: tuple[str | None, str | None]) -> None:
    assert place(file) == expected


def test_folders_are_called_by_languages() -> None:
    assert [language_named(name) for name in ("/a/english", "/a/nomiracl-v1.0-de/", "ko", "topics")] == [
        "en",
        "de",
        "ko",
        None,
    ]


def test_a_released_result_is_a_response_a_model(tmp_path: Path) -> None:
    rows = [released(), released(query_id="8", prompt=None), released(query_id="9", results={"big": None})]
    path = write(tmp_path / "relevant.en.part.jsonl.gz", "\n".join(map(json.dumps, rows)))
    found = prepare(path, kind="nomiracl", name="nomiracl", outputs="require")
    first = {row["model"]: row for row in found["responses"] if row["sample_id"] == "nomiracl:en.relevant.7#0"}
    assert set(first) == {"big", "small"}
    assert (first["small"]["output"], first["small"]["prompt"]) == ("", "vanilla")
    assert (first["big"]["question"], first["big"]["language"], first["big"]["task"]) == ("Who was it?", "en", "none")
    assert first["big"]["meta"]["subset"] == "relevant"
    docs = [(doc["doc_id"], doc["title"], doc["text"]) for doc in first["big"]["docs"]]
    assert docs == [("1#0", "Ann", "Ann was it."), ("2#3", "Bob", "No: it was Bob. [3] too")]
    second = [row for row in found["responses"] if row["sample_id"].endswith(".8")]
    assert len(second) == 2, "a row whose prompt is not in the file counts all the same"
    assert second[0]["docs"] == []
    assert [row["reason"] for row in found["failed"]] == ["missing_output"]


def test_without_outputs_it_is_a_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "non_relevant.de.jsonl", json.dumps(released()))
    (sample,) = prepare(path, kind="nomiracl", name="nomiracl")["samples"]
    assert (sample["sample_id"], sample["language"]) == ("nomiracl:de.non_relevant.7#0", "de")


def test_passages_of_a_query_are_in_an_order_that_does_not_tell_which_answers(tmp_path: Path) -> None:
    firsts = set()
    (tmp_path / "english").mkdir()
    for number in range(12):
        row = {
            "query_id": str(number),
            "query": "Who?",
            "positive_passages": [{"docid": f"{number}p", "title": "P", "text": "yes"}],
            "negative_passages": [{"docid": f"{number}n{n}", "title": "N", "text": "no"} for n in range(3)],
        }
        path = write(tmp_path / "english" / f"dev.relevant-{number}.jsonl", json.dumps(row))
        (sample,) = prepare(path, kind="nomiracl", name="nomiracl")["samples"]
        assert sample["meta"]["relevant_passages"] == json.dumps([f"{number}p"])
        assert len(sample["docs"]) == 4
        firsts.add(sample["docs"][0]["title"])
    assert firsts == {"P", "N"}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (released(query_id=None), "query_id"),
        ({"query_id": "1"}, "results"),
        (released(results={}), "results"),
        (released(results=["Yes"]), "results"),
        ({"query_id": "1", "query": "Who?", "negative_passages": "none"}, "negative_passages"),
    ],
)
def test_bad_rows_say_why(tmp_path: Path, row: dict[str, Any], field: str) -> None:
    path = write(tmp_path / "relevant.en.jsonl", json.dumps(row))
    (failed,) = prepare(path, kind="nomiracl", outputs="require")["failed"]
    assert failed["field"] == field


def test_where_nothing_says_the_language_or_the_subset(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", json.dumps(released()))
    assert prepare(path, kind="nomiracl")["failed"][0]["field"] == "language"
    assert prepare(path, kind="nomiracl", language="en")["failed"][0]["field"] == "subset"
    path = write(tmp_path / "rows2.jsonl", json.dumps(released(language="ja", subset="relevant")))
    assert prepare(path, kind="nomiracl")["samples"][0]["language"] == "ja"
