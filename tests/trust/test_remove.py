"""What goes when a job is done again: the pairs made of its tables, and what was written for others."""

from pathlib import Path

import pytest

from tests.trust.report.helpers import response, save
from trust import tables
from trust.remove import remove_later
from trust.runs import Run
from trust.storage import Storage
from trust.units import UnitResult


@pytest.mark.parametrize(
    ("read", "job", "left"),
    [
        ({"positives_run": "r", "errors_run": "other", "sft_run": None}, "positives", False),
        ({"positives_run": None, "errors_run": None, "sft_run": "r"}, "positives", False),
        ({"positives_run": "other", "errors_run": "r", "sft_run": None}, "positives", True),
        ({"positives_run": "other", "errors_run": "r", "sft_run": None}, "negatives", False),
        ({"positives_run": "other", "errors_run": "r", "sft_run": None}, "respond", False),  # by way of the errors
    ],
)
def test_pairs_go_with_the_tables_that_they_were_made_of(
    tmp_path: Path, read: dict[str, str | None], job: str, left: bool
) -> None:
    run = Run(Storage(), str(tmp_path), "r")
    row = response(0, "x")
    for maker, table in (("respond", "responses"), ("positives", "positives"), ("negatives", "errors")):
        save(run, maker, {}, UnitResult({table: tables.to_table(table, [row])}, {"ok": 1}))
    save(run, "pair", read, UnitResult({"failed": tables.to_table("failed", [])}, {}))
    for path in (("hub", "README.md"), ("hub", "dpo", "train-00000-of-00001.parquet"), ("audit", "pair.json")):
        run.storage.write_bytes(run.path(*path), b"x")
    remove_later(job, run)
    assert (run.manifest("pair") is not None) == left
    assert run.storage.exists(run.path("hub", "README.md")) == left
    assert run.storage.exists(run.path("hub", "dpo", "train-00000-of-00001.parquet")) == left
    assert run.storage.exists(run.path("audit", "pair.json")) == left
