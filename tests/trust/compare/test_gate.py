"""What ends a build: which end of which number is held against which limit."""

from pathlib import Path
from typing import Any

import pytest

from tests.trust.compare.helpers import RIGHT, config, evaluated, rows
from trust.compare import CompareConfig, run_compare
from trust.compare.gate import describe
from trust.config import load
from trust.errors import ConfigError, PreflightError


def lost(root: Path, fail_below: Any, **options: Any) -> list[str]:
    made, _ = run_compare(config(root, fail_below=fail_below, **options))
    return [describe([loss]) for loss in made.lost]


@pytest.fixture
def worse(tmp_path: Path) -> Path:
    """A new run whose score is a few points lower; the loss is not certain."""
    evaluated(tmp_path, "base", rows({2}))
    evaluated(tmp_path, "new", rows({2, 5}))
    return tmp_path


def test_a_number_is_about_the_trust_score_and_a_map_about_its_keys(worse: Path) -> None:
    made, _ = run_compare(config(worse))
    (found,) = made.found.values()
    score = next(each for each in found if each.key == "trust_score" and not each.slice[0])
    assert -5 < score.difference < -0.5
    assert made.lost == []
    assert lost(worse, score.difference - 0.01) == []
    assert lost(worse, score.difference + 0.01)[0].startswith(f"trust_score of demo: {score.difference:+.2f}, least")
    assert lost(worse, {"trust_score": -50, "answered_ratio": 0.5}) == [
        "answered_ratio of demo: +0.00, least allowed +0.50"
    ]


def test_low_has_to_rule_a_loss_out_and_high_has_to_be_certain_of_one(worse: Path) -> None:
    made, _ = run_compare(config(worse))
    (found,) = made.found.values()
    score = next(each for each in found if each.key == "trust_score" and not each.slice[0])
    assert score.low < score.difference < score.high
    for fail_on, value in (("low", score.low), ("difference", score.difference), ("high", score.high)):
        assert lost(worse, value - 0.01, fail_on=fail_on) == []
        assert len(lost(worse, value + 0.01, fail_on=fail_on)) == 1


def test_what_no_question_changed_passes_whichever_end_counts(tmp_path: Path) -> None:
    for name in ("base", "new"):
        evaluated(tmp_path, name, rows({2}))
    assert lost(tmp_path, 0, fail_on="low") == []
    assert len(lost(tmp_path, 0.1, fail_on="high")) in (0, 1)
    assert len(lost(tmp_path, 0.1)) == 1, "a gain was demanded"


def test_slices_count_where_they_are_to(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows())
    evaluated(tmp_path, "new", rows({1, 5, 7}))
    by = {"by": ["language"]}
    assert len(lost(tmp_path, -8, **by)) == 0
    assert [line.split(":")[0] for line in lost(tmp_path, -8, fail_slices=True, **by)] == [
        "trust_score of demo, language=de"
    ]


def test_a_number_that_was_lost_is_worse_than_any_limit(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows())
    evaluated(
        tmp_path,
        "new",
        [row if n else row | {"output": None, "status": "failed"} for n, row in enumerate(rows())],
        max_failed=0.01,
    )
    assert lost(tmp_path, -100) == [
        "trust_score of demo: 100.00 in base, withheld in new: 1 of 60 rows failed, more than max_failed=0.01"
    ]


def test_limits_that_cannot_be_applied_are_errors(tmp_path: Path) -> None:
    answerable = [row for row in rows() if row["output"] == RIGHT]
    for name in ("base", "new"):
        evaluated(tmp_path, name, answerable)
        evaluated(tmp_path / "few", name, rows(questions=range(8)))
    with pytest.raises(ConfigError, match=r"fail_below=trust_scor: unknown value; did you mean trust_score\?"):
        lost(tmp_path, {"trust_scor": -1})
    with pytest.raises(PreflightError, match="trust_score of demo cannot be compared: not applicable in base and new"):
        lost(tmp_path, -1)
    assert lost(tmp_path / "few", 0, fail_on="low") == [], "unchanged"
    evaluated(tmp_path / "few", "new", rows({1}, questions=range(8)))
    with pytest.raises(PreflightError, match=r"has no interval \(it rests on 8 rows\), so only fail_on=difference"):
        lost(tmp_path / "few", 0, fail_on="low")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fail_on": "lower", "fail_below": 1}, "did you mean low"),
        ({"fail_on": "low"}, "do nothing without fail_below"),
        ({"fail_below": 0, "fail_slices": True}, "does nothing without slices"),
        ({"fail_below": float("nan")}, "must be a number"),
        ({"questions": "all"}, "questions=all"),
        ({"by": ["a", "a"]}, "by names a twice"),
    ],
)
def test_configs_that_do_nothing_or_not_what_they_say(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(tmp_path, **options)


@pytest.mark.parametrize(
    ("word", "limits"),
    [
        ("by=[]", {}),
        ("fail_below=-0.5", {"trust_score": -0.5}),
        ("fail_below={refuse_f1: -2, trust_score: 0}", {"refuse_f1": -2.0, "trust_score": 0.0}),
        ("fail_below.refuse_f1=-2", {"refuse_f1": -2.0}),
    ],
)
def test_limits_as_words(word: str, limits: dict[str, float]) -> None:
    assert load("compare", CompareConfig, ["base=a", "new=b", word]).limits == limits
