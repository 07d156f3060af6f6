"""The whole job jobs.evaluate beside the best bare loop on the very pairs the job asked.

    python -m tests.bench.evaluate [--rows 2000] [--rounds 3] [--judge DIR] [--threads 2]

The job runs as a user runs it, from the file to the report, in a folder of its own each round. The bare loop takes turns with it,
on the pairs that the first job asked; its judge is loaded and its pairs are in a list before its clock starts. The ratio is the
median of the rounds' ratios, since a machine's speed drifts.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median

import pyarrow.dataset as ds

from tests.bench import bare, rows
from tests.bench.judge import SMALL
from tests.bench.measure import Answers, Pair, machine, spread
from tests.bench.units import JobTimes, run_job
from tests.conftest import SHARED

_BAR = 0.85
_SAMPLE = 64


def job(root: Path, count: int, judge: Path, threads: int) -> JobTimes:
    """`jobs.evaluate` on `count` composed rows."""
    file = root / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows.make(SHARED / "data" / "trust_golden", count))))
    words = ["data=trust", f"data.path={file}", f"judge.entails.model={judge}", f"judge.entails.threads={threads}"]
    return run_job("evaluate", root, "bench", words)


def asked(root: Path) -> list[Pair]:
    """The pairs the job asked its judge, with the labels it got; each once."""
    table = ds.dataset(root / "bench" / "verdicts").to_table(columns=["inputs", "answer", "status"])
    found: dict[tuple[str, str], Pair] = {}
    for verdict in table.to_pylist():
        if verdict["status"] == "ok":
            inputs = dict(verdict["inputs"])
            key = (inputs["premise"], inputs["hypothesis"])
            found[key] = {"premise": key[0], "hypothesis": key[1], "label": int(verdict["answer"])}
    return list(found.values())


def report(rounds: list[tuple[JobTimes, Answers]], pairs: list[Pair]) -> None:
    """Shares of the bare loop's rate, with and without start-up in the job's clock; medians over the rounds."""
    for times, loop in rounds:
        told = f"{times.units:.1f} s of units, {times.whole:.1f} s in all"
        print(f"jobs.evaluate: {told}; bare loop: {len(pairs)} pairs in {loop.seconds:.1f} s, {loop.rate:.2f} pairs/s")
    for name, which in (("from first to last unit", "units"), ("start-up and all", "whole")):
        shares = [loop.seconds / getattr(times, which) for times, loop in rounds]
        share = median(shares)
        met = "met" if share >= _BAR else "NOT met"
        told = ", ".join(f"{each:.2f}" for each in shares)
        print(f"jobs.evaluate, {name}: {share:.2f} of the bare loop ({told}); at least {_BAR:.2f}: {met}")
    times, loop = rounds[0]
    differ = sum(label != pair["label"] for label, pair in zip(loop.labels, pairs, strict=True))
    print(f"asked {times.totals['asks_asked']:.0f} of a judge; labels that differ: {differ}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--judge", type=Path, default=SMALL)
    parser.add_argument("--threads", type=int, default=2)
    words = parser.parse_args()
    print(f"jobs.evaluate on {words.rows} rows; {machine()}", flush=True)
    rounds: list[tuple[JobTimes, Answers]] = []
    pairs: list[Pair] = []
    loop = None
    for _ in range(words.rounds):
        with tempfile.TemporaryDirectory() as scratch:
            times = job(Path(scratch), words.rows, words.judge, words.threads)
            pairs = pairs or asked(Path(scratch))
        loop = loop or bare.best(words.judge, words.threads, "cpu", spread(pairs, _SAMPLE), print)
        rounds.append((times, loop.judge(pairs)))
    report(rounds, pairs)


if __name__ == "__main__":
    main()
