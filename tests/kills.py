"""Killing a job with -9 when part of it is done, and counting from the call log what was done twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from trust.runs import Run
from trust.storage import Storage
from trust.tables import sort


def job(name: str, *words: str) -> list[str]:
    """The command line of `jobs.NAME`."""
    return [sys.executable, "-m", f"jobs.{name}", *words]


def kill_when(words: list[str], repo: Path, env: dict[str, str], reached: Callable[[], bool], limit_s: float) -> None:
    """Starts the job in a session of its own and kills all of it as soon as `reached`.

    Raises:
        AssertionError: it ended or `limit_s` went by before that.
    """
    started = subprocess.Popen(words, cwd=repo, env=os.environ | env, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + limit_s
    try:
        while not reached():
            assert started.poll() is None, f"ended with {started.returncode} before it was to be killed"
            assert time.monotonic() < deadline, "did not get that far in time"
            time.sleep(0.02)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def finish(words: list[str], repo: Path, env: dict[str, str]) -> str:
    """Runs the job to its end; what it logged."""
    done = subprocess.run(words, cwd=repo, env=os.environ | env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


def receipts(storage: Storage, run: Run, name: str) -> list[str]:
    """Names of the finished units of a job, whatever its fingerprint."""
    root = run.path("_units", name)
    return [
        receipt
        for folder in storage.list_folders(root)
        for receipt in storage.list_names(f"{root}/{folder}")
        if receipt.endswith(".json")
    ]


def table(run: Run, name: str) -> pa.Table:
    """A whole table of a run, sorted by its key."""
    return sort(name, pa.concat_tables([run.storage.read_table(part["path"]) for part in run.parts(name)]))


def answered(log: Path) -> list[str]:
    """What models answered, a hash an ask, with repeats."""
    lines: list[dict[str, Any]] = []
    for file in log.glob("*.jsonl"):
        lines += [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return [line["hash"] for line in lines]
