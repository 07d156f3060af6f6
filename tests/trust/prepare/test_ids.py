import hashlib
import json

import pytest

from trust.errors import RowError
from trust.prepare.ids import sample_id, source_id


def test_id_of_the_source() -> None:
    assert sample_id("asqa", "5", "q", ["d"], [["a"]]) == "asqa:5"


def test_id_from_content() -> None:
    content = json.dumps(["asqa", "où?", ["d1", "d2"], [["a", "b"], ["c"]]], ensure_ascii=False)
    expected = hashlib.sha256(content.encode()).hexdigest()[:16]
    assert sample_id("asqa", None, "où?", ["d1", "d2"], [["a", "b"], ["c"]]) == expected


def test_each_part_of_the_content_counts() -> None:
    made = [
        sample_id("x", None, "q", ["d"], [["a"]]),
        sample_id("y", None, "q", ["d"], [["a"]]),
        sample_id("x", None, "r", ["d"], [["a"]]),
        sample_id("x", None, "q", ["d", ""], [["a"]]),
        sample_id("x", None, "q", ["d"], [["a"], []]),
        sample_id("x", None, "q", ["d"], [["a", "b"]]),
        sample_id("x", None, "q", ["d"], [["a"], ["b"]]),
    ]
    assert len(set(made)) == len(made)


def test_source_id() -> None:
    assert source_id(7, "id") == "7"
    assert source_id(" a ", "id") == "a"
    assert source_id("  ", "id") is None
    assert source_id(None, "id") is None
    for value in (True, 1.5, ["a"]):
        with pytest.raises(RowError):
            source_id(value, "id")
