"""The whole job jobs.evaluate beside the best bare loop on the very pairs the job asked.

    python -m tests.bench.evaluate [--rows 2000] [--judge DIR] [--threads 2]

The job runs as a user runs it, from the file to the report. The bare loop runs after it, since the pairs are the job's; its
judge is loaded and its pairs are in a list before its clock starts.
"""

import argparse
import json
import tempfile
from pathlib import Path

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


def report(times: JobTimes, pairs: list[Pair], loop: Answers) -> None:
    """Shares of the bare loop's rate, with and without start-up in the job's clock."""
    print(f"bare loop: {len(pairs)} pairs in {loop.seconds:.1f} s, {loop.rate:.2f} pairs/s")
    for name, seconds in (("from first to last unit", times.units), ("start-up and all", times.whole)):
        share = loop.seconds / seconds
        met = "met" if share >= _BAR else "NOT met"
        print(f"jobs.evaluate, {name}: {seconds:.1f} s, {share:.2f} of the bare loop; at least {_BAR:.2f}: {met}")
    differ = sum(label != pair["label"] for label, pair in zip(loop.labels, pairs, strict=True))
    print(f"asked {times.totals['asks_asked']:.0f} of a judge; labels that differ: {differ}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--judge", type=Path, default=SMALL)
    parser.add_argument("--threads", type=int, default=2)
    words = parser.parse_args()
    print(f"jobs.evaluate on {words.rows} rows; {machine()}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        times = job(Path(scratch), words.rows, words.judge, words.threads)
        pairs = asked(Path(scratch))
    loop = bare.best(words.judge, words.threads, "cpu", spread(pairs, _SAMPLE), print)
    report(times, pairs, loop.judge(pairs))


if __name__ == "__main__":
    main()
