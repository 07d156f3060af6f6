"""The worker of jobs.evaluate on units, without a cluster."""

import asyncio
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.trust.report.helpers import response, save, unanswerable
from trust import metrics, tables
from trust.ask import AskFailed
from trust.ask.lexical import LexicalConfig, LexicalJudge
from trust.evaluate import EvaluateWorker
from trust.metrics.trust_score import METRIC as TrustScore
from trust.runs import Run
from trust.storage import Storage
from trust.sums import group_of
from trust.units import Unit, UnitResult

ROWS = [
    response(0, "The Angara flows out of Lake Baikal [1].", meta={"domain": "rivers"}),
    response(1, "The Murray does [2].", meta={"domain": "rivers"}),
    unanswerable(2, "I apologize, but I couldn't find an answer to your question in the search results."),
    response(3, None),
]


class DownJudge(LexicalJudge):
    """Cannot answer about the Murray while it is down."""

    down = True

    def answer_batch(self, inputs: Any) -> list[Any]:
        return [
            AskFailed("judge_error", "down") if self.down and "Murray" in pair["hypothesis"] else answer
            for pair, answer in zip(inputs, super().answer_batch(inputs), strict=True)
        ]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvaluateWorker:
    monkeypatch.setattr(LexicalConfig, "load", lambda *_: DownJudge(LexicalConfig()))
    config = {
        "judge": {"entails": asdict(LexicalConfig())},
        "metrics": {"trust_score": {}},
        "compat": "strict",
        "slices": ["language", "domain"],
        "replicates": 100,
        "storage": {"root": str(tmp_path), "endpoint": None, "region": None},
        "root": str(tmp_path),
    }
    return EvaluateWorker(config)


def test_a_retry_adds_up_to_a_run_that_never_failed(
    tmp_path: Path, worker: EvaluateWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(Storage(), str(tmp_path), "r")
    path = run.path("responses", "respond-0.parquet")
    run.storage.write_table(path, tables.to_table("responses", ROWS))
    unit = Unit("u0", {"path": path, "start": 0}, len(ROWS))

    def work(unit: Unit) -> UnitResult:
        return asyncio.run(worker.work(unit))

    first = work(unit)
    assert first.counts["failed"] == 2
    assert (first.totals["failed:judge_error"], first.totals["failed:no_response"]) == (1, 1)
    save(run, "evaluate", {}, first)
    monkeypatch.setattr(DownJudge, "down", False)
    before = {table: [part["path"] for part in run.parts(table)] for table in ("scores", "verdicts")}
    again = work(replace(unit, source=unit.source | {"retry": before}))
    assert again.tables["scores"]["sample_id"].to_pylist() == ["demo:00001", "demo:00003"], "failed rows, no others"
    assert again.totals["asks_asked"] <= first.totals["asks_asked"], "what was answered is not asked again"

    clean = work(unit)
    both = {status: first.counts.get(status, 0) + again.counts.get(status, 0) for status in ("scored", "na", "failed")}
    assert {status: n for status, n in both.items() if n} == clean.counts
    assert first.totals["failed:judge_error"] + again.totals["failed:judge_error"] == 0
    assert set(first.sums) | set(again.sums) == set(clean.sums)
    for name, array in clean.sums.items():
        assert np.array_equal(first.sums[name] + again.sums[name], array), name
    rescored = {row["sample_id"]: row for row in tables.to_rows(again.tables["scores"])}
    scored = {row["sample_id"]: row for row in tables.to_rows(clean.tables["scores"])}
    assert rescored["demo:00001"]["values"] == scored["demo:00001"]["values"] != {}


def test_slices_add_up_to_the_whole_and_a_retry_changes_them_too(
    tmp_path: Path, worker: EvaluateWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws of one question lie in two units; the retry of the first leaves those of the second alone."""
    run = Run(Storage(), str(tmp_path), "r")
    path = run.path("responses", "respond-0.parquet")
    rows = [*ROWS, response(3, "The Murray does [1].", draw=1), response(4, None, meta={"domain": "lakes"})]
    run.storage.write_table(path, tables.to_table("responses", rows))
    units = [Unit("u0", {"path": path, "start": 0}, 4), Unit("u1", {"path": path, "start": 4}, 2)]

    def total(results: list[UnitResult]) -> dict[tuple[str, str], Any]:
        added: dict[tuple[str, str], Any] = {}
        for result in results:
            for name, array in result.sums.items():
                group = group_of(name)
                key = (group["slice"], group["slice_value"])
                added[key] = added.get(key, 0) + array
        return added

    first = [asyncio.run(worker.work(unit)) for unit in units]
    sums = total(first)
    assert set(sums) == {
        ("", ""),
        ("language", "en"),
        ("domain", "rivers"),
        ("domain", "lakes"),
        ("domain", "(none)"),
    }
    for column in ("language", "domain"):
        assert np.array_equal(sum(array for key, array in sums.items() if key[0] == column), sums["", ""])
    slices = {row["sample_id"]: row["slices"] for result in first for row in tables.to_rows(result.tables["scores"])}
    assert slices["demo:00000"] == {"domain": "rivers", "language": "en"}

    merged = UnitResult({name: pa.concat_tables([r.tables[name] for r in first]) for name in ("scores", "verdicts")})
    save(run, "evaluate", {}, merged)
    monkeypatch.setattr(DownJudge, "down", False)
    before = {table: [part["path"] for part in run.parts(table)] for table in ("scores", "verdicts")}
    again = [asyncio.run(worker.work(replace(u, source=u.source | {"retry": before}))) for u in units]
    retried = [row["sample_id"] for result in again for row in tables.to_rows(result.tables["scores"])]
    assert sorted(retried) == ["demo:00001", "demo:00003", "demo:00003", "demo:00004"]
    clean = total([asyncio.run(worker.work(unit)) for unit in units])
    both = total([*first, *again])
    assert set(both) == set(clean)
    for key, array in clean.items():
        assert np.array_equal(both[key], array), key


class Careless(TrustScore):
    """A metric of somebody's that does not mind what it is given."""

    async def row(self, row: metrics.Row, ask: Any) -> metrics.RowScore:
        if row["sample_id"] == "demo:00000":
            return metrics.RowScore(values={"share": float("nan")})
        if row["sample_id"] == "demo:00001":
            return metrics.RowScore(terms={"unheard_of": 1.0})
        raise ZeroDivisionError("nothing to divide by")


def test_a_metric_that_raises_or_gives_no_number_fails_the_row_and_not_the_job(
    tmp_path: Path, worker: EvaluateWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrustScore, "row", Careless.row)
    path = str(tmp_path / "responses.parquet")
    Storage().write_table(path, tables.to_table("responses", ROWS[:3]))
    made = asyncio.run(worker.work(Unit("u0", {"path": path, "start": 0}, 3)))
    assert made.counts == {"failed": 3}
    rows = made.tables["scores"].to_pylist()
    assert {row["reason"] for row in rows} == {"metric_error"}
    assert "the value share is nan" in rows[0]["detail"]
    assert "the term unheard_of is not among" in rows[1]["detail"]
    assert "ZeroDivisionError: nothing to divide by" in rows[2]["detail"]
