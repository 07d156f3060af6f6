"""Paired differences: what is subtracted, over which questions, and what its interval says."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.trust.compare.helpers import QUESTIONS, config, evaluated, rows
from trust.compare import run_compare
from trust.compare.differences import ALL, Difference
from trust.errors import ConfigError, PreflightError
from trust.runs import Run
from trust.stats import interval, paired_interval
from trust.sums import group_of


def compared(root: Path, **options: object) -> dict[tuple[tuple[str, str], str], Difference]:
    made, _ = run_compare(config(root, **options))
    (found,) = made.found.values()
    return {(each.slice, each.key): each for each in found}


def summary(run: Run) -> dict[str, float]:
    return json.loads(run.storage.read_bytes(run.path("summary.json")))


def test_every_published_number_is_subtracted(tmp_path: Path) -> None:
    base, new = evaluated(tmp_path, "base", rows(range(1, 9))), evaluated(tmp_path, "new", rows({2}))
    found = compared(tmp_path)
    old, now = summary(base), summary(new)
    keys = [key for key in now if f"{key}_low" in now]
    assert keys == [key for of, key in found if of == ALL]
    for key in keys:
        each = found[ALL, key]
        assert (each.base, each.new) == (old[key], now[key])
        assert (each.base_n, each.new_n) == (old[f"{key}_n"], now[f"{key}_n"])
        if each.difference is not None:
            assert each.difference == pytest.approx(now[key] - old[key])
    score = found[ALL, "trust_score"]
    assert score.low is not None
    assert score.high is not None
    assert 0 < score.low < score.difference < score.high
    assert found[ALL, "num_samples"].low is None, "a count has no interval"


def test_pairing_makes_the_interval_narrower_than_that_of_either_run(tmp_path: Path) -> None:
    wrong = set(range(0, QUESTIONS, 4))
    base = evaluated(tmp_path, "base", rows(wrong))
    evaluated(tmp_path, "new", rows(wrong - {12}))
    each = compared(tmp_path)[ALL, "macro_f1"]
    alone = summary(base)
    assert each.high - each.low < (alone["macro_f1_high"] - alone["macro_f1_low"]) / 2


def test_the_same_responses_are_unchanged_and_say_how_little_is_sure(tmp_path: Path) -> None:
    for name in ("base", "new"):
        evaluated(tmp_path, name, rows({2, 6}))
    each = compared(tmp_path)[ALL, "trust_score"]
    assert (each.difference, each.unchanged) == (0.0, True)
    assert each.low == -each.high
    assert 0 < each.high < 100 * 4 / (QUESTIONS + 4)


def test_slices_are_compared_alike(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows())
    evaluated(tmp_path, "new", rows({1, 5, 7, 11}))  # all of them German
    found = compared(tmp_path, by=["language"])
    assert {of for of, _ in found} == {ALL, ("language", "de"), ("language", "en")}
    assert found[("language", "en"), "trust_score"].unchanged
    assert found[("language", "de"), "trust_score"].difference < found[ALL, "trust_score"].difference < 0


def test_slices_of_few_rows_have_no_interval_and_slices_of_one_run_no_difference(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows())
    changed = rows({1})
    changed[5]["meta"] = {"domain": "new"}
    evaluated(tmp_path, "new", changed)
    found = compared(tmp_path, by=["domain"])
    assert found[("domain", "new"), "answered_ratio"].note == "no such row in base"
    assert found[("domain", "d1"), "answered_ratio"].note == "other questions in the two runs (15 in base, 14 in new)"
    assert found[("domain", "d2"), "answered_ratio"].difference == 0
    assert found[("domain", "d2"), "refuse_rec"].low is None  # five questions
    assert found[("domain", "d2"), "refuse_rec"].difference == 0


class TestQuestions:
    def test_other_questions_are_refused_with_what_differs(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "base", rows())
        evaluated(tmp_path, "new", rows(questions=range(2, QUESTIONS + 5)))
        with pytest.raises(PreflightError) as error:
            run_compare(config(tmp_path))
        assert "58 questions are in both; 2 only in base (demo:00000, demo:00001); 5 only in new (demo:00060, " in str(
            error.value
        )
        assert "questions=shared" in str(error.value)

    def test_shared_questions_give_what_runs_over_these_alone_would(self, tmp_path: Path) -> None:
        few, wrong = range(2, QUESTIONS), {2, 3, 40}
        evaluated(tmp_path / "all", "base", rows({7}), unit_rows=7)
        evaluated(tmp_path / "all", "new", rows(wrong, range(2, QUESTIONS + 5)))
        evaluated(tmp_path / "few", "base", rows({7}, few))
        evaluated(tmp_path / "few", "new", rows(wrong, few))
        shared = compared(tmp_path / "all", questions="shared", by=["language", "domain"])
        assert shared == compared(tmp_path / "few", by=["language", "domain"])

    def test_none_in_common_says_where_ids_come_from(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "base", rows(questions=range(20)))
        evaluated(tmp_path, "new", rows(questions=range(20, 40)))
        with pytest.raises(PreflightError, match=r"0 questions are in both.*data\.columns\.id"):
            run_compare(config(tmp_path, questions="shared"))

    def test_a_data_set_of_one_run_is_named(self, tmp_path: Path) -> None:
        other = [row | {"dataset": "other", "sample_id": row["sample_id"].replace("demo", "other")} for row in rows()]
        evaluated(tmp_path, "base", rows() + other)
        evaluated(tmp_path, "new", rows({1}))
        with pytest.raises(PreflightError, match=r"only base has other \(em\)"):
            run_compare(config(tmp_path))
        made, words = run_compare(config(tmp_path, questions="shared"))
        assert len(made.found) == 1
        assert "only base has other (em), which is left out" in words

    def test_other_data_sets_altogether(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "base", rows())
        evaluated(tmp_path, "new", rows(dataset="answers_v2"))
        with pytest.raises(PreflightError, match=r"base has demo \(em\), new has answers_v2 \(em\); data\.name"):
            run_compare(config(tmp_path))


class TestRuns:
    def test_what_was_measured_otherwise_is_refused_with_both_values(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "base", rows())
        evaluated(tmp_path, "new", rows(), replicates=100, metrics={"trust_score": {"at_most_citations": 2}})
        for name, options in (("base", (3, 200)), ("new", (2, 100))):
            keep_identity(tmp_path, name, *options)
        with pytest.raises(PreflightError) as error:
            run_compare(config(tmp_path))
        assert (
            "metrics.trust_score.at_most_citations is 3 in base, 2 in new; replicates is 200 in base, 100 in new"
            in str(error.value)
        )

    def test_a_run_that_is_not_there(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "base", rows())
        with pytest.raises(PreflightError, match=r"new=basse: no finished evaluation in .*; did you mean base\?"):
            run_compare(config(tmp_path, new="basse"))

    def test_a_run_by_its_address(self, tmp_path: Path) -> None:
        evaluated(tmp_path / "main", "nightly", rows())
        evaluated(tmp_path, "new", rows())
        made, _ = run_compare(config(tmp_path, base=str(tmp_path / "main" / "nightly")))
        assert made.where == str(tmp_path / "new" / "compare" / "nightly.csv")

    def test_slices_that_were_not_asked_for(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "base", rows(), slices=["language"])
        evaluated(tmp_path, "new", rows())
        with pytest.raises(
            PreflightError, match=r"base=base was not evaluated by domain: .*slices=\[language,domain\]"
        ):
            run_compare(config(tmp_path, by=["domain"]))

    def test_two_models_of_one_run(self, tmp_path: Path) -> None:
        evaluated(tmp_path, "new", rows() + rows({1}, model="large"))
        evaluated(tmp_path, "base", rows(model="other"))
        with pytest.raises(ConfigError, match=r"base has other with em, new has large with em, small with em; choose"):
            run_compare(config(tmp_path))
        with pytest.raises(ConfigError, match=r"new_model=larg: unknown value; did you mean large\?"):
            run_compare(config(tmp_path, new_model="larg"))
        made, words = run_compare(config(tmp_path, base="new", base_model="small", new_model="large"))
        assert [(pair.base.model, pair.new.model) for pair in made.found] == [("small", "large")]
        assert "large with em against small with em" in words

    def test_models_of_the_same_name_belong_together(self, tmp_path: Path) -> None:
        for name in ("base", "new"):
            evaluated(tmp_path, name, rows() + rows(model="large"))
        made, _ = run_compare(config(tmp_path))
        assert [(pair.base.model, pair.new.model) for pair in made.found] == [("large", "large"), ("small", "small")]


def keep_identity(root: Path, name: str, cap: int, replicates: int) -> None:
    """The identity that the job would have written."""
    path = root / name / "manifests" / "evaluate.json"
    manifest = json.loads(path.read_text())
    manifest["identity"] = {"metrics": {"trust_score": {"at_most_citations": cap}}, "replicates": replicates}
    path.write_text(json.dumps(manifest))


def test_the_table_holds_every_number_and_slice(tmp_path: Path) -> None:
    evaluated(tmp_path, "base", rows())
    evaluated(tmp_path, "new", rows({1}))
    found = compared(tmp_path, by=["language"], out=str(tmp_path / "out"))
    read = [*csv.DictReader(io.StringIO((tmp_path / "out" / "base.csv").read_text()))]
    assert len(read) == len(found)
    row = next(row for row in read if row["key"] == "trust_score" and row["slice_value"] == "de")
    assert float(row["difference"]) == found[("language", "de"), "trust_score"].difference
    assert (row["base_model"], row["slice"], row["unchanged"]) == ("small", "language", "false")


def test_intervals_of_both_ways_of_resampling_agree_where_nothing_is_paired(tmp_path: Path) -> None:
    """A difference to a run that is always right is the run's own number, and so is its interval."""
    evaluated(tmp_path, "base", rows())
    new = evaluated(tmp_path, "new", rows({1, 2, 5, 7, 9}))
    each = compared(tmp_path)[ALL, "macro_f1"]
    assert each.base == 100
    own = summary(new)
    assert each.low == pytest.approx(own["macro_f1_low"] - 100)
    assert each.high == pytest.approx(own["macro_f1_high"] - 100)


def test_names_of_sums_tell_slices_apart(tmp_path: Path) -> None:
    run = evaluated(tmp_path, "base", rows())
    groups = [group_of(name) for name in run.sum_names("evaluate")]
    assert sorted({group["slice_value"] for group in groups}) == ["", "d0", "d1", "d2", "d3", "de", "en"]


@pytest.mark.parametrize("constant", [-100.0, -25.0, 0.0, 100.0])
def test_differences_that_all_questions_share_keep_an_interval(constant: float) -> None:
    from trust.metrics import Stat

    base = Stat(np.full(101, 50.0 - constant / 2), 40)
    new = Stat(np.full(101, 50.0 + constant / 2), 40)
    low, high = paired_interval(base, new, 40)
    assert -100 <= low <= constant <= high <= 100
    assert low < high
    assert paired_interval(base, new, 9) is None
    assert interval(base, 9) is None
