"""Inputs on which the published evaluator crashed or gave odd numbers: `upstream` agrees where it gave any, strict is
right."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.trust.metrics.golden import Replay, published, run, to_row
from trust.errors import RowError
from trust.metrics.trust_score import TrustScore, TrustScoreConfig

OK = [
    "asqa_all_outputs_blank_or_stop", "asqa_all_outputs_empty", "asqa_all_refusals",
    "asqa_all_refusals_all_unanswerable", "asqa_all_unanswerable_but_answered", "asqa_answers_found_bool",
    "asqa_at_most_citations_none", "asqa_empty_alias", "asqa_huge_citation", "asqa_one_output_empty",
    "asqa_parametric_false", "asqa_zero_citation",
]  # fmt: skip
FAILS = {
    "asqa_answers_found_missing": "answers_found_missing",
    "asqa_answers_found_ragged": "answers_found_length",
    "asqa_answers_found_short": "answers_found_length",
    "asqa_no_docs_key": "no_docs",
    "asqa_output_missing": "no_output",
    "asqa_output_null": "no_output",
}


def _load(shared: Path, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    case = json.loads((shared / "data" / "trust_golden" / "crashes" / f"{name}.json").read_text())
    data = case["input"] if isinstance(case["input"], list) else case["input"]["data"]
    return case, [to_row(item, "em") for item in data]


def _judge(shared: Path) -> Replay:
    """The judge's answers where upstream asked them; everything else is not entailed."""
    from tests.trust.metrics.golden import load

    labels = load(shared / "data" / "trust_golden" / "asqa")[3]
    return Replay(lambda premise, hypothesis: labels.get((premise, hypothesis), 0))


def _result(shared: Path, name: str, compat: str) -> dict[str, float]:
    case, rows = _load(shared, name)
    config = TrustScoreConfig(at_most_citations=case["config"].get("at_most_citations", 3))
    metric = TrustScore(config, compat)
    return published(metric, run(metric, rows, _judge(shared)), "em")


@pytest.mark.parametrize("name", OK)
def test_upstream_where_it_gave_a_result(name: str, shared: Path, nltk_data: Path) -> None:
    case, _ = _load(shared, name)
    result = _result(shared, name, "upstream")
    assert {key: str(value) if math.isnan(value) else value for key, value in result.items()} == pytest.approx(
        case["result"] | {key: result[key] for key in result if key not in case["result"]}, abs=1e-6
    )
    assert set(result) - set(case["result"]) <= {"parametric_str_em"}


@pytest.mark.parametrize("name", FAILS)
@pytest.mark.parametrize("compat", ["upstream", "strict"])
def test_a_bad_row_fails_alone_and_says_why(name: str, compat: str, shared: Path, nltk_data: Path) -> None:
    _, rows = _load(shared, name)
    metric, failed = TrustScore(TrustScoreConfig(), compat), []
    for row in rows:
        try:
            run(metric, [row], _judge(shared))
        except RowError as error:
            failed.append(error)
    assert [error.reason for error in failed] == [FAILS[name]]
    assert failed[0].detail
    assert failed[0].field


def _na(result: dict[str, float]) -> set[str]:
    return {key for key, value in result.items() if math.isnan(value)}


def test_everything_refused_where_nothing_is_answerable(shared: Path) -> None:
    result = _result(shared, "asqa_all_refusals_all_unanswerable", "strict")
    assert (result["refuse_rec"], result["refuse_prec"], result["refuse_f1"]) == (100, 100, 100)
    assert {"answerable_f1", "macro_f1", "calib_str_em_f1", "answered_citation_f1", "trust_score"} <= _na(result)


def test_everything_refused_where_everything_is_answerable(shared: Path) -> None:
    result = _result(shared, "asqa_all_refusals", "strict")
    assert (result["answerable_f1"], result["refuse_f1"], result["calib_str_em_f1"]) == (0, 0, 0)
    assert {"answerable_prec", "refuse_rec", "answered_citation_rec", "answered_length", "trust_score"} <= _na(result)


def test_everything_answered_where_nothing_is_answerable(shared: Path) -> None:
    result = _result(shared, "asqa_all_unanswerable_but_answered", "strict")
    assert (result["answerable_prec"], result["answerable_f1"], result["refuse_f1"]) == (0, 0, 0)
    assert (result["calib_answered_str_em"], result["calib_str_em_f1"], result["answered_citation_rec"]) == (0, 0, 100)
    assert {"answerable_rec", "refuse_prec", "calib_answerable_str_em"} <= _na(result)
    assert result["trust_score"] == pytest.approx((0 + 0 + result["answered_citation_f1"]) / 3)


