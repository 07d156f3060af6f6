"""Ours and the printed numbers as Markdown."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from trust.reproduce import published
from trust.reproduce.config import ReproduceConfig
from trust.reproduce.lines import EXACT, NOT_RUN, RUN
from trust.reproduce.published import COLUMNS, LABELS

Line = dict[str, Any]

_JUDGE = "google/t5_xxl_true_nli_mixture in bfloat16"
_SHOWN = 3  # of the options that name a model
_HEADS = " | ".join(LABELS.values())
_RIGHT = " | ".join(["---:"] * len(COLUMNS))


def render(config: ReproduceConfig, table: pa.Table) -> str:
    """The whole text: per data set what there is of ours beside the printed numbers, then what was not run and why."""
    return "\n".join([*_head(config), *_sets(table), *_foot(config, table)]) + "\n"


def _head(config: ReproduceConfig) -> Iterator[str]:
    yield f"# {config.published.title}"
    yield ""
    yield f"Table `{config.table}`. Printed: {config.published.source}. Scores are 0-100; intervals are ours, 95 %."
    yield ""


def _sets(table: pa.Table) -> Iterator[str]:
    for dataset, group in groupby(table.to_pylist(), key=lambda line: line["dataset"]):
        rows = [list(lines) for _, lines in groupby(group, key=lambda line: line["row"])]
        yield f"## {dataset}"
        yield ""
        if shown := [lines for lines in rows if lines[0]["status"] in (EXACT, RUN)]:
            yield f"| row | | {_HEADS} |"
            yield f"| --- | --- | {_RIGHT} |"
            for lines in shown:
                yield from _measured(lines)
            yield ""
        if left := [lines for lines in rows if lines[0]["status"] not in (EXACT, RUN)]:
            yield f"| not run | {_HEADS} | why |"
            yield f"| --- | {_RIGHT} | --- |"
            for lines in left:
                yield f"| {_name(lines[0])} | {_cells(lines, 'printed')} | {_text(_why(lines[0]))} |"
            yield ""
            yield from _remedies([lines[0] for lines in left])
        for lines in rows:
            yield from _remarks(lines[0])


def _measured(lines: Sequence[Line]) -> Iterator[str]:
    exact = lines[0]["status"] == EXACT
    yield f"| {_name(lines[0])} | ours{', exact' if exact else ''} | {_cells(lines, 'ours')} |"
    if not exact:
        yield f"| | 95 % | {' | '.join(_interval(line) for line in lines)} |"
    if all(line["printed"] is None for line in lines):
        yield f"| | printed: none | {' | '.join([''] * len(lines))} |"
        return
    yield f"| | {lines[0]['note'] if exact else 'printed'} | {_cells(lines, 'printed')} |"
    yield f"| | difference | {' | '.join(_difference(line) for line in lines)} |"


def _remedies(lines: Sequence[Line]) -> Iterator[str]:
    """What the command line would have to say for them to be run."""
    found = list(dict.fromkeys(word for line in lines for word in line["remedy"].split()))
    shown = [word for word in found if not word.startswith("models.")]
    shown += [word for word in found if word.startswith("models.")][:_SHOWN]
    if shown:
        yield f"Lacking: `{'`, `'.join(shown)}`{' and so on' if len(shown) < len(found) else ''}."
        yield ""


def _remarks(line: Line) -> Iterator[str]:
    if line["printed_problem"]:
        yield f"⚠ {line['row']}: printed row does not add up: {line['printed_problem']}."
        yield ""
    if line["note"] and line["status"] != EXACT:
        yield f"{line['row']}: {_text(line['note'])}."
        yield ""


def _name(line: Line) -> str:
    return line["row"] + (" ⚠" if line["printed_problem"] else "")


def _foot(config: ReproduceConfig, table: pa.Table) -> Iterator[str]:
    statuses = [lines[0]["status"] for lines in _rows(table)]
    ran, left = statuses.count(RUN), statuses.count(NOT_RUN)
    printed = table["printed"].null_count < table.num_rows
    marks = " ✓: the printed number lies in our interval (exact: is the same); ✗: it does not." if printed else ""
    yield f"Rows run: {ran}, not run: {left}.{marks}"
    if not ran:
        return
    yield ""
    judges = f"Judge: {_text(config.judge.entails.describe())}"
    yield f"{judges}{f'; of the printed numbers: {_JUDGE}' if printed else ''}. Mode: {config.compat}."
    used = {line["dataset"] for line in table.to_pylist() if line["status"] == RUN}
    own = [dataset for dataset in published.datasets() if dataset in used - config.prompts.keys()]
    if own and printed:
        yield (
            f"Prompts on {', '.join(own)} are of the published form in the project's own words (prompts.{own[0]}=FILE takes a "
            "published file). Demonstrations are drawn once a run, as published for every question anew and unseeded."
        )


def _rows(table: pa.Table) -> Iterator[list[Line]]:
    for _, lines in groupby(table.to_pylist(), key=lambda line: (line["dataset"], line["row"])):
        yield list(lines)


def _why(line: Line) -> str:
    return line["reason"] if line["status"] == NOT_RUN else f"run, but withheld: {line['reason']}"


def _cells(lines: Sequence[Line], key: str) -> str:
    empty = "n.a." if key == "ours" and lines[0]["status"] == RUN else ""
    return " | ".join(empty if line[key] is None else f"{line[key]:.2f}" for line in lines)


def _interval(line: Line) -> str:
    return "" if line["ours_low"] is None else f"[{line['ours_low']:.1f}, {line['ours_high']:.1f}]"


def _difference(line: Line) -> str:
    if line["difference"] is None:
        return ""
    mark = {True: " ✓", False: " ✗", None: ""}[line["inside"]]
    return f"{line['difference']:+.2f}{mark}"


def _text(words: str) -> str:
    """Words in which a cell of a table does not end."""
    return " ".join(words.replace("|", "\\|").split())
