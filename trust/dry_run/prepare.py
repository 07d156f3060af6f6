"""A dry run of `jobs.prepare`."""

import logging
from collections import Counter
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from trust import tables
from trust.dry_run import show
from trust.dry_run.sample import ROWS
from trust.prepare.job import PrepareConfig, check, plan_prepare
from trust.prepare.worker import PrepareWorker
from trust.runs import Plan, Run
from trust.units import UnitResult

_TABLES = {"ignore": ("samples",), "require": ("responses",), "split": ("samples", "responses")}

log = logging.getLogger("trust")


def show_prepare(config: PrepareConfig) -> None:
    """Prints what `jobs.prepare` would do."""
    check(config)
    run = Run.of(config)
    show.look(run)
    show.head("prepare", run)
    plan, left = plan_files(config, run)
    if left.rows:
        first = read_first(plan)
        show.line("first rows", first.told)
    show.actors(config.cluster, len(plan.units), 0, all_cpus=False)
    show.line("models", "none")
    show.tables(run, *_TABLES[config.data.outputs], "failed")


def plan_files(config: PrepareConfig, run: Run) -> tuple[Plan, show.Left]:
    """The job's plan, printed. The files are read once, in this process: that is how units and fingerprint are found."""
    plan = plan_prepare(config, run, starmap)
    show.line(
        "data", f"{plan.worker_config['data']['path']} as {plan.worker_config['data']['name']}, read once to find units"
    )
    return plan, show.progress(plan, run, config)


@dataclass(frozen=True)
class First:
    """What became of the first rows of the files.

    Attributes:
        rows: table -> rows of it.
        read: rows of the files that were read.
        told: in words.
    """

    rows: dict[str, list[dict[str, Any]]]
    read: int
    told: str


def read_first(plan: Plan) -> First:
    """The first `ROWS` rows of the files, or a little more, prepared in memory as the job prepares them."""
    import asyncio

    async def work() -> tuple[list[UnitResult], int]:
        worker = PrepareWorker(plan.worker_config)
        results, read = [], 0
        for unit in plan.units:
            if read >= ROWS:
                break
            results.append(await worker.work(unit))
            read += unit.rows
        await worker.close()
        return results, read

    results, read = asyncio.run(work())
    made: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        for name, content in result.tables.items():
            made.setdefault(name, []).extend(tables.to_rows(content))
    failed = made.pop("failed", [])
    total = sum(unit.rows for unit in plan.units)
    counts = [f"{len(rows):,} {name}" for name, rows in sorted(made.items())] or ["no usable row"]
    told = f"the first {read:,} of {total:,}, prepared in memory: {', '.join(counts)}, {len(failed):,} failed"
    if failed:
        (reason, count), row = Counter(row["reason"] for row in failed).most_common(1)[0], failed[0]
        at = f", line {row['line']}" if row["line"] else ""
        told += f" ({reason}: {count:,}); the first: {row['row']}{at}: {row['detail']}"
    return First(made, read, told)
