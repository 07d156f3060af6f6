"""The worker and the config of jobs.label, without a cluster."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trust.align.test_label import doc, row
from tests.trust.report.helpers import save
from trust import tables
from trust.align.label_job import LabelConfig, LabelWorker, plan_label
from trust.ask import AskFailed
from trust.ask.lexical import LexicalConfig, LexicalJudge
from trust.config import load
from trust.errors import ConfigError, PreflightError
from trust.runs import Run
from trust.storage import Storage
from trust.units import Unit, UnitResult


class CountingJudge(LexicalJudge):
    """Keeps what it is asked; cannot answer about Oslo while it is down."""

    asked: list[tuple[str, str]]
    down = False

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Any]:
        self.asked += [(pair["premise"], pair["hypothesis"]) for pair in inputs]
        return [
            AskFailed("judge_error", "down") if self.down and "Oslo" in pair["hypothesis"] else answer
            for pair, answer in zip(inputs, super().answer_batch(inputs), strict=True)
        ]


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch) -> list[CountingJudge]:
    """The judges that workers load, one each."""
    made: list[CountingJudge] = []

    def judge(config: LexicalConfig, *_: Any) -> CountingJudge:
        made.append(CountingJudge(config))
        made[-1].asked = []
        return made[-1]

    monkeypatch.setattr(LexicalConfig, "load", judge)
    return made


def sample(number: int, *answers: str, texts: Sequence[str], **changes: Any) -> dict[str, Any]:
    made = row("em", [[answer] for answer in answers], [doc(text) for text in texts], question="Where?")
    return made | {"sample_id": f"d:{number}", "dataset": "d"} | changes


def work(folder: Path, rows: list[dict[str, Any]]) -> UnitResult:
    """What a new worker makes of these samples, in one unit."""
    run = Run(Storage(), str(folder), "in")
    save(run, "prepare", {}, UnitResult({"samples": tables.to_table("samples", rows)}, {"ok": len(rows)}))
    config = load("label", LabelConfig, [f"storage.root={folder}", "from_run=in", "run=out", "judge/entails=lexical"])
    plan = plan_label(config, run, 1, 0)
    worker = LabelWorker(plan.worker_config)
    (part,) = run.parts("samples")
    return asyncio.run(worker.work(Unit("u", {"path": part["path"], "start": 0}, len(rows))))


def test_within_a_unit_no_pair_is_asked_twice_and_in_another_run_none_at_all(
    tmp_path: Path, judges: list[CountingJudge]
) -> None:
    texts = ["Where? Oslo is there.", "Where? Bergen is there.", "Where? Oslo is there."]
    rows = [sample(0, "Oslo", "Bergen", texts=texts), sample(1, "Oslo", "Hamar", texts=texts[:2])]
    first = work(tmp_path, rows)
    assert sorted(judges[0].asked) == [(texts[1], "Where? Bergen"), (texts[0], "Where? Oslo")]
    totals = first.totals
    assert (totals["pairs"], totals["pairs_skipped_by_string"], totals["second_hypotheses"]) == (10, 6, 0)
    assert (totals["asks_asked"], totals["asks_repeated"], totals["asks_reused"]) == (2, 2, 0)
    again = work(tmp_path, rows)
    assert judges[1].asked == []
    assert (again.totals["asks_asked"], again.totals["asks_repeated"], again.totals["asks_reused"]) == (0, 2, 2)
    assert again.tables == first.tables


def test_rows_are_counted_once_and_the_bad_ones_say_why(tmp_path: Path, judges: list[CountingJudge]) -> None:
    good = sample(0, "Oslo", texts=["Where? Oslo."])
    rows = [
        good,
        good | {"sample_id": "d:1", "answers": []},
        good | {"sample_id": "d:2", "docs": []},
        good | {"sample_id": "d:3", "task": "none", "answers": []},
    ]
    result = work(tmp_path, rows)
    assert result.counts == {"ok": 1, "dropped": 1, "failed": 2}
    assert result.totals["dropped:task_none"] == result.totals["failed:no_answers"] == 1
    assert [(bad["row"], bad["reason"]) for bad in result.tables["failed"].to_pylist()] == [
        ("d:1", "no_answers"),
        ("d:2", "no_docs"),
    ]
    (made,) = tables.to_rows(result.tables["samples"])
    assert (made["docs"][0]["answers_found"], made["docs"][0]["rec_score"]) == ([1], 100)


def test_what_a_judge_could_not_answer_fails_its_row_and_is_asked_again(
    tmp_path: Path, judges: list[CountingJudge], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        sample(0, "Oslo", "Bergen", texts=["Where? Oslo, Bergen."]),
        sample(1, "Bergen", texts=["Where? Bergen, by the sea."]),
    ]
    with monkeypatch.context() as within:
        within.setattr(CountingJudge, "down", True)
        first = work(tmp_path, rows)
    assert first.counts == {"ok": 1, "dropped": 0, "failed": 1}
    assert [bad["reason"] for bad in first.tables["failed"].to_pylist()] == ["judge_error"]
    assert first.totals["asks_failed"] == 1
    again = work(tmp_path, rows)
    assert again.counts["ok"] == 2
    assert judges[1].asked == [("Where? Oslo, Bergen.", "Where? Oslo")], "all else was answered before"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["from_table=sampels"], "did you mean samples?"),
        (["oracle_docs=0"], "oracle_docs=0: must be at least 1"),
        (["claims.count=0"], "claims.count=0"),
        (["judge.entails.thresold=1"], "unknown key judge.entails.thresold"),
        (["judge/embed=minilm"], "has no group judge/embed"),
        (["retry_failed=true"], "unknown key retry_failed"),
    ],
)
def test_a_wrong_config_is_named(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load("label", LabelConfig, ["judge/entails=lexical", *words])
    assert message in str(error.value)


def test_the_samples_of_another_job_are_not_written_over(tmp_path: Path) -> None:
    from trust.align.label_job import check

    run = Run(Storage(), str(tmp_path), "in")
    rows = tables.to_table("samples", [sample(0, "Oslo", texts=["Oslo."])])
    save(run, "prepare", {}, UnitResult({"samples": rows}, {"ok": 1}))
    config = load("label", LabelConfig, [f"storage.root={tmp_path}", "run=in", "judge/entails=lexical"])
    with pytest.raises(PreflightError, match=r"run=in holds the samples of jobs\.prepare already"):
        check(config, run)
