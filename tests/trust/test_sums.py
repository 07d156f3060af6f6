"""Sums by group and slice."""

import numpy as np

from trust import stats
from trust.metrics.trust_score import TrustScore, TrustScoreConfig
from trust.sums import by_term, group_of, sum_scores, term_names

METRIC = TrustScore(TrustScoreConfig(), "strict")


def score(number: int, value: str, draw: int = 0) -> dict[str, object]:
    row = {"metric": "trust_score", "dataset": "d/ä", "task": "em", "model": "m", "prompt": "p", "status": "scored"}
    return row | {
        "sample_id": f"d:{number}",
        "draw": draw,
        "slices": {"domain": value, "language": "en"},
        "outside_judge_languages": number == 3,
        "terms": {"rows": 1.0, "answered": number / 10},
    }


def test_every_group_has_its_whole_and_each_slice_and_slices_are_not_crossed() -> None:
    sums = sum_scores([score(n, "ab"[n % 2]) for n in range(10)] + [score(0, "a", draw=1)], [METRIC], 50)
    groups = {tuple(group_of(name).values())[5:]: array for name, array in sums.items()}
    assert set(groups) == {("", ""), ("domain", "a"), ("domain", "b"), ("language", "en")}
    assert np.array_equal(groups["domain", "a"] + groups["domain", "b"], groups["", ""])
    whole = by_term(METRIC, groups["", ""])
    assert (whole["rows"][0], whole["questions"][0], whole["rows_scored"][0]) == (11, 10, 11)
    assert whole["rows_outside"][0] == 1
    assert whole["answered"][0] == np.float64(4.5)
    weights = stats.question_weights([f"d:{n}" for n in range(10)], 50)
    assert np.array_equal(whole["questions"][1:], weights.sum(axis=0))


def test_the_questions_are_the_last_term() -> None:
    assert term_names(METRIC)[-1] == "questions"
