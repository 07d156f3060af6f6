"""The published way of judging, from the shared benchmark program, and the rates it says it was measured at."""

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.measure import Answers, Pair
from tests.conftest import SHARED

PROGRAM = SHARED / "bench" / "published_way.py"
_TOLERANCE = 0.15
_RATES = {"small": r"(\d+(?:\.\d+)?) pairs/s with the 5M", "base": r"(\d+(?:\.\d+)?) with a model of\s+T5-base size"}
# The program names no device; torch's default one takes its model and its inputs along.
_ON_DEVICE = (
    "import runpy, sys, torch; torch.set_default_device(sys.argv[1]); del sys.argv[:2]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def command(judge: Path, pairs: Path, labels: Path, threads: int, device: str = "cpu") -> list[str]:
    """The program's command line."""
    options = ["--judge", judge, "--pairs", pairs, "--threads", threads, "--out", labels]
    start = [PROGRAM] if device == "cpu" else ["-c", _ON_DEVICE, device, PROGRAM]
    return [sys.executable, *map(str, start), *map(str, options)]


def judge(folder: Path, pairs: Sequence[Pair], threads: int, device: str = "cpu") -> Answers:
    """Runs the program on `pairs`; seconds are those it counts itself, without loading."""
    with tempfile.TemporaryDirectory() as scratch:
        given, labels = Path(scratch, "pairs.json"), Path(scratch, "labels.json")
        given.write_text(json.dumps(list(pairs)))
        run = subprocess.run(
            command(folder, given, labels, threads, device), check=True, capture_output=True, text=True
        )
        return Answers(json.loads(labels.read_text()), len(pairs) / read_rate(run.stdout))


def read_rate(printed: str) -> float:
    """Pairs a second that the program printed."""
    found = re.search(r"pairs, (\d+(?:\.\d+)?) pairs/s", printed)
    if not found:
        raise ValueError(f"{PROGRAM} printed no rate: {printed[-300:]}")
    return float(found[1])


def written_rate(size: str) -> float:
    """The rate that the program's own text gives for its kind of machine."""
    text = ast.get_docstring(ast.parse(PROGRAM.read_text())) or ""
    found = re.search(_RATES[size], text)
    if not found:
        raise ValueError(f"{PROGRAM} no longer says its rate with the {size} judge")
    return float(found[1])


def verdict_on_machine(size: str, measured: float) -> str:
    """Whether this machine, now, is of the class that the written rate was measured on."""
    written = written_rate(size)
    share = measured / written
    line = f"published way, {size} judge: {measured:.2f} pairs/s here, {written:g} written in {PROGRAM.name}: "
    if abs(share - 1) <= _TOLERANCE:
        return line + "the same class of machine, and quiet"
    return line + f"{share:.2f} of it, so not that class of machine or not quiet; the ratios are this machine's"
