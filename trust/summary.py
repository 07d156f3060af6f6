"""From sums to the published numbers: a flat object a model and data set, every rate with count and interval."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa

from trust import metrics, stats
from trust.ask import judges
from trust.evaluate import EvaluateConfig, group_of, term_names
from trust.runs import Manifest, Run

POOLED = ("metric", "dataset", "task", "model", "prompt")

# What people look at first: label -> the key that holds it, by task.
MAIN = {
    "Trust-Score": ("trust_score",),
    "F1_GR  grounded refusals": ("macro_f1",),
    "F1_AC  answer correctness": ("calib_str_em_f1", "calib_qampari_em_f1", "calib_claims_nli_f1"),
    "F1_GC  grounded citations": ("answered_citation_f1",),
    "answered ratio": ("answered_ratio",),
    "refusal precision": ("refuse_prec",),
    "refusal recall": ("refuse_rec",),
    "answer precision": ("answerable_prec",),
    "answer recall": ("answerable_rec",),
    "citation recall": ("answered_citation_rec",),
    "citation precision": ("answered_citation_prec",),
}


def summarise(
    run: Run, manifest: Manifest, config: EvaluateConfig, slices: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """One flat summary a data set, task, model, prompt (and slice).

    Keys: the published names; `KEY_low`, `KEY_high` (95 %) and `KEY_n` beside each; null is not applicable. Where more
    than `max_failed` of the rows failed every rate is null and `withheld` says why.

    `judge` names who judged; `num_unreadable` counts rows of the file that never became responses.

    Args:
        slices: further columns of `trust.evaluate.GROUP` to split by.
    """
    by_name = {metric.name: metric for metric in metrics.build(config.metrics, config.compat)}
    judge = judges.describe(config.judge.entails)
    lost, unreadable = _unreadable(run, config)
    pooled: dict[tuple[str, ...], np.ndarray] = {}
    for key, array in run.sums("evaluate").items():
        group = group_of(key)
        names = tuple(group[name] for name in (*POOLED, *slices))
        pooled[names] = pooled.get(names, 0) + array
    summaries: dict[tuple[str, ...], dict[str, Any]] = {}
    for names, array in sorted(pooled.items()):
        group = dict(zip((*POOLED, *slices), names, strict=True))
        metric = by_name[group.pop("metric")]
        head = {"compat": config.compat, "judge": judge, "num_unreadable": lost}
        summary = summaries.setdefault(names[1:], group | head)
        summary |= _flat(metric, array, group["task"], config.max_failed, unreadable)
    return list(summaries.values())


def _unreadable(run: Run, config: EvaluateConfig) -> tuple[int, str]:
    """How many rows of the file at `data.path` could not be read, and, where they are too many, that in words."""
    prepared = run.manifest("prepare") if config.data.path else None
    if not prepared:
        return 0, ""
    failed = prepared.counts.get("failed", 0)
    if prepared.failed_share <= config.max_failed:
        return failed, ""
    return failed, f"{failed} of {prepared.rows} rows could not be read, more than max_failed={config.max_failed:g}"


def _flat(metric: metrics.Metric, array: np.ndarray, task: str, max_failed: float, withheld: str) -> dict[str, Any]:
    sums = dict(zip(term_names(metric), stats.from_fixed(array).T, strict=True))
    scored, na, failed = (int(sums[f"rows_{status}"][0]) for status in ("scored", "na", "failed"))
    questions = int(sums["questions"][0])
    flat: dict[str, Any] = {"num_scored": scored, "num_na": na, "num_failed": failed}
    rows = scored + na + failed
    if not withheld and failed > max_failed * rows:
        withheld = f"{failed} of {rows} rows failed, more than max_failed={max_failed:g}"
    if withheld:
        flat["withheld"] = withheld
    for key, stat in metric.final({name: sums[name] for name in metric.terms}, task).items():
        point = float(stat.value[0])
        known = not withheld and math.isfinite(point)
        interval = stats.interval(stat, questions) if known else None
        flat[key] = point if known else None
        flat[f"{key}_low"], flat[f"{key}_high"] = interval or (None, None)
        flat[f"{key}_n"] = stat.n
    return flat


def write(run: Run, summaries: list[dict[str, Any]]) -> str:
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
    keys = list(dict.fromkeys(key for summary in summaries for key in summary))
    run.storage.write_table(several, pa.Table.from_pylist([{key: s.get(key) for key in keys} for s in summaries]))
    return several


def show(summaries: list[dict[str, Any]]) -> None:
    """Prints the main numbers, a column a data set, each with its 95 % interval."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Trust-Score and its parts (0-100, 95 % interval)", title_justify="left")
    table.add_column("")
    for summary in summaries:
        table.add_column(f"{summary['dataset']} ({summary['task']})\n{summary['model']}", justify="right")
    for label, names in MAIN.items():
        cells = [_cell(summary, names) for summary in summaries]
        if any(cells):
            table.add_row(label, *(cell or "-" for cell in cells))
    table.add_row(
        "rows scored / n.a. / failed", *(f"{s['num_scored']} / {s['num_na']} / {s['num_failed']}" for s in summaries)
    )
    if any(summary.get("num_unreadable") for summary in summaries):
        table.add_row("rows that could not be read", *(str(summary["num_unreadable"]) for summary in summaries))
    console = Console(width=max(100, 34 + 30 * len(summaries)))
    console.print(table)
    for judge, mode in sorted({(s["judge"], s["compat"]) for s in summaries}):
        console.print(f"judge: {judge}   mode: {mode}", highlight=False)
    for summary in summaries:
        if "withheld" in summary:
            console.print(f"{summary['dataset']}: rates withheld: {summary['withheld']}", highlight=False)


def _cell(summary: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if name in summary:
            if summary[name] is None:
                return "n.a."
            low, high = summary[f"{name}_low"], summary[f"{name}_high"]
            return f"{summary[name]:.2f}" + (f" [{low:.1f}, {high:.1f}]" if low is not None else "")
    return ""
