"""A job run as a user runs it, and when its first unit began and its last one ended."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class JobTimes:
    """Seconds of a job.

    Attributes:
        whole: from the command to its end.
        units: from the first unit's begin to the last one's end: without starting and without finishing.
        totals: the manifest's additive numbers.
    """

    whole: float
    units: float
    totals: dict[str, float]


def run_job(job: str, root: Path, run: str, words: list[str]) -> JobTimes:
    """Runs `python -m jobs.JOB`. Raises RuntimeError with its last lines where it fails."""
    command = [sys.executable, "-m", f"jobs.{job}", f"storage.root={root}", f"run={run}", *words]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    whole = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"jobs.{job} ended with {done.returncode}: {(done.stderr or done.stdout)[-2000:]}")
    manifest = json.loads((root / run / "manifests" / f"{job}.json").read_text())
    folder = root / run / "_units" / job / manifest["fingerprint"]
    return JobTimes(whole, unit_seconds(folder), manifest["totals"])


def unit_seconds(folder: Path) -> float:
    """Seconds that the units of a finished job span: a receipt is written when its unit ends and says how long it took."""
    ends, begins = [], []
    for path in folder.glob("*.json"):
        receipt: dict[str, Any] = json.loads(path.read_text())
        ends.append(path.stat().st_mtime)
        begins.append(ends[-1] - receipt["totals"]["unit_seconds"])
    return max(ends) - min(begins)
