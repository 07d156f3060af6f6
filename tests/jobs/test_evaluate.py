"""The evaluate job from a file to the published numbers, with the real judge on a real local Ray."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trust import tables
from trust.config import load
from trust.errors import ConfigError, PreflightError, TooManyFailed, TrustError
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.runs import Manifest, Run
from trust.summary import summarise

TASKS = {"asqa": "em", "qampari": "em5", "eli5": "cm"}


def evaluate(root: Path, *words: str) -> tuple[Run, Manifest, list[dict[str, Any]]]:
    config = load("evaluate", EvaluateConfig, [f"storage.root={root}", "report=false", "replicates=200", *words])
    manifest = run_evaluate(config)
    run = Run.of(config)
    return run, manifest, summarise(run, manifest, config)


def rows(run: Run, table: str) -> list[dict[str, Any]]:
    return [row for part in run.parts(table) for row in tables.to_rows(run.storage.read_table(part["path"]))]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.mark.usefixtures("ray_session", "nltk_data")
@pytest.mark.parametrize("name", TASKS)
def test_golden_with_the_real_judge(shared: Path, root: Path, name: str) -> None:
    golden = shared / "data" / "trust_golden" / name
    words = [
        f"data.path={golden}/input.json",
        f"task={TASKS[name]}",
        f"judge.entails.model={shared}/models/tiny_true_nli",
        "compat=upstream",
        "unit_rows=20",
    ]
    run, manifest, (summary,) = evaluate(root, *words, f"run={name}")

    expected = json.loads((golden / "expected.json").read_text())
    wrong = {k: (summary.get(k), v) for k, v in expected.items() if summary.get(k) != pytest.approx(v, abs=1e-6)}
    assert not wrong
    assert all(f"{key}_n" in summary and f"{key}_low" in summary for key in expected)
    assert manifest.counts == {"scored": 51}

    verdicts = {row["hash"]: row for row in rows(run, "verdicts")}
    asked = [ask["hash"] for score in rows(run, "scores") for ask in score["asks"]]
    assert len(asked) > 100
    assert set(asked) == set(verdicts), "every score can be traced to its verdicts"
    assert all(row["inputs"].keys() == {"premise", "hypothesis"} and row["answer"] in "01" for row in verdicts.values())

    # Another run with another option asks nothing that is known.
    _, again, (other,) = evaluate(root, *words, f"run={name}2", "+metrics.trust_score.refusal_threshold=95")
    assert again.totals.get("asks_asked", 0) == 0
    assert again.totals["asks_reused"] > 0
    assert other["num_scored"] == 51


@pytest.mark.usefixtures("ray_session")
class TestStrict:
    def file(self, folder: Path, items: list[dict[str, Any]]) -> Path:
        path = folder / "mine.json"
        path.write_text(json.dumps(items))
        return path

    def item(self, **changes: Any) -> dict[str, Any]:
        docs = [{"title": "Paris", "text": "Paris is the capital of France.", "answers_found": [1]}]
        base = {"question": "What is the capital of France?", "answers": [["Paris"]], "docs": docs}
        return base | {"language": "en", "output": "Paris is the capital of France [1]."} | changes

    def test_a_perfect_answer_scores_100_and_no_interval_is_given_below_10_questions(self, tmp_path: Path) -> None:
        path = self.file(tmp_path, [self.item()])
        _, _, (summary,) = evaluate(tmp_path, f"data.path={path}", "task=em", "judge/entails=lexical", "run=r")
        assert summary["answered_citation_f1"] == 100
        assert summary["calib_str_em_f1"] == 100
        assert summary["answerable_f1"] == 100
        assert summary["answered_citation_f1_low"] is None
        assert "lexical" in summary["judge"]

    def test_what_cannot_be_measured_is_null_and_never_nan(self, tmp_path: Path) -> None:
        docs = [{"title": "Lyon", "text": "Lyon is a city.", "answers_found": [0]}]
        refusal = "I apologize, but I couldn't find an answer to your question in the search results."
        items = [self.item(docs=docs, output=refusal, id=str(i)) for i in range(3)]
        path = self.file(tmp_path, items)
        _, _, (summary,) = evaluate(tmp_path, f"data.path={path}", "task=em", "judge/entails=lexical", "run=r")
        assert summary["refuse_f1"] == 100
        assert summary["trust_score"] is None
        assert summary["calib_str_em_f1"] is None
        assert not any(isinstance(value, float) and math.isnan(value) for value in summary.values())
        json.dumps(summary, allow_nan=False)

    def test_bad_rows_are_named_and_above_the_limit_the_job_says_so(self, tmp_path: Path) -> None:
        from jobs.evaluate import evaluate as job

        path = self.file(tmp_path, [self.item(), self.item(id="bad", output=None), self.item(docs="none", id="odd")])
        config = load(
            "evaluate",
            EvaluateConfig,
            [
                f"storage.root={tmp_path}",
                f"data.path={path}",
                "task=em",
                "judge/entails=lexical",
                "run=r",
                "report=false",
            ],
        )
        with pytest.raises(TooManyFailed, match="2 of 3 rows failed") as error:
            job(config)
        assert error.value.exit_code == 3
        failed = {row["field"]: row for row in rows(Run.of(config), "failed")}
        assert set(failed) == {"output", "docs"}
        assert all("mine.json" in row["file"] for row in failed.values())


class TestBadInput:
    """One clear message each, exit code 2, and no half-made table."""

    @pytest.mark.parametrize(
        ("content", "name", "message"),
        [
            (None, "mine.json", "mine.json"),
            ("", "mine.json", "empty"),
            ("[]", "mine.json", "no row"),
            ('[\n {"question": }]', "mine.json", r"invalid_json: 1.*line 2"),
            ('{"question": "q"}', "mine.json", "list"),
        ],
    )
    def test_files(self, tmp_path: Path, content: str | None, name: str, message: str) -> None:
        path = tmp_path / name
        if content is not None:
            path.write_text(content)
        with pytest.raises(TrustError, match=message) as error:
            evaluate(tmp_path, f"data.path={path}", "task=em", "judge/entails=lexical", "run=r")
        assert error.value.exit_code in (2, 3)
        assert not (tmp_path / "r" / "manifests" / "evaluate.json").exists()

    def test_a_model_folder_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        with pytest.raises((ConfigError, PreflightError), match="model"):
            evaluate(tmp_path, f"data.path={tmp_path}/x.json", f"judge.entails.model={tmp_path}/model", "run=r")

    def test_no_responses_yet(self, tmp_path: Path) -> None:
        with pytest.raises(PreflightError, match=r"no finished responses table .*jobs\.respond"):
            evaluate(tmp_path, "judge/entails=lexical", "run=r")

    def test_from_the_command_line(self, tmp_path: Path, repo: Path) -> None:
        words = ["judge/entails=lexical", "judge.entails.treshold=0.5", f"storage.root={tmp_path}"]
        done = subprocess.run(
            [sys.executable, "-m", "jobs.evaluate", *words], cwd=repo, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.startswith(
            "error: unknown key judge.entails.treshold; did you mean judge.entails.threshold?"
        )
        assert "Traceback" not in done.stderr
        assert not list(tmp_path.iterdir())
