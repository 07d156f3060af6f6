"""Too many failed rows: their reasons are counted and the first is told."""

from pathlib import Path

import pytest

from trust.config import JobConfig
from trust.errors import TooManyFailed
from trust.outcome import check_failed
from trust.runs import Manifest, Run
from trust.storage import StorageConfig
from trust.tables import to_table


def test_reasons_of_failed_rows_are_counted(tmp_path: Path) -> None:
    config = JobConfig(run="r", storage=StorageConfig(str(tmp_path)))
    run = Run.of(config)
    base = {"job": "prepare", "line": 7, "field": "docs", "detail": "what is wrong"}
    rows = [base | {"row": str(i), "reason": "missing_field" if i else "invalid_json"} for i in range(3)]
    run.storage.write_table(run.path("failed/p.parquet"), to_table("failed", rows))
    tables = {"failed": [{"path": "failed/p.parquet", "rows": 3, "bytes": 1}]}
    manifest = Manifest("prepare", "r", "f", {}, {}, {}, "", 1, {"ok": 7, "failed": 3}, {}, tables)
    with pytest.raises(TooManyFailed, match=r"3 of 10 rows failed \(missing_field: 2, invalid_json: 1\)") as error:
        check_failed(manifest, run, config)
    assert "the first is 0, line 7, docs: what is wrong; all of them are in" in str(error.value)
    check_failed(manifest, run, JobConfig(run="r", max_failed=0.3))
