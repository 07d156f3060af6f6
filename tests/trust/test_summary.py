"""Flat summaries: null where nothing can be said, withheld where too much failed, one file of two."""

import json
from pathlib import Path

import numpy as np
import pytest

from trust import stats
from trust.config import JobConfig
from trust.flat import of_metric
from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.results import write_summary
from trust.runs import Run
from trust.storage import StorageConfig
from trust.summary import _joined, show
from trust.sums import term_names

METRIC = TrustScore(TrustScoreConfig(), "strict")


def sums(scored: int, failed: int) -> np.ndarray:
    """Sums of a group in which nothing is known but how many rows there are."""
    names = term_names(METRIC)
    matrix = np.zeros((scored + failed, len(names)))
    matrix[:, names.index("questions")] = 1
    matrix[:scored, names.index("rows_scored")] = 1
    matrix[scored:, names.index("rows_failed")] = 1
    return stats.sum_terms(matrix, stats.question_weights([str(i) for i in range(scored + failed)], 100))


def test_counts_of_outcomes_and_null_for_what_is_not_applicable() -> None:
    flat = of_metric(METRIC, sums(20, 0), "em", 0.01, "")
    assert (flat["num_scored"], flat["num_na"], flat["num_failed"]) == (20, 0, 0)
    assert flat["trust_score"] is None
    assert flat["trust_score_low"] is None
    json.dumps(flat, allow_nan=False)


def test_rates_are_withheld_above_max_failed_and_the_reason_is_given() -> None:
    flat = of_metric(METRIC, sums(8, 2), "em", 0.1, "")
    assert flat["withheld"] == "2 of 10 rows failed, more than max_failed=0.1"
    assert flat["macro_f1"] is None
    assert "withheld" not in of_metric(METRIC, sums(8, 2), "em", 0.2, "")


def test_one_summary_is_json_several_are_parquet_and_never_both(tmp_path: Path) -> None:
    run = Run.of(JobConfig(run="r", storage=StorageConfig(str(tmp_path))))
    one = {"dataset": "a", "trust_score": 1.5}
    assert json.loads(Path(write_summary(run, [one])).read_text()) == one
    path = write_summary(run, [one, {"dataset": "b", "macro_f1": 2.0}])
    assert not (tmp_path / "r" / "summary.json").exists()
    assert run.storage.read_table(path).to_pylist() == [
        {"dataset": "a", "trust_score": 1.5, "macro_f1": None},
        {"dataset": "b", "trust_score": None, "macro_f1": 2.0},
    ]
    write_summary(run, [one])
    assert not (tmp_path / "r" / "summary.parquet").exists()


def test_what_is_printed_names_judge_and_mode(capsys: pytest.CaptureFixture[str]) -> None:
    summary = {"dataset": "a", "task": "em", "model": "m", "judge": "lexical", "compat": "strict"}
    summary |= {"num_scored": 3, "num_na": 0, "num_failed": 0, "trust_score": 50.0}
    summary |= {"trust_score_low": 40.0, "trust_score_high": 60.0, "macro_f1": None}
    show([summary])
    printed = capsys.readouterr().out
    assert "50.00 [40.0, 60.0]" in printed
    assert "n.a." in printed
    assert "judge: lexical   mode: strict" in printed


def test_numbers_of_several_metrics_stand_side_by_side() -> None:
    one = {"num_scored": 3, "num_na": 0, "num_failed": 0, "same": 1.0, "first": 2.0}
    other = {
        "num_scored": 1,
        "num_na": 0,
        "num_failed": 2,
        "same": 1.0,
        "second": None,
        "withheld": "2 of 3 rows failed",
    }
    joined = _joined({"one": one, "other": other})
    assert (joined["first"], joined["second"], joined["same"]) == (2.0, None, 1.0)
    assert (joined["num_scored"], joined["one_num_failed"], joined["other_num_failed"]) == (3, 0, 2)
    assert joined["withheld"] == "other: 2 of 3 rows failed"
    assert _joined({"one": one}) == one
