"""A dry run of `jobs.reproduce`."""

from collections import Counter

from trust.dry_run import show
from trust.reproduce.config import ReproduceConfig
from trust.reproduce.job import FOLDER
from trust.reproduce.plan import plan
from trust.runs import Run


def show_reproduce(config: ReproduceConfig) -> None:
    """Prints which rows of the table would be run, where, and why the others would not."""
    run = Run.of(config)
    show.look(run)
    cells = plan(config)
    show.head("reproduce", run)
    ready = [cell for cell in cells if not cell.lacking]
    show.line("rows", f"{len(ready)} of {len(cells)} rows and data sets of {config.table} can be run")
    for cell in ready:
        done = Run.of(config.evaluate(cell.row, cell.dataset)).manifest("evaluate")
        state = f"finished at {done.finished}" if done else "to be answered and evaluated"
        show.line("", f"{cell.row} on {cell.dataset}, in run {config.evaluate(cell.row, cell.dataset).run}: {state}")
    for (why, remedy), count in Counter(lacking for cell in cells for lacking in cell.lacking).most_common():
        show.line("not run", f"{count}: {why}{f' ({remedy})' if remedy else ''}")
    show.tables(run, *(f"{FOLDER}/{config.table}.{ending}" for ending in ("parquet", "csv", "md")))
