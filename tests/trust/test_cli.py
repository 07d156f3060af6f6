"""What every command line shares: exit codes, one clear message, help in words."""

import subprocess
import sys
from pathlib import Path

import pytest

from trust.cli import check_failed, main
from trust.config import JobConfig
from trust.errors import JobStopped, PreflightError, TooManyFailed
from trust.runs import Manifest, Run
from trust.storage import StorageConfig
from trust.tables import to_table


@pytest.mark.parametrize(("error", "code"), [(PreflightError, 2), (TooManyFailed, 3), (JobStopped, 1)])
def test_errors_are_one_line_with_their_exit_code(
    error: type[Exception], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def job(_: JobConfig) -> None:
        raise error("what is wrong")

    monkeypatch.setattr(sys, "argv", ["job"])
    monkeypatch.setattr("trust.cli.load", lambda *_: JobConfig())
    with pytest.raises(SystemExit) as stopped:
        main("prepare", JobConfig, job, "about")
    assert stopped.value.code == code
    assert capsys.readouterr().err == "error: what is wrong\n"


def test_help_shows_purpose_groups_and_keys(repo: Path) -> None:
    words = [sys.executable, "-m", "jobs.evaluate", "--help"]
    done = subprocess.run(words, cwd=repo, capture_output=True, text=True, check=True)
    assert "Scores the responses of a run" in done.stdout
    assert "judge/entails=lexical|t5" in done.stdout
    assert "replicates: 1000" in done.stdout


def test_jobs_run_from_any_folder(tmp_path: Path, repo: Path) -> None:
    words = [sys.executable, "-m", "jobs.prepare", "data.path=none.json"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": str(repo), "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "none.json" in done.stderr


def test_reasons_of_failed_rows_are_counted(tmp_path: Path) -> None:
    config = JobConfig(run="r", storage=StorageConfig(str(tmp_path)))
    run = Run.of(config)
    rows = [{"job": "prepare", "row": str(i), "reason": "missing_field" if i else "invalid_json"} for i in range(3)]
    run.storage.write_table(run.path("failed/p.parquet"), to_table("failed", rows))
    tables = {"failed": [{"path": "failed/p.parquet", "rows": 3, "bytes": 1}]}
    manifest = Manifest("prepare", "r", "f", {}, {}, {}, "", 1, {"ok": 7, "failed": 3}, {}, tables)
    with pytest.raises(TooManyFailed, match=r"3 of 10 rows failed \(missing_field: 2, invalid_json: 1\)"):
        check_failed(manifest, run, config)
    check_failed(manifest, run, JobConfig(run="r", max_failed=0.3))
