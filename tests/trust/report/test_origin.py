"""Where a run's numbers come from."""

import json
from pathlib import Path

from tests.trust.report.helpers import response, save, write_run
from trust import tables
from trust.report import origin
from trust.report.sample import tally
from trust.runs import Run
from trust.units import UnitResult


def prepared(run: Run, bad: int) -> None:
    """A prepare job with rows that could not be read."""
    failed = [
        {"job": "prepare", "row": f"f:{i:04d}", "file": "rows.jsonl", "line": i, "field": "docs", "reason": "no_docs"}
        for i in range(bad)
    ]
    save(run, "prepare", {}, UnitResult({"failed": tables.to_table("failed", failed)}, {"ok": 3, "failed": bad}))


def test_counts_and_reasons_of_every_job(tmp_path: Path) -> None:
    run = write_run(tmp_path, [response(1, "Angara [1]."), response(2, None)])
    prepared(run, 2)
    scores = [part | {"path": run.path(part["path"])} for part in run.manifest("evaluate").tables["scores"]]
    found = [origin.describe(where, m, tally(run.storage, scores, 10)) for where, m in origin.jobs(run, None)]
    assert [(job["job"], job["done"], job["failed"], job["reasons"]) for job in found] == [
        ("prepare", 3, 2, [("no_docs", 2)]),
        ("respond", 1, 1, [("too_long", 1)]),
        ("evaluate", 1, 1, [("no_response", 1)]),
    ]


def test_unreadable_rows_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    run = write_run(tmp_path, [response(1, "Angara [1].")])
    prepared(run, 120)
    found = origin.unreadable(origin.jobs(run, None))
    assert (len(found["rows"]), found["all"]) == (50, 120)
    assert found["rows"][1]["line"] == 1


def test_jobs_of_other_runs_are_followed(tmp_path: Path) -> None:
    answers = write_run(tmp_path, [response(1, "Angara [1].")], name="answers")
    prepared(Run(answers.storage, str(tmp_path), "samples"), 1)
    manifest = json.loads(answers.storage.read_bytes(answers.path("manifests", "respond.json")))
    manifest["config"]["from_run"] = "samples"
    answers.storage.write_bytes(answers.path("manifests", "respond.json"), json.dumps(manifest).encode())
    again = Run(answers.storage, str(tmp_path), "again")
    evaluated = answers.storage.read_bytes(answers.path("manifests", "evaluate.json"))
    again.storage.write_bytes(again.path("manifests", "evaluate.json"), evaluated)
    found = [(where.name, manifest.job) for where, manifest in origin.jobs(again, "answers")]
    assert found == [("samples", "prepare"), ("answers", "respond"), ("again", "evaluate")]
