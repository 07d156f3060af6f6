"""A hundred thousand rows on two cores: what the driver holds does not grow with the rows, and files stay sensible."""

import json
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kills import job
from trust import demo
from trust.runs import Run
from trust.storage import Storage

FEW, MANY = 10_000, 100_000
MB = 2**20


class Measured(NamedTuple):
    """What a job took: seconds, and the driver's highest memory in bytes."""

    seconds: float
    peak: int


def sentences() -> list[str]:
    found: set[str] = set()
    for task in demo.TASKS:
        items = [json.loads(line) for line in demo.path(task).read_text().splitlines()]
        texts = [doc["text"] for item in items if item["language"] == "en" for doc in item["docs"]]
        found |= {part for text in texts for part in re.split(r"(?<=\.) ", text)}
    return sorted(found)


def items(rows: int) -> Iterator[dict[str, Any]]:
    """Rows with five documents of about a hundred words; a fifth of the outputs refuse, the rest cite one to three."""
    pool = sentences()
    for number in range(rows):
        draw = random.Random(number)
        docs = []
        for n in range(5):
            text = f"Note {number}."
            while len(text.split()) < 95:
                text += " " + draw.choice(pool)
            docs.append({"title": f"Notes {number}, {n}", "text": text, "answers_found": [int(draw.random() < 0.4)]})
        output = "I apologize, but I couldn't find an answer to your question in the search results."
        if draw.random() > 0.2:
            said = [(draw.choice(docs[n]["text"].split(". ")).strip("."), n + 1) for n in draw.sample(range(5), 3)]
            output = " ".join(f"{text} [{n}][{draw.randrange(1, 6)}]." for text, n in said)
        yield {
            "id": f"{number:06d}",
            "question": f"What do the notes on {number} say?",
            "language": "en",
            "answers": [[f"note {number}"]],
            "docs": docs,
            "output": output,
        }


def measure(words: list[str], repo: Path) -> Measured:
    """Runs a job in a process of its own and watches its memory."""
    began = time.monotonic()
    started = subprocess.Popen(words, cwd=repo, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    log: list[str] = []
    reader = threading.Thread(target=lambda: log.extend(started.stderr or ()), daemon=True)
    reader.start()
    peak = 0
    while started.poll() is None:
        peak = max(peak, _highest(started.pid))
        time.sleep(0.1)
    assert started.returncode == 0, "".join(log[-20:])
    return Measured(time.monotonic() - began, peak)


def _highest(pid: int) -> int:
    """The kernel's own mark of the most memory a process had resident, in bytes."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) * 1024 if found else 0


def sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_rows(tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints what was measured."""
    peaks: dict[str, dict[int, int]] = {"prepare": {}, "evaluate": {}}
    for rows in (FEW, MANY):
        data = tmp_path / f"{rows}.jsonl"
        with open(data, "w") as file:
            file.writelines(json.dumps(item) + "\n" for item in items(rows))
        common = [f"storage.root={tmp_path}/runs", f"run=r{rows}", "cluster.max_actors=2"]
        for name, words in {
            "prepare": [f"data.path={data}", "data.name=d", "data.outputs=require", "task=em"],
            "evaluate": ["judge/entails=lexical"],
        }.items():
            took = measure(job(name, *words, *common), repo)
            peaks[name][rows] = took.peak
            with capsys.disabled():
                print(f"\n{name}: {rows} rows in {took.seconds:.0f} s, driver at most {took.peak / MB:.0f} MB", end="")

    run = Run(Storage(), str(tmp_path / "runs"), f"r{MANY}")
    for name in peaks:
        manifest = run.manifest(name)
        assert manifest
        assert manifest.rows == MANY
        assert peaks[name][MANY] - peaks[name][FEW] <= 50 * MB, name
        for table, parts in manifest.tables.items():
            assert max(part["bytes"] for part in parts) <= 200 * MB
            assert len(parts) <= 1 + sum(part["bytes"] for part in parts) // (32 * MB), f"{table} is in tiny parts"
    root = Path(run.root)
    assert not [path for path in (root / "_units").rglob("*") if path.suffix in (".parquet", ".npz")]
    assert not list(root.rglob(".*.tmp"))
    assert max(sizes(root)) <= 200 * MB
    kept = sizes(root.parent / "_verdicts")
    assert len(kept) <= 32 + sum(kept) // MB, "the verdict store is in tiny files"
