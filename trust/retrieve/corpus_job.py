"""From files to a corpus that can be searched: clean passages with ids of their own, in parts of sensible size.

A corpus is a run of its own, `{storage.root}/_corpora/{fingerprint}`, made by the first run that searches it and read by all
others. Its fingerprint is that of the files' names, sizes and times and of what their columns are called, so that to know it
again nothing is read; `failed` holds what was no passage, and why.
"""

import contextlib
import logging
import posixpath
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from trust.align.card import write_card
from trust.align.rows import tally
from trust.config import plain
from trust.errors import JobStopped, PreflightError, RowError
from trust.prepare import plan as planning
from trust.prepare.config import DataConfig
from trust.prepare.duplicates import placed_table
from trust.prepare.files import find_files
from trust.prepare.job import on_cluster
from trust.prepare.read import RawRow, UnitReader
from trust.retrieve.config import CorpusConfig, RetrieveConfig
from trust.retrieve.corpus import passage
from trust.retrieve.steps import WORK_S, execute_aside, side_run
from trust.runs import Manifest, Plan, Run
from trust.storage import absolute, open_storage
from trust.tables import to_table
from trust.units import Unit, UnitResult

log = logging.getLogger("trust")

UNIT_ROWS = 32_768  # passages; every task that looks for repeated ids opens the parts of all units
# No list or object is read from a cell of a corpus, whatever its column is called.
_NO_LISTS = {"answers": "", "docs": "", "references": ""}


def find_corpus(config: RetrieveConfig) -> tuple[Run, dict[str, Any]]:
    """Where the corpus lies or will lie, and what it is known by.

    Raises:
        PreflightError: there is no such file, or none that can be read.
    """
    path, storage = absolute(config.corpus.path), open_storage(config.storage.root, config.storage)
    with _as_corpus():
        files, warnings = find_files(_data(config.corpus), storage)
    for warning in warnings:
        log.warning("%s", warning)
    written = {file.path: file.written for file in storage.list_files(path)}
    above = len(posixpath.dirname(path))
    identity = {
        "files": [[file.path[above:], file.size, written.get(file.path)] for file in files],
        "columns": config.corpus.columns,
    }
    return side_run(config, "", identity), identity


def make_corpus(config: RetrieveConfig) -> tuple[Run, Manifest]:
    """Reads the corpus, where no run before has.

    Raises:
        PreflightError: no such file, or none that can be read as a whole.
        JobStopped: no passage in it.
    """
    run, identity = find_corpus(config)
    manifest = run.manifest("corpus")
    if manifest is None:
        manifest = execute_aside(_plan(config, run, identity), run, config)
        write_card(with_repeats(manifest), run)
    if not manifest.tables.get("corpus"):
        reasons = ", ".join(key.partition(":")[2] for key in sorted(manifest.totals) if key.startswith("failed:"))
        raise JobStopped(f"corpus.path={config.corpus.path}: none of its {manifest.rows} rows is a passage ({reasons})")
    return run, manifest


def with_repeats(manifest: Manifest) -> Manifest:
    """The manifest of a corpus with `failed:duplicate` among its totals: repeats are found when all units are done."""
    told = sum(value for key, value in manifest.totals.items() if key.startswith("failed:"))
    repeats = manifest.counts.get("failed", 0) - told
    return replace(manifest, totals=manifest.totals | ({"failed:duplicate": repeats} if repeats else {}))


def _data(corpus: CorpusConfig) -> DataConfig:
    return DataConfig(path=absolute(corpus.path), name="corpus")


@contextlib.contextmanager
def _as_corpus() -> Iterator[None]:
    """What the reader of data sets says of a path is said of the corpus."""
    try:
        yield
    except PreflightError as error:
        raise PreflightError(str(error).replace("data.path=", "corpus.path=")) from error


def _plan(config: RetrieveConfig, run: Run, identity: dict[str, Any]) -> Plan:
    cpus = config.cluster.actor_cpus or 1
    with _as_corpus():
        files = planning.plan(_data(config.corpus), run.storage, UNIT_ROWS, partial(on_cluster, config.cluster, cpus))
    for warning in files.warnings:
        log.warning("%s", warning)
    return Plan(
        job="corpus",
        identity=identity,
        units=files.units,
        worker="trust.retrieve.corpus_job:CorpusWorker",
        worker_config={"columns": config.corpus.columns, "storage": plain(config.storage)},
        config={"corpus": plain(config.corpus), "compat": "strict"},
        unique=("corpus",),
        cpus=cpus,
    )


class CorpusWorker:
    """Reads and checks the passages of units (trust.units.Worker)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._columns = config["columns"]
        self._reader = UnitReader(open_storage("", config["storage"]), _NO_LISTS)

    async def close(self) -> None:
        self._reader.close()

    async def work(self, unit: Unit) -> UnitResult:
        began = time.monotonic()
        passages: list[tuple[dict[str, Any], int | None]] = []
        failed, unnamed = [], 0
        for raw in self._reader.read(unit.source):
            try:
                if isinstance(raw.value, RowError):
                    raise raw.value
                row, named = passage(raw.value, self._columns)
            except RowError as error:
                failed.append(_failed(raw, error))
                continue
            passages.append((row, raw.line))
            unnamed += not named
        return UnitResult(
            {
                "corpus": placed_table("corpus", passages, unit.source["file"]),
                "failed": to_table("failed", failed),
            },
            {"ok": len(passages), "failed": len(failed)},
            {"named_by_content": float(unnamed), WORK_S: time.monotonic() - began}
            | tally("failed", (row["reason"] for row in failed)),
        )


def _failed(raw: RawRow, error: RowError) -> dict[str, Any]:
    return {
        "job": "corpus",
        "row": raw.place,
        "file": raw.file,
        "line": raw.line,
        "field": error.field or None,
        "reason": error.reason,
        "detail": error.detail,
    }
