"""`judge/entails=nli` as the README has it, and what becomes of rows in languages that the judge is not for."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.evaluate import evaluate as job
from tests.jobs.test_evaluate import rows
from tests.trust.ask.nli_models import write
from trust.config import load
from trust.errors import PreflightError
from trust.evaluate import EvaluateConfig
from trust.runs import Run

TOLD = "3 rows are in languages that the judge is not for (ja 2, und 1)"


def item(number: int, language: str | None, output: str) -> dict[str, Any]:
    docs = [{"title": "Paris", "text": "Paris is the capital of France.", "answers_found": [1]}]
    made = {
        "id": f"q{number}",
        "question": "What is the capital?",
        "answers": [["Paris"]],
        "docs": docs,
        "output": output,
    }
    return made if language is None else made | {"language": language}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    items = [
        item(0, "en", "Paris is the capital [1]."),
        item(1, "en-GB", "It is Paris [1]."),
        item(2, "ja", "パリは首都です [1]。"),
        item(3, "ja", "首都はパリです [1]。"),
        item(4, None, "Paris [1]."),
        item(5, "ja", "Paris"),
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(items))
    return path


def evaluate(tmp_path: Path, data: Path, *words: str) -> tuple[Run, dict[str, Any]]:
    common = [
        f"storage.root={tmp_path}",
        f"data.path={data}",
        "task=em",
        "replicates=200",
        "judge/entails=nli",
        "run=r",
    ]
    config = load("evaluate", EvaluateConfig, [*common, *words])
    job(config)
    run = Run.of(config)
    return run, json.loads(run.storage.read_bytes(run.path("summary.json")))


@pytest.mark.usefixtures("ray_session")
def test_rows_in_other_languages_are_scored_marked_counted_and_said(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path / "model", "deberta-v2")
    run, summary = evaluate(tmp_path, data, f"judge.entails.model={model}", "judge.entails.languages=[en]")
    assert (summary["num_scored"], summary["num_outside_judge_languages"]) == (6, 3)
    assert summary["outside_judge_languages"] == "ja 2, und 1"
    marked = {row["sample_id"] for row in rows(run, "scores") if row["outside_judge_languages"]}
    assert marked == {"mine:q2", "mine:q3", "mine:q4"}, "q5 cites nothing, so that no judge was asked"
    assert TOLD in " ".join(capsys.readouterr().out.split())
    assert TOLD in run.storage.read_bytes(run.path("report.html")).decode()
    assert "nli " in summary["judge"]
    assert all(0 < row["score"] < 1 and row["status"] == "ok" for row in rows(run, "verdicts"))


@pytest.mark.usefixtures("ray_session")
def test_a_judge_for_any_language_marks_nothing(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write(tmp_path / "model")
    run, summary = evaluate(tmp_path, data, f"judge.entails.model={model}", "judge.entails.languages=null")
    assert (summary["num_outside_judge_languages"], summary["outside_judge_languages"]) == (0, "")
    assert not any(row["outside_judge_languages"] for row in rows(run, "scores"))
    assert "not for" not in capsys.readouterr().out + run.storage.read_bytes(run.path("report.html")).decode()


def test_a_model_whose_classes_have_no_names_stops_the_job(tmp_path: Path, data: Path) -> None:
    model = write(tmp_path / "model", labels=["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(PreflightError, match=r"none of which says entailment.*judge\.entails\.entailment_label"):
        evaluate(tmp_path, data, f"judge.entails.model={model}", "judge.entails.languages=[en]")
    assert not (tmp_path / "r" / "manifests").exists()
