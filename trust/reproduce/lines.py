"""Ours beside the printed number: a line a row, data set and column."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from trust.reproduce import arithmetic, published
from trust.reproduce.config import ReproduceConfig
from trust.reproduce.plan import Cell
from trust.reproduce.published import COLUMNS, Dataset, Table

EXACT, RUN, WITHHELD, NOT_RUN = "exact", "run", "withheld", "not_run"

SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("table", "dataset", "row", "column", "status", "reason", "remedy")),
        *(pa.field(name, pa.float64()) for name in ("ours", "ours_low", "ours_high")),
        pa.field("ours_n", pa.int64()),
        *(pa.field(name, pa.float64()) for name in ("printed", "difference")),
        pa.field("inside", pa.bool_()),
        *(pa.field(name, pa.string()) for name in ("printed_problem", "note")),
        *(pa.field(name, pa.string()) for name in ("paper", "version", "place", "run", "judge", "compat")),
    ]
)

_HALF = 0.005 + 1e-6  # of the last printed digit


def table(config: ReproduceConfig, cells: Sequence[Cell], measured: Mapping[Cell, Mapping[str, Any]]) -> pa.Table:
    """All lines (SCHEMA).

    - `status`: `exact` (from the data set's counts alone), `run`, `withheld` (too many rows failed), `not_run`;
    - `reason`: why, of the last two; `remedy`: the options with which a row that was not run would be;
    - `difference`: ours minus printed; `inside`: whether the printed number lies in our 95 % interval (of an exact number:
      whether it is the same to the printed digit);
    - `printed_problem`: why a printed row cannot be right.

    Args:
        measured: summaries (trust.summary) of the cells that were run.
    """
    found: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        found += _exact(config, dataset)
        for cell in cells:
            if cell.dataset == dataset:
                found += _cell(config, cell, measured.get(cell))
    return pa.Table.from_pylist(found, schema=SCHEMA)


def _exact(config: ReproduceConfig, dataset: str) -> Iterator[dict[str, Any]]:
    data, printed = published.datasets()[dataset], config.published
    if data.questions is None:
        return
    for how, ratio in ((arithmetic.REFUSE, 0.0), (arithmetic.ANSWER, 100.0)):
        row = next((key for key in printed.rows if _ratio(printed, key, dataset) == ratio), None)
        beside = (printed.printed(row, dataset) if row else None) or {}
        note = f"printed of {row}" if row else ""
        for column, ours in arithmetic.always(how, data, config.compat).items():
            value = beside.get(column) if ours is not None else None
            yield _line(config, dataset, how, column, value) | {
                "status": EXACT,
                "ours": ours,
                "ours_n": data.questions,
                "difference": None if ours is None or value is None else ours - value,
                "inside": None if ours is None or value is None else abs(ours - value) <= _HALF,
                "note": note,
            }


def _cell(config: ReproduceConfig, cell: Cell, summary: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    data = published.datasets()[cell.dataset]
    printed = config.published.printed(cell.row, cell.dataset) or {}
    common = {
        "printed_problem": arithmetic.problem(printed, data) if printed else "",
        "note": config.published.rows[cell.row].note,
        "status": NOT_RUN,
        "reason": "; ".join(lacking.why for lacking in cell.lacking),
        "remedy": " ".join(lacking.remedy for lacking in cell.lacking if lacking.remedy),
    }
    if summary is not None:
        common |= {
            "status": WITHHELD if "withheld" in summary else RUN,
            "reason": summary.get("withheld", ""),
            "note": "; ".join(filter(None, (common["note"], _counts(summary, data)))),
            "run": config.name(cell.row, cell.dataset),
            "judge": config.judge.entails.describe(),
        }
    keys = arithmetic.keys(data.task)
    for column in COLUMNS:
        line = _line(config, cell.dataset, cell.row, column, printed.get(column)) | common
        if common["status"] == RUN and summary is not None:
            line |= _ours(summary, keys[column], line["printed"])
        yield line


def _ours(summary: Mapping[str, Any], key: str, printed: float | None) -> dict[str, Any]:
    ours, low, high = (summary[name] for name in (key, f"{key}_low", f"{key}_high"))
    return {
        "ours": ours,
        "ours_low": low,
        "ours_high": high,
        "ours_n": summary[f"{key}_n"],
        "difference": None if ours is None or printed is None else ours - printed,
        "inside": None if low is None or high is None or printed is None else low - _HALF <= printed <= high + _HALF,
    }


def _counts(summary: Mapping[str, Any], data: Dataset) -> str:
    """What is to be said where the questions are not those that were published; empty where they are."""
    if data.questions is None or "num_samples" not in summary:
        return ""
    ours = [round(summary[key] or 0) for key in ("num_samples", "answerable_num")]
    if ours == [data.questions, data.answerable]:
        return ""
    return f"over {ours[0]} questions, {ours[1]} of them answerable; published: {data.questions}, {data.answerable}"


def _line(config: ReproduceConfig, dataset: str, row: str, column: str, printed: float | None) -> dict[str, Any]:
    source = config.published
    return {
        "table": config.table,
        "dataset": dataset,
        "row": row,
        "column": column,
        "reason": "",
        "remedy": "",
        "printed": printed,
        "printed_problem": "",
        "note": "",
        "paper": source.paper,
        "version": source.version,
        "place": source.place,
        "run": "",
        "judge": "",
        "compat": config.compat,
    }


def _ratio(printed: Table, row: str, dataset: str) -> float | None:
    return (printed.printed(row, dataset) or {}).get("answered_ratio")
