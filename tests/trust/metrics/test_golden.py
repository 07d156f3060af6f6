"""The mode `upstream` against what the published evaluator gave, per row and per published key."""

import math
from pathlib import Path

import pytest

from tests.trust.metrics.golden import TASKS, Replay, load, published, run, to_row
from trust.metrics.trust_score import TrustScore, TrustScoreConfig


@pytest.mark.parametrize("name", TASKS)
def test_every_published_key(name: str, shared: Path, nltk_data: Path) -> None:
    items, expected, _, labels = load(shared / "data" / "trust_golden" / name)
    metric = TrustScore(TrustScoreConfig(), "upstream")
    scores = run(metric, [to_row(item, TASKS[name]) for item in items], Replay(labels))
    result = published(metric, scores, TASKS[name])
    assert list(result) == list(expected)
    for key, value in expected.items():
        assert result[key] == pytest.approx(value, abs=1e-6), key


@pytest.mark.parametrize("name", TASKS)
def test_every_row(name: str, shared: Path, nltk_data: Path) -> None:
    items, _, per_item, labels = load(shared / "data" / "trust_golden" / name)
    metric = TrustScore(TrustScoreConfig(), "upstream")
    ask = Replay(labels)
    for item in items:
        want, task = per_item[item["id"]], TASKS[name]
        score = run(metric, [to_row(item, task)], ask)[0]
        assert score.trace["refusal"]["ratio"] == want["partial_ratio"]
        assert score.values["refused"] == want["refusal"]
        assert score.values["answerable"] == want["answerable"]
        assert [int(answer["supported"]) for answer in score.trace["answers"]] == want["supported_claims"]
        assert [sentence["text"] for sentence in score.trace["sentences"]] == want["sentences"]
        for ours, theirs in (("citation_recall", "citation_rec"), ("citation_precision", "citation_prec")):
            if math.isnan(float(want[theirs])):
                assert ours not in score.values
            else:
                assert 100 * score.values[ours] == pytest.approx(want[theirs], abs=1e-6)
        if task == "em":
            assert score.terms["ac_all"] == pytest.approx(want["str_em"])
            assert score.values.get("answer_correctness", 0.0) == pytest.approx(want["calib_str_em"])
        if task == "em5":
            assert 100 * score.terms["em5_all_f1_top5"] == pytest.approx(want["plain"]["qampari_f1_top5"])
            assert 100 * score.values.get("answer_correctness", 0.0) == pytest.approx(want["calib"]["qampari_f1_top5"])
            wrong = score.terms.get("em5_presence")
            if wrong is None:
                assert want["refusal"] or want["incorrect_frequency"]["qampari_presence"] == "nan"
            else:
                assert 100 * wrong == pytest.approx(want["incorrect_frequency"]["qampari_presence"])
        if task == "cm":
            assert 100 * score.terms["ac_all"] == pytest.approx(want["claim_match"]["regular_claims_nli"])


@pytest.mark.parametrize("name", TASKS)
def test_asks_nothing_that_upstream_did_not_and_all_that_it_did(name: str, shared: Path, nltk_data: Path) -> None:
    items, _, _, labels = load(shared / "data" / "trust_golden" / name)
    ask = Replay(labels)
    run(TrustScore(TrustScoreConfig(), "upstream"), [to_row(item, TASKS[name]) for item in items], ask)
    assert {(premise, hypothesis) for _, premise, hypothesis in ask.asked} == set(labels)
