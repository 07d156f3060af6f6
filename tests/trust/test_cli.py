"""What every command line shares: exit codes, one clear message, help in words."""

import subprocess
import sys
from pathlib import Path

import pytest

from trust.cli import main
from trust.config import JobConfig
from trust.errors import JobStopped, PreflightError, TooManyFailed


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


def test_a_file_that_is_gone_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["job"])
    monkeypatch.setattr("trust.cli.load", lambda *_: JobConfig())
    with pytest.raises(SystemExit) as stopped:
        main("prepare", JobConfig, lambda _: print((tmp_path / "part").read_bytes()), "about")
    assert stopped.value.code == 1
    said = capsys.readouterr().err
    assert str(tmp_path / "part") in said
    assert "overwrite=true" in said
    assert said.count("\n") == 1


def test_help_shows_purpose_groups_and_keys(repo: Path) -> None:
    words = [sys.executable, "-m", "jobs.evaluate", "--help"]
    done = subprocess.run(words, cwd=repo, capture_output=True, text=True, check=True)
    assert "Scores the responses of a run" in done.stdout
    assert "judge/entails=lexical|llm|llm_openai|nli|t5" in done.stdout
    assert "replicates: 1000" in done.stdout


def test_jobs_run_from_any_folder(tmp_path: Path, repo: Path) -> None:
    words = [sys.executable, "-m", "jobs.prepare", "data.path=none.json"]
    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": str(repo), "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "none.json" in done.stderr


def test_a_reader_that_stops_reading_changes_no_exit_code() -> None:
    program = "import sys; from trust.cli import say; [say('x' * 70_000) for _ in range(3)]; sys.exit(4)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=60) == 4
