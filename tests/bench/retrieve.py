"""How fast a corpus is read, indexed and searched, and in how much memory.

python -m tests.bench.retrieve FOLDER [--passages 200000] [--questions 1000] [--retriever bm25] [WORD ...]

The corpus is made up: passages of 100 words drawn by Zipf's law, in DPR's form. Further words go to `jobs.retrieve`.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.bench.measure import machine
from trust.runs import Run
from trust.storage import Storage
from trust.tables import to_table
from trust.units import UnitResult

WORDS, LENGTH, EXPONENT = 300_000, 100, 1.07
_BLOCK = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--retriever", default="bm25")
    options, more = parser.parse_known_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    corpus = options.folder / f"corpus-{options.passages}.tsv"
    if not corpus.exists():
        write_corpus(corpus, options.passages)
    run_questions(options.folder / "runs", options.questions)
    print(f"{machine()}; {options.passages:,} passages, {corpus.stat().st_size / 2**20:.0f} MiB", flush=True)
    name = f"found-{int(time.time())}"
    words = [f"storage.root={options.folder}/runs", "from_run=bench", f"run={name}", f"corpus.path={corpus}"]
    began = time.monotonic()
    peaks = watch([sys.executable, "-m", "jobs.retrieve", *words, f"retriever={options.retriever}", *more])
    wall = time.monotonic() - began
    card = json.loads((options.folder / "runs" / name / "cards" / "retrieve.json").read_text())
    report(card, wall, peaks)


def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Ranks of words by Zipf's law, cut at `WORDS`."""
    weights = np.cumsum(np.arange(1, WORDS + 1, dtype=np.float64) ** -EXPONENT)
    return np.searchsorted(weights / weights[-1], rng.random(shape))


def spell(rank: int) -> str:
    """A word of its own for each rank: common ones are short."""
    letters = "etaoinshrdlu"
    word = ""
    rank += 12
    while rank:
        rank, digit = divmod(rank, 12)
        word += letters[digit]
    return word


def write_corpus(path: Path, passages: int) -> None:
    rng = np.random.default_rng(0)
    words = np.array([spell(rank) for rank in range(WORDS)], dtype=object)
    with open(path.with_suffix(".part"), "w") as file:
        file.write("id\ttext\ttitle\n")
        for start in range(0, passages, _BLOCK):
            drawn = words[draw(rng, (min(_BLOCK, passages - start), LENGTH + 2))]
            for number, row in enumerate(drawn, start + 1):
                file.write(f"{number}\t{' '.join(row[2:])}\t{' '.join(row[:2])}\n")
    path.with_suffix(".part").rename(path)


def run_questions(root: Path, questions: int) -> None:
    """A run `bench` with questions of eight words."""
    from tests.trust.report.helpers import save

    drawn = draw(np.random.default_rng(1), (questions, 8))
    same = {"dataset": "bench", "language": "en", "task": "none"}
    rows = [
        {"sample_id": f"q{n:06d}", "question": " ".join(map(spell, row)), "meta": {}, **same}
        for n, row in enumerate(drawn)
    ]
    save(
        Run(Storage(), str(root), "bench"),
        "prepare",
        {},
        UnitResult({"samples": to_table("samples", rows)}, {"ok": questions}),
    )


def watch(words: list[str]) -> dict[str, int]:
    """Runs a job; the largest memory (RSS) of its driver, of one worker, and of all workers together, in bytes."""
    process = subprocess.Popen(words)
    peaks = {"driver": 0, "one worker": 0, "all workers": 0}
    done = threading.Event()

    def look() -> None:
        top = psutil.Process(process.pid)
        while not done.wait(0.25):
            sizes = {"driver": _rss(top)}
            workers = [_rss(child) for child in _children(top) if _is_worker(child)]
            sizes |= {"one worker": max(workers, default=0), "all workers": sum(workers)}
            for key, size in sizes.items():
                peaks[key] = max(peaks[key], size)

    watcher = threading.Thread(target=look)
    watcher.start()
    code = process.wait()
    done.set()
    watcher.join()
    if code:
        raise SystemExit(code)
    return peaks


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "ray::" in " ".join(process.cmdline()[:1]) or process.name().startswith("ray::")
    except psutil.Error:
        return False


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def report(card: dict[str, Any], wall: float, peaks: dict[str, int]) -> None:
    numbers = card["numbers"]
    for key in sorted(numbers):
        if key.endswith("_seconds") and f"{key[:-8]}_rows" in numbers:
            rows, seconds = numbers[f"{key[:-8]}_rows"], numbers[key]
            print(
                f"  {key[:-8]}: {rows:,.0f} rows in {seconds:.1f} s of work, {rows / max(seconds, 1e-9):,.0f} a second"
            )
    print(f"  join: {card['ok']:,} rows in {numbers['work_seconds']:.1f} s of work")
    print(f"  wall: {wall:.1f} s; " + ", ".join(f"{key}: {size / 2**20:,.0f} MiB" for key, size in peaks.items()))


if __name__ == "__main__":
    main()
