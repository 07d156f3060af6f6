"""NoMIRACL from a folder of released responses to the table of rates, on a real local Ray."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from trust.config import load
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.report import write_report
from trust.results import Results, write
from trust.runs import Run

NAMES = {  # in the expected file: ours
    "n": "n",
    "n_answer_present": "n_answer_present",
    "n_i_dont_know": "n_i_dont_know",
    "n_invalid": "n_invalid",
    "accuracy_pct": "accuracy",
    "error_rate_pct": "{}_rate_of_all",
    "invalid_pct": "invalid_rate",
    "error_rate_valid_only_pct": "{}_rate_of_valid",
}


def evaluate(path: Path, root: Path, *words: str) -> tuple[Run, Results]:
    given = ["data=nomiracl", f"data.path={path}", "metrics=[nomiracl]", f"storage.root={root}", "replicates=100"]
    config = load("evaluate", EvaluateConfig, [*given, *words])
    manifest, run = run_evaluate(config), Run.of(config)
    return run, write(run, manifest, config)


@pytest.mark.usefixtures("ray_session")
def test_released_responses_give_the_expected_table(shared: Path, tmp_path: Path) -> None:
    run, results = evaluate(shared / "data/nomiracl", tmp_path, "compat=upstream", "run=released")
    with (tmp_path / "released/rates.csv").open() as file:
        ours = {(row["language"], row["subset"], row["model"]): row for row in csv.DictReader(file)}
    with (shared / "data/nomiracl/expected_first60.csv").open() as file:
        expected = list(csv.DictReader(file))
    assert len(ours) == len(expected) == 66
    wrong = [
        (row["language"], row["subset"], row["model"], name, row[name], got)
        for row in expected
        for name, own in NAMES.items()
        if float(got := ours[row["language"], row["subset"], row["model"]][own.format(row["error_kind"])] or "nan")
        != pytest.approx(float(row[name]), abs=1e-4)
    ]
    assert not wrong
    assert {row["n_missing"] for row in ours.values()} == {"0"}
    assert pq.read_table(tmp_path / "released/rates.parquet").num_rows == 66
    by_model = {summary["model"]: summary for summary in results.summaries}
    always = by_model["llama-2-70b-chat"]
    assert (always["hallucination_rate_of_valid"], always["macro_hallucination_rate_of_valid"]) == (100.0, 100.0)
    assert always["hallucination_rate_of_valid_low"] < 100
    assert "missing" not in always
    assert "gpt-4-azure" in Path(write_report(run)).read_text()
    assert run.manifest("evaluate").totals["asks_asked"] == 0


@pytest.mark.usefixtures("ray_session")
def test_what_is_missing_is_counted(tmp_path: Path) -> None:
    yes, unknown = "Yes, answer is present", "I don't know"
    for language, models in (("en", ("one", "two")), ("fi", ("one",))):
        rows = [
            {
                "query_id": str(n),
                "docids": [],
                "prompt": None,
                "template": "vanilla",
                "results": {model: yes if n % 2 else unknown for model in models if not (model == "two" and n < 4)},
            }
            for n in range(12)
        ]
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        (folder / f"non_relevant.{language}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run, _ = evaluate(tmp_path / "data", tmp_path / "runs", "run=few")
    found = {(row["language"], row["model"]): row for row in pq.read_table(run.path("rates.parquet")).to_pylist()}
    assert {key: (row["n"], row["n_missing"]) for key, row in found.items()} == {
        ("en", "one"): (12, 0),
        ("en", "two"): (8, 4),
        ("fi", "one"): (12, 0),
        ("fi", "two"): (0, 12),
    }
    assert found["fi", "two"]["hallucination_rate_of_all"] is None
    page = Path(run.path("report.html"))
    assert not page.exists()
    text = Path(write_report(run)).read_text()
    assert "No passage holds the answer" in text
