"""What became of a job's rows: printed, and checked against `max_failed`."""

from collections import Counter

import pyarrow.compute as pc

from trust.ask import SERVED
from trust.config import JobConfig
from trust.errors import TooManyFailed
from trust.runs import Manifest, Run


def print_counts(manifest: Manifest, run: Run) -> None:
    """What became of the rows, and where the tables lie."""
    counts = ", ".join(f"{count} {status}" for status, count in sorted(manifest.counts.items(), reverse=True))
    print(f"{manifest.job}: {counts}")
    for key, number in sorted(manifest.totals.items()):
        if key.startswith(SERVED):
            print(f"  answered by {key.removeprefix(SERVED)}: {number:.0f}")
    if "cost" in manifest.totals:
        print(f"  cost: {manifest.totals['cost']:.6g}")
    for table, parts in sorted(manifest.tables.items()):
        print(f"  {table}: {sum(part['rows'] for part in parts)} rows in {run.path(table)}")


def check_failed(manifest: Manifest, run: Run, config: JobConfig) -> None:
    """Raises TooManyFailed where more than `max_failed` of the rows failed."""
    if manifest.failed_share > config.max_failed:
        reasons = ", ".join(f"{name}: {count}" for name, count in _reasons(manifest, run).items())
        raise TooManyFailed(
            f"{manifest.job}: {manifest.counts['failed']} of {manifest.rows} rows failed ({reasons}), more than "
            f"max_failed={config.max_failed:g}; {_first(manifest, run)}all of them are in the tables of {run.root}"
        )


def _reasons(manifest: Manifest, run: Run) -> dict[str, int]:
    """The most frequent reasons of failed rows, from the reason columns alone."""
    found: Counter[str] = Counter()
    for table in ("failed", "responses", "scores", "errors"):
        only_failed = None if table == "failed" else pc.field("status") == "failed"
        for part in manifest.tables.get(table, []):
            reasons = run.storage.read_table(run.path(part["path"]), ["reason"], only_failed)["reason"]
            for count in reasons.value_counts().to_pylist():
                found[count["values"]] += count["counts"]
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:5])


def _first(manifest: Manifest, run: Run) -> str:
    """The first row that could not be read, in words."""
    for part in manifest.tables.get("failed", [])[:1]:
        row = run.storage.read_range(run.path(part["path"]), 0, 1).to_pylist()[0]
        line = f", line {row['line']}" if row["line"] else ""
        field = f", {row['field']}" if row["field"] else ""
        return f"the first is {row['row']}{line}{field}: {row['detail']}; "
    return ""
