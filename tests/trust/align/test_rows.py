import pytest

from trust.align.rows import check_split, failed, tally
from trust.errors import RowError


def test_rows_that_models_are_measured_on_are_refused() -> None:
    check_split({"meta": {"split": "train"}}, ["train"])
    check_split({"meta": {}}, ["train"])
    check_split({"meta": None}, ["train"])
    with pytest.raises(
        RowError, match="a row of the test split, which models are measured on; build from train"
    ) as told:
        check_split({"meta": {"split": "test"}}, ["train"])
    assert failed("curate", "d:1", told.value) == {
        "job": "curate",
        "row": "d:1",
        "field": "meta.split",
        "reason": "not_for_building",
        "detail": str(told.value),
    }


def test_reasons_are_counted() -> None:
    assert tally("dropped", ["a", "b", "a"]) == {"dropped:a": 2.0, "dropped:b": 1.0}
