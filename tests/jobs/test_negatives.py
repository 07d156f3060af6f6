"""From responses to labelled errors, over the whole job on a real local Ray."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.negatives import negatives
from tests.jobs.test_evaluate import rows
from tests.trust.align.test_negatives import FIRST, SECOND, SORRY, unanswerable
from tests.trust.report.helpers import response, save
from trust import tables
from trust.align import export
from trust.align.negatives_job import NegativesConfig
from trust.config import load
from trust.errors import ConfigError, PreflightError, TooManyFailed
from trust.runs import Run
from trust.storage import Storage
from trust.units import UnitResult


def responses() -> list[dict[str, Any]]:
    held = {"meta": {"split": "test"}}
    return [
        response(0, f"{FIRST} [1]."),
        response(1, SORRY),
        response(1, f"{SECOND} [1].", draw=1),
        response(2, f"{FIRST} [1][2]."),
        unanswerable(f"{FIRST} [1].") | {"sample_id": "demo:00003"},
        unanswerable(SORRY) | {"sample_id": "demo:00004"},
        response(5, None),
        response(6, ""),
        response(7, f"{FIRST} [1].", **held),
    ]


def write(root: Path, made: list[dict[str, Any]], name: str = "sft") -> Run:
    run = Run(Storage(), str(root), name)
    counts = {status: sum(row["status"] == status for row in made) for status in ("ok", "failed")}
    save(run, "respond", {}, UnitResult({"responses": tables.to_table("responses", made)}, counts))
    return run


def exported(run: Run) -> list[list[dict[str, Any]]]:
    files = sorted(Path(run.path("export")).glob("*.jsonl"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def config(root: Path, *words: str) -> NegativesConfig:
    common = [f"storage.root={root}", "run=sft", "judge/entails=lexical", "max_failed=1"]
    return load("negatives", NegativesConfig, [*common, *words])


@pytest.mark.usefixtures("ray_session")
def test_errors_card_and_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write(tmp_path, responses())
    negatives(config(tmp_path, "unit_rows=3"))
    said = capsys.readouterr().out
    assert "negatives: 6 ok, 3 failed" in said
    assert "4 of 6 have an error" in said
    assert "overcitation: 2, 1" in said
    found = {(row["sample_id"][-1], row["draw"]): row for row in rows(run, "errors")}
    assert len(found) == len(responses())
    assert {key: row["reason"] for key, row in found.items() if row["status"] != "ok"} == {
        ("5", 0): "too_long",
        ("6", 0): "empty_output",
        ("7", 0): "not_for_building",
    }
    assert all(found["5", 0][name] is None for name in ("answerable", "e_1", "severity", "primary_type"))
    assert (found["0", 0]["severity"], found["0", 0]["primary_type"]) == (0, None)
    assert (found["1", 0]["e_1"], found["1", 0]["primary_type"]) == (1, "unwarranted_refusal")
    assert found["1", 1]["severity"] == pytest.approx(1.0)
    assert (found["3", 0]["answerable"], found["3", 0]["severity"]) == (False, 0.5)

    card = json.loads(Path(run.path("cards", "negatives.json")).read_text())
    assert (card["rows_in"], card["ok"]) == (9, 6)
    assert card["failed"] == {"empty_output": 1, "not_for_building": 1, "too_long": 1}
    numbers = card["numbers"]
    assert (numbers["answerable"], numbers["unanswerable"], numbers["with_error"]) == (4, 2, 4)
    assert sum(value for key, value in numbers.items() if key.startswith("primary:")) == 4
    assert exported(run) == [rows(run, "errors")]

    # One unit or many: the same table. The export follows the table that is there.
    before = rows(run, "errors")
    monkeypatch.setattr(export, "FILE_ROWS", 4)
    index = Path(run.path("export", "errors-index.json"))
    kept = index.stat().st_mtime_ns
    negatives(config(tmp_path, "unit_rows=3"))
    assert index.stat().st_mtime_ns == kept, "nothing to do"
    negatives(config(tmp_path, "unit_rows=100", "overwrite=true"))
    assert rows(run, "errors") == before
    assert exported(run) == [before[:4], before[4:8], before[8:]]
    assert run.manifest("negatives").totals["asks_asked"] == 0, "the judge has given these verdicts already"

    # Other rules are another table; without export the old one goes too.
    with pytest.raises(PreflightError, match=r"already holds negatives rows of another config \(weights.overcitation"):
        negatives(config(tmp_path, "weights.overcitation=0"))
    negatives(config(tmp_path, "weights.overcitation=0", "overwrite=true", "export=false"))
    assert run.manifest("negatives").totals["with_error"] == 3
    assert not index.exists()


@pytest.mark.usefixtures("ray_session")
def test_failed_rows_are_done_again_alone(tmp_path: Path) -> None:
    run = write(tmp_path, [response(0, f"{FIRST} [1]."), response(1, SORRY), response(2, "")])
    negatives(config(tmp_path))
    before = run.manifest("negatives")
    negatives(config(tmp_path, "retry_failed=true"))
    after = run.manifest("negatives")
    assert (after.retries, after.counts, after.totals["with_error"]) == (1, before.counts, 1)
    assert len(rows(run, "errors")) == 3
    with pytest.raises(TooManyFailed, match=r"1 of 3 rows failed \(empty_output: 1\)"):
        negatives(config(tmp_path, "max_failed=0.1"))


def test_a_wrong_config_or_a_run_without_responses_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="errors are told by trust_score alone"):
        config(tmp_path, "metrics=[nomiracl]")
    with pytest.raises(ConfigError, match=r"did you mean weights\.overcitation"):
        config(tmp_path, "weights.overcitaton=1")
    with pytest.raises(PreflightError, match=r"run=sft has no finished responses table .*jobs\.respond"):
        negatives(config(tmp_path))


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write(tmp_path, responses())
    before = sorted(tmp_path.rglob("*"))
    negatives(config(tmp_path, "dry_run=true"))
    assert sorted(tmp_path.rglob("*")) == before
    said = capsys.readouterr().out
    assert "of run sft: 9 rows" in said
    assert "export/errors-*.jsonl" in said
    assert run.manifest("negatives") is None
