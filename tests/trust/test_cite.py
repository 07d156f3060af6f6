"""The worker and the config of jobs.cite, without a cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.trust.report.helpers import response, save, write_run
from trust import tables
from trust.ask import AskFailed
from trust.ask.lexical import LexicalConfig, LexicalJudge
from trust.cite import CiteConfig, CiteWorker
from trust.config import load
from trust.errors import ConfigError
from trust.posthoc import CiteOptions
from trust.report import origin
from trust.runs import Run
from trust.storage import Storage
from trust.units import Unit, UnitResult

ANGARA, MURRAY = "The Angara flows out of Lake Baikal.", "The Murray is a river."


class DownJudge(LexicalJudge):
    """Cannot answer about the Murray while it is down; counts what it is asked."""

    down = True
    asked = 0

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
        self.asked += len(inputs)
        return [
            AskFailed("judge_error", "down") if self.down and "Murray" in pair["hypothesis"] else answer
            for pair, answer in zip(inputs, super().answer_batch(inputs), strict=True)
        ]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CiteWorker:
    return make(tmp_path, monkeypatch)


def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> CiteWorker:
    monkeypatch.setattr(LexicalConfig, "load", lambda config, *_: DownJudge(config))
    config = {
        "ask": "entails",
        "backend": asdict(LexicalConfig()),
        "cite": asdict(CiteOptions("entailment", "p")),
        "compat": "strict",
        "samples": [],
        "closed_book": None,
        "storage": {"root": str(tmp_path), "endpoint": None, "region": None},
        "root": str(tmp_path),
    }
    return CiteWorker(config | changes)


def work(worker: CiteWorker, tmp_path: Path, rows: list[dict[str, Any]], **source: Any) -> UnitResult:
    path = str(tmp_path / "in.parquet")
    Storage().write_table(path, tables.to_table("responses", rows))
    return asyncio.run(worker.work(Unit("u0", {"path": path, "start": 0, **source}, len(rows))))


def made(result: UnitResult) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["sample_id"][-1], row["draw"]): row for row in tables.to_rows(result.tables["responses"])}


def test_a_row_that_cannot_be_cited_fails_and_the_others_do_not(tmp_path: Path, worker: CiteWorker) -> None:
    result = work(worker, tmp_path, [response(0, ANGARA), response(1, f"{ANGARA} {MURRAY}"), response(2, None)])
    found = made(result)
    assert found["0", 0]["output"] == "The Angara flows out of Lake Baikal [1]."
    assert [found[key, 0]["reason"] for key in "012"] == [None, "judge_error", "too_long"]
    assert found["1", 0]["output"] is None
    assert result.counts == {"ok": 1, "failed": 2}
    assert result.totals["failed:judge_error"] == result.totals["failed:too_long"] == 1
    assert [row["sample_id"][-1] for row in tables.to_rows(result.tables["citations"])] == ["0"]


def test_a_retry_does_the_failed_rows_alone_and_asks_nothing_that_is_known(tmp_path: Path, worker: CiteWorker) -> None:
    rows = [response(0, ANGARA), response(1, f"{ANGARA} {MURRAY}"), response(1, MURRAY, draw=1), response(2, None)]
    first = work(worker, tmp_path, rows)
    assert first.counts == {"ok": 1, "failed": 3}
    before = str(tmp_path / "before.parquet")
    Storage().write_table(before, first.tables["responses"])
    judge = worker._backend
    judge.down = False
    asked = judge.asked
    again = work(worker, tmp_path, rows[:2], retry={"responses": [before]})
    assert {key: row["status"] for key, row in made(again).items()} == {("1", 0): "ok"}, (
        "the other draw is another unit's"
    )
    assert again.counts == {"ok": 1, "failed": -1}
    assert again.totals["failed:judge_error"] == -1
    assert judge.asked - asked == 2, "one sentence beside two documents; the other's verdicts are in the store"


def test_a_closed_book_response_gets_the_documents_of_its_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = {key: response(0, "")[key] for key in tables.SCHEMAS["samples"].names if key in response(0, "")}
    path = str(tmp_path / "samples.parquet")
    Storage().write_table(path, tables.to_table("samples", [sample]))
    worker = make(
        tmp_path,
        monkeypatch,
        samples=[path],
        closed_book="closedbook",
        cite=asdict(CiteOptions("entailment", "p", docs=1)),
    )
    bare = {"docs": [], "prompt": "closedbook"}
    rows = [response(0, ANGARA, **bare), response(1, ANGARA, **bare), response(2, ANGARA, docs=[])]
    found = made(work(worker, tmp_path, rows))
    assert [doc["title"] for doc in found["0", 0]["docs"]] == ["Baikal"]
    assert found["0", 0]["output"].endswith("Baikal [1].")
    assert found["1", 0]["reason"] == "no_sample"
    assert (found["2", 0]["status"], found["2", 0]["output"]) == ("ok", ANGARA), "it never had documents"


def test_a_response_keeps_the_documents_that_it_was_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make(tmp_path, monkeypatch, cite=asdict(CiteOptions("entailment", "p", docs=1, existing="kept")))
    result = work(worker, tmp_path, [response(0, "Both are rivers [2]. The Angara flows out of Lake Baikal.")])
    row = made(result)["0", 0]
    assert row["output"] == "Both are rivers [2]. The Angara flows out of Lake Baikal [1]."
    assert len(row["docs"]) == 2, "so that [2] still is what it was"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run=closed"], "give the cited responses a run of their own"),
        (["cite=embeding"], "did you mean embedding?"),
        (["judge/embed=gtx"], "did you mean gtr?"),
        (["judge.embed.threshold=1"], "unknown key judge.embed.threshold"),
        (["retry_failed=true", "overwrite=true"], "give one of them"),
    ],
)
def test_a_wrong_config_is_named(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load("cite", CiteConfig, ["from_run=closed", *words])
    assert message in str(error.value)


def test_the_run_to_read_has_to_be_named() -> None:
    with pytest.raises(ConfigError, match=r"from_run is not set: add from_run=\.\.\."):
        load("cite", CiteConfig, [])


def test_a_report_names_the_jobs_before_the_citing(tmp_path: Path) -> None:
    closed = Run(Storage(), str(tmp_path), "closed")
    failed = UnitResult({"responses": tables.to_table("responses", [response(1, None)])}, {"failed": 1})
    save(closed, "respond", {}, failed)
    run = write_run(tmp_path, [response(0, "Angara [1].")], "cited")
    run.storage.delete(run.path("manifests", "respond.json"))
    save(run, "cite", {"from_run": "closed"}, failed)
    jobs = origin.jobs(run, None)
    assert [(where.name, manifest.job) for where, manifest in jobs] == [
        ("closed", "respond"),
        ("cited", "cite"),
        ("cited", "evaluate"),
    ]
    assert origin.describe(*jobs[1], {})["reasons"] == [("too_long", 1)]
