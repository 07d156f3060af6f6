"""Rows of corpora as passages, and their texts read back."""

from pathlib import Path
from typing import Any

import pytest

from trust.errors import RowError
from trust.retrieve.corpus import passage, whole
from trust.retrieve.passages import read_passages
from trust.storage import Storage
from trust.tables import to_table


@pytest.mark.parametrize(
    ("row", "doc_id", "title"),
    [
        ({"id": "7", "text": "Body.", "title": "Aaron"}, "7", "Aaron"),
        ({"id": 7, "text": "Body.", "title": None}, "7", ""),
        ({"id": "s1", "url": "http://x", "title": "T", "sha": "0", "raw": "Body.", "vector": [0.1]}, "s1", "T"),
        ({"_id": "b", "title": "", "text": "Body."}, "b", ""),
        ({"docid": "m#1", "title": "T", "text": "Body."}, "m#1", "T"),
        ({"id": "p", "contents": "Body."}, "p", ""),
    ],
)
def test_the_published_forms(row: dict[str, Any], doc_id: str, title: str) -> None:
    assert passage(row, {}) == ({"doc_id": doc_id, "title": title, "text": "Body."}, True)


def test_columns_of_ones_own() -> None:
    row = {"id": "no", "number": 3, "text": "no", "body": "Body."}
    found, named = passage(row, {"id": "number", "text": "body"})
    assert (found["doc_id"], found["text"], named) == ("3", "Body.", True)


def test_a_passage_without_an_id_is_called_by_its_content() -> None:
    first, named = passage({"id": " ", "text": "Body.", "title": "T"}, {})
    assert not named
    assert len(first["doc_id"]) == 16
    assert passage({"text": "Body.", "title": "T"}, {})[0] == first
    assert passage({"text": "Body.", "title": "U"}, {})[0]["doc_id"] != first["doc_id"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "1", "text": " \n"}, "no_text"),
        ({"id": "1", "title": "only"}, "no_text"),
        ({"id": "1", "text": 3}, "invalid_type"),
        ({"id": ["1"], "text": "a"}, "invalid_type"),
        ({"id": True, "text": "a"}, "invalid_type"),
        ({"id": "1", "text": "\ud800"}, "invalid_unicode"),
    ],
)
def test_what_is_no_passage(row: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowError) as error:
        passage(row, {})
    assert error.value.reason == reason


def test_the_title_goes_before_the_text() -> None:
    assert whole("Aaron", "Body.") == "Aaron\nBody."
    assert whole("", "Body.") == "Body."


def test_texts_are_read_for_the_places_that_are_wanted(tmp_path: Path) -> None:
    paths = []
    for part in range(2):
        rows = [{"doc_id": f"{n:06d}", "title": f"t{part}", "text": f"{part}-{n}"} for n in range(5000)]
        paths.append(str(tmp_path / f"{part}.parquet"))
        Storage().write_table(paths[-1], to_table("corpus", rows))
    places = {(0, 0), (0, 1023), (0, 1024), (0, 4999), (1, 3000)}
    found = read_passages(paths, places, Storage())
    assert found == {(part, row): (f"t{part}", f"{part}-{row}") for part, row in places}
