"""The published numbers as a report shows them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.report import numbers
from trust.runs import Run
from trust.storage import Storage
from trust.summary import MAIN


def stat(key: str, value: float | None, n: int = 10) -> dict[str, Any]:
    known = value is not None
    return {
        key: value,
        f"{key}_low": value - 5 if known else None,
        f"{key}_high": value + 5 if known else None,
        f"{key}_n": n,
    }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Storage(), str(tmp_path), "r")


def test_null_is_not_applicable() -> None:
    found = numbers.number(stat("trust_score", None), "trust_score")
    assert (found.value, found.interval) == ("n.a.", "")


def test_counts_have_no_decimals_and_no_interval() -> None:
    found = numbers.number(stat("answered_num", 1234.0, 2000), "answered_num")
    assert (found.value, found.interval, found.n) == ("1,234", "", "2,000")


def test_a_rate_has_its_interval() -> None:
    assert numbers.number(stat("macro_f1", 50.0), "macro_f1").interval == "45.0 – 55.0"


def test_keys_of_other_data_sets_are_left_out(run: Run) -> None:
    rows = [
        {"dataset": "a"} | stat("calib_str_em_f1", None) | {"calib_claims_nli_f1": None},
        {"dataset": "b"} | stat("calib_claims_nli_f1", 40.0),
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    run.storage.write_table(run.path("summary.parquet"), table)
    first, second = numbers.read(run)
    assert numbers.keys(first) == ["calib_str_em_f1"]
    assert numbers.keys(second) == ["calib_claims_nli_f1"]


def test_nothing_scored_is_an_empty_summary(run: Run) -> None:
    assert numbers.read(run) == []


@pytest.mark.parametrize("task", ["em", "em5", "cm"])
@pytest.mark.parametrize("compat", ["strict", "upstream"])
def test_every_number_of_the_metric_has_words_and_a_place(task: str, compat: str) -> None:
    import numpy as np

    metric = TrustScore(TrustScoreConfig(), compat)
    names = list(metric.final({term: np.ones(3) for term in metric.terms}, task))
    summary = {key: value for name in names for key, value in stat(name, 50.0).items()}
    assert [name for name in names if numbers.describe(name) == name.replace("_", " ")] == []
    placed = [number.key for _, found in numbers.sections(summary) for number in found]
    assert sorted(placed) == sorted(names)
    (first, parts), *_ = numbers.sections(summary)
    assert first == "Trust-Score and its parts"
    assert len(parts) == 4
    assert [point.value for point in numbers.points(summary)] == [50.0] * 4


def test_the_parts_shown_are_the_main_numbers() -> None:
    assert set(numbers.PARTS) <= set(MAIN)
