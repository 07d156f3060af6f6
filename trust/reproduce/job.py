"""`jobs.reproduce` from checked config to tables: rows that can be run are, in runs of their own that are taken up again."""

import logging
from typing import Any

import pyarrow as pa

from trust import results
from trust.evaluate import run_evaluate
from trust.outcome import check_failed
from trust.prepare.job import run_prepare
from trust.reproduce import lines, markdown
from trust.reproduce.config import ReproduceConfig
from trust.reproduce.plan import Cell, plan
from trust.respond import run_respond
from trust.runs import Run
from trust.storage import join

FOLDER = "reproduce"

log = logging.getLogger("trust")


def run_reproduce(config: ReproduceConfig) -> tuple[pa.Table, str]:
    """Runs what can be run of a published table, and writes ours beside the printed numbers to `{run}/reproduce/` as
    `{table}.parquet`, `.csv` and `.md`.

    A data set is read in the run `{run}-{dataset}`, once; a row answers and is evaluated in `{run}-{row}-{dataset}`. All of
    them are resumed like any run, and taken as they are where they are finished.

    Returns:
        The table (`lines.SCHEMA`) and the Markdown.

    Raises:
        ConfigError, PreflightError: as `plan` says, before any model is loaded.
        TooManyFailed: of a data set too many rows cannot be read.
    """
    cells = plan(config)
    ready = [cell for cell in cells if not cell.lacking]
    run = Run.of(config)
    run.storage.preflight(run.root)
    for dataset in dict.fromkeys(cell.dataset for cell in ready):
        prepare = config.prepare(dataset)
        check_failed(run_prepare(prepare), Run.of(prepare), prepare)
    measured = {}
    for number, cell in enumerate(ready, start=1):
        log.info("reproduce: %s on %s (%d of %d)", cell.row, cell.dataset, number, len(ready))
        measured[cell] = _measure(config, cell)
    table = lines.table(config, cells, measured)
    words = markdown.render(config, table)
    _write(run, config.table, table, words)
    return table, words


def _measure(config: ReproduceConfig, cell: Cell) -> dict[str, Any]:
    """The summary of a row on a data set (trust.summary)."""
    run_respond(config.respond(cell.row, cell.dataset))
    evaluate = config.evaluate(cell.row, cell.dataset)
    manifest, run = run_evaluate(evaluate), Run.of(evaluate)
    summaries = results.write(run, manifest, evaluate).summaries
    if len(summaries) > 1:
        found = ", ".join(f"{each['dataset']} ({each['task']})" for each in summaries)
        return {"withheld": f"data.{cell.dataset} holds several data sets: {found}"}
    return summaries[0]


def _write(run: Run, name: str, table: pa.Table, words: str) -> None:
    results.write_sheet(run, join(FOLDER, name), table)
    run.storage.write_bytes(run.path(FOLDER, f"{name}.md"), words.encode())