@pytest.mark.parametrize("name", ["asqa_all_outputs_empty", "asqa_all_outputs_blank_or_stop"])
def test_empty_responses_are_a_class_of_their_own(name: str, shared: Path) -> None:
    result = _result(shared, name, "strict")
    assert (result["empty_num"], result["answered_num"], result["answered_ratio"]) == (4, 0, 0)
    assert (result["answerable_rec"], result["answerable_f1"], result["calib_answerable_str_em"]) == (0, 0, 0)
    assert {"answered_citation_rec", "regular_citation_rec", "refuse_f1"} <= _na(result)


def test_an_alias_that_is_nothing_matches_nothing(shared: Path) -> None:
    result = _result(shared, "asqa_empty_alias", "strict")
    assert {"regular_str_em", "calib_answered_str_em", "calib_str_em_f1"} <= _na(result)
    assert result["answerable_num"] == 4


def test_zero_is_no_document(shared: Path) -> None:
    _, rows = _load(shared, "asqa_zero_citation")
    ask = _judge(shared)
    scores = run(TrustScore(TrustScoreConfig(), "strict"), rows, ask)
    assert ask.asked == []
    assert all(score.values["citation_precision"] == 0.0 for score in scores)
    verdicts = [citation["verdict"] for citation in scores[0].trace["sentences"][0]["citations"]]
    assert verdicts == ["out_of_range"]


def test_a_huge_number_is_a_wrong_citation(shared: Path) -> None:
    _, rows = _load(shared, "asqa_huge_citation")
    scores = run(TrustScore(TrustScoreConfig(), "strict"), rows, _judge(shared))
    assert [score.values["citation_recall"] for score in scores] == [1, 1, 1, 1]
    assert [score.values["citation_precision"] for score in scores] == pytest.approx([3 / 4, 1 / 2, 2 / 3, 3 / 6])


def test_rows_without_answers_have_no_correctness(shared: Path, nltk_data: Path) -> None:
    for name in ("asqa_answers_null", "asqa_answers_missing", "asqa_second_answers_missing", "asqa_answers_empty"):
        _, rows = _load(shared, name)
        for compat in ("strict", "upstream"):
            scores = run(TrustScore(TrustScoreConfig(), compat), rows, _judge(shared))
            assert [("answer_correctness" in score.values) for score in scores].count(False) == 1, name
            assert all("citation_recall" in score.values for score in scores)


def test_without_answers_and_labels_answerability_is_unknown(shared: Path) -> None:
    _, rows = _load(shared, "asqa_answers_empty_all")
    metric = TrustScore(TrustScoreConfig(), "strict")
    scores = run(metric, rows, _judge(shared))
    assert all("answerable" not in score.values and score.status == "scored" for score in scores)
    result = published(metric, scores, "em")
    assert {"refuse_f1", "answerable_f1", "macro_f1", "calib_str_em_f1", "trust_score"} <= _na(result)
    assert result["answered_citation_rec"] == 100


def test_no_documents_means_unanswerable(shared: Path) -> None:
    _, rows = _load(shared, "asqa_docs_empty")
    scores = run(TrustScore(TrustScoreConfig(), "strict"), rows, _judge(shared))
    assert [score.values["answerable"] for score in scores].count(0.0) == 1


@pytest.mark.parametrize("name", ["asqa_answers_found_float", "asqa_answers_found_bool"])
def test_labels_of_other_types_are_read(name: str, shared: Path) -> None:
    result = _result(shared, name, "strict")
    # Upstream's 25 comes from the gold answer "No", which it finds inside other words.
    assert (result["answerable_num"], result["calib_answered_str_em"]) == (4, 0)


@pytest.mark.parametrize("compat", ["strict", "upstream"])
def test_no_title_and_no_data(compat: str, shared: Path, nltk_data: Path) -> None:
    _, rows = _load(shared, "asqa_title_missing")
    ask = _judge(shared)
    run(TrustScore(TrustScoreConfig(), compat), rows, ask)
    assert all(premise.startswith("Title: \n") == (compat == "upstream") for _, premise, _ in ask.asked)
    metric = TrustScore(TrustScoreConfig(), compat)
    result = published(metric, [], "em")
    assert result["num_samples"] == 0
    assert math.isnan(result["trust_score"]) == (compat == "strict")
