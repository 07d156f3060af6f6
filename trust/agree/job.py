"""`jobs.agree` from checked config to files."""

import json
from dataclasses import dataclass
from typing import Any

from trust import tables
from trust.agree.config import AgreeConfig
from trust.agree.corrected import corrected, read_labels
from trust.agree.items import Rated, metric_names, read_rated, systems
from trust.agree.measure import Row, measure
from trust.agree.plot import heat_map
from trust.agree.scored import join, open_run
from trust.config import plain
from trust.errors import ConfigError, PreflightError
from trust.results import write_sheet
from trust.runs import Run
from trust.storage import Storage, absolute, open_storage

PLOT, ORIGIN = "agreement.svg", "agreement.json"


@dataclass(frozen=True)
class Agreement:
    """What was found and written.

    Attributes:
        rows: of the table `agreement`.
        corrected: of the table `corrected`.
        notes: sentences for people.
        paths: the files for people; `agreement.json` beside them keeps the config and what the inputs were.
    """

    rows: list[Row]
    corrected: list[dict[str, Any]]
    notes: list[str]
    paths: list[str]


def run_agree(config: AgreeConfig) -> Agreement:
    """Compares what metrics and people say; writes the tables `agreement` and `corrected` and a plot to the run's folder.

    Raises:
        ConfigError, PreflightError: a file or run is not there or cannot be used; the file's row is named.
    """
    if config.dry_run:
        raise ConfigError("dry_run=true compares nothing: see trust.dry_run, or python -m jobs.agree dry_run=true")
    storage = open_storage(config.storage.root, config.storage)
    run = Run(storage, config.storage.root, config.run)
    storage.preflight(run.root)
    inputs: dict[str, Any] = {}
    rows, notes = _agreement(config, storage, inputs) if config.data.path else ([], [])
    fixed, more = _corrected(config, storage, inputs) if config.labels else ([], [])
    notes += more
    for name in config.runs:
        if manifest := open_run(name, config).manifest("evaluate"):
            inputs[f"runs.{name}"] = [manifest.fingerprint, manifest.finished]
    origin = {"config": plain(config), "inputs": inputs, "notes": notes}
    storage.write_bytes(run.path(ORIGIN), json.dumps(origin, ensure_ascii=False, indent=1, allow_nan=False).encode())
    paths = [
        write_sheet(run, "agreement", tables.to_table("agreement", [vars(row) for row in rows])),
        write_sheet(run, "corrected", tables.to_table("corrected", fixed)),
        _plot(run, rows),
    ]
    return Agreement(rows, fixed, notes, [path for path in paths if path])


def _agreement(config: AgreeConfig, storage: Storage, inputs: dict[str, Any]) -> tuple[list[Row], list[str]]:
    rated, notes = read(config, storage)
    inputs["data"] = rated.fingerprint
    return measure(rated, config.alpha, config.replicates), notes


def read(config: AgreeConfig, storage: Storage) -> tuple[Rated, list[str]]:
    """What people said, with the scores it is compared with, and sentences about both.

    Raises:
        PreflightError: the file or a run cannot be used, or there is nothing to compare.
    """
    rated = read_rated(config, storage)
    notes = [_read(rated, config), *join(rated.items, config)]
    several = any(len(said) > 1 for item in rated.items for said in item.ratings.values())
    if not metric_names(rated.items) and not several:
        raise PreflightError(
            "there is nothing to compare people with: metrics.NAME=COLUMN names a metric's column, runs=[NAME] "
            "evaluated runs"
        )
    return rated, notes


def _corrected(config: AgreeConfig, storage: Storage, inputs: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    labels = read_labels(config, storage)
    inputs["labels"] = labels.fingerprint
    return corrected(config, labels)


def _read(rated: Rated, config: AgreeConfig) -> str:
    items = rated.items
    told = f"{len(items):,} rated outputs of {len({item.group for item in items}):,} groups and {len(systems(items)):,} systems"
    if rated.failed:
        told += f"; {len(rated.failed)} rows were left out: {rated.failed[0]}"
    return f"{absolute(config.data.path or '')}: {told}"


def _plot(run: Run, rows: list[Row]) -> str:
    path, drawn = run.path(PLOT), heat_map(rows)
    if drawn is None:
        run.storage.delete(path)
        return ""
    run.storage.write_bytes(path, drawn.encode())
    return path
