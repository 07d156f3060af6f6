import json
from pathlib import Path

import pytest

from trust.text.fuzzy import partial_ratio
from trust.text.normalize import normalize_answer
from trust.text.refusals import FLAG, ratio_to_flag


def test_all_published_ratios(shared: Path) -> None:
    cases = json.loads((shared / "data" / "trust_golden" / "refusal_partial_ratio.json").read_text())
    assert len(cases) == 746
    for case in cases:
        assert normalize_answer(case["output"]) == case["normalized"]
        assert ratio_to_flag(case["output"]) == case["fuzzywuzzy_levenshtein"], case["output"]


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("I'm sorry, but I couldn't find an answer.", 79),
        ("", 0),
        ("I couldn't find an answer to your question in the search results.", 57),
        ("I apologize, but I could not find an answer to your question.", 95),
        ("I apologize but I could not find any answers in the provided documents.", 89),
        ("The answer is 42 [1].", 43),
        ("Finland", 71),
        ("I", 100),
        ("find", 100),
        ("The documents do not contain the answer.", 58),
    ],
)
def test_ratios_where_libraries_differ(text: str, ratio: int) -> None:
    assert ratio_to_flag(text) == ratio


def test_symmetry_and_length() -> None:
    assert len(normalize_answer(FLAG)) == 37
    assert partial_ratio("ab", "xxabxx") == partial_ratio("xxabxx", "ab") == 100
    assert partial_ratio("", "") == 0
