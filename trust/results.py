"""The files of results in a run's folder: the summary, the numbers by slice, the rates by language."""

import json
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv

from trust import rates, tables
from trust.evaluate import EvaluateConfig
from trust.runs import Manifest, Run
from trust.summary import summarise, summarise_slices, unreadable


class Results(NamedTuple):
    """What was written.

    Attributes:
        summaries: as `trust.summary.summarise` makes them.
        paths: `summary`, and `slices` and `rates` where there are any -> the file for people.
    """

    summaries: list[dict[str, Any]]
    paths: dict[str, str]


def write(run: Run, manifest: Manifest, config: EvaluateConfig) -> Results:
    """Writes all results of a finished evaluation; a file of an earlier one that has no rows now is removed."""
    summaries = summarise(run, manifest, config)
    found = rates.rates(run, config, unreadable(run, config)[1])
    paths = {
        "summary": write_summary(run, summaries),
        "slices": write_sheet(run, "slices", table(summarise_slices(run, config))),
        "rates": write_sheet(run, "rates", tables.to_table("rates", found)),
    }
    return Results(summaries, {name: path for name, path in paths.items() if path})


def write_summary(run: Run, summaries: list[dict[str, Any]]) -> str:
    """`summary.json` for one model on one data set, `summary.parquet` for several; returns its path.

    The other of the two is removed, so that a run never holds a summary of rows it no longer has.
    """
    single, several = run.path("summary.json"), run.path("summary.parquet")
    if len(summaries) == 1:
        run.storage.delete(several)
        run.storage.write_bytes(
            single, json.dumps(summaries[0], ensure_ascii=False, indent=1, allow_nan=False).encode()
        )
        return single
    run.storage.delete(single)
    run.storage.write_table(several, table(summaries))
    return several


def write_sheet(run: Run, name: str, content: pa.Table) -> str:
    """`NAME.parquet` and, for people, the same as `NAME.csv`, whose path is returned; neither without rows."""
    parquet, text = run.path(f"{name}.parquet"), run.path(f"{name}.csv")
    if not content.num_rows:
        run.storage.delete(parquet)
        run.storage.delete(text)
        return ""
    run.storage.write_table(parquet, content)
    sink = pa.BufferOutputStream()
    csv.write_csv(content, sink)
    run.storage.write_bytes(text, sink.getvalue().to_pybytes())
    return text


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows with all their keys as columns; a rate that no row has is a column of nulls."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    made = pa.Table.from_pylist([{key: row.get(key) for key in keys} for row in rows])
    known = [field.with_type(pa.float64()) if pa.types.is_null(field.type) else field for field in made.schema]
    return made.cast(pa.schema(known))
