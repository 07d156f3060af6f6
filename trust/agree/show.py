"""The results in the terminal."""

from typing import Any

from trust.agree.job import Agreement
from trust.agree.measure import Row

_MOST = 60  # lines; the rest is in the table


def show(found: Agreement) -> None:
    """Prints the coefficients, a line a metric, dimension and level, and the corrected means."""
    from rich.console import Console

    console = Console(width=130)
    for note in found.notes:
        console.print(note, highlight=False, soft_wrap=True, markup=False)
    if found.rows:
        _agreement(found.rows, console)
    if found.corrected:
        _corrected(found.corrected, console)
    for path in found.paths:
        console.print(path, highlight=False, soft_wrap=True, markup=False)


def _agreement(rows: list[Row], console: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    lines: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        lines.setdefault((row.dimension, row.metric, row.level), []).append(row)
    levels = {row.level for row in rows if row.value is not None}
    shown = [(key, found) for key, found in lines.items() if key[2] in levels]
    table = Table(title="Agreement with people (95 % interval)", title_justify="left")
    for column in ("dimension", "metric", "level", "n", "what"):
        table.add_column(column, justify="right" if column == "n" else "left")
    for (dimension, metric, level), found in shown[:_MOST]:
        cells = [dimension, metric or "(between annotators)", level, f"{found[0].n:,}", _said(found)]
        table.add_row(*map(Text, cells))
    console.print(table)
    if len(shown) > _MOST:
        console.print(f"{len(shown) - _MOST} more lines are in the table", highlight=False)
    for level in dict.fromkeys(row.level for row in rows if row.level not in levels):
        why = next(row.detail for row in rows if row.level == level)
        console.print(f"not applicable: level {level}: {why}", highlight=False, markup=False)


def _said(rows: list[Row]) -> str:
    first = rows[0]
    if all(row.value is None for row in rows):
        return f"n.a.: {first.detail}"
    told = "  ".join(f"{_NAMES[row.statistic]} {_number(row.value, row.low, row.high)}" for row in rows)
    counts = {"left out": first.skipped, "ties": first.ties}
    notes = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"{told}  ({notes})" if notes else told


_NAMES = {
    "pearson": "r",
    "spearman": "ρ",
    "kendall_tau_b": "τ",
    "pairwise_accuracy": "accuracy",
    "auroc": "AUROC",
    "krippendorff_alpha": "α",
}


def _corrected(rows: list[dict[str, Any]], console: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Means corrected by people's labels (95 % interval)", title_justify="left")
    for column in (
        "run, model",
        "value",
        "labels of rows",
        "judge",
        "corrected",
        "labels alone",
        "labels for the width",
    ):
        table.add_column(column)
    for row in rows:
        cells = [
            f"{row['run']}, {row['model']}",
            row["value"],
            f"{row['labels']:,} of {row['rows']:,}",
            f"{row['judge']:.3f}",
        ]
        if row["status"] == "scored":
            cells += [
                _number(*(row[f"{name}{end}"] for end in ("", "_low", "_high")))
                for name in ("corrected", "labels_alone")
            ]
            needed = [row["labels_needed"], row["labels_needed_alone"]]
            more, alone = ("more than there are" if each is None else f"{each:,}" for each in needed)
            cells.append(f"{row['wanted_width']:g}: {more} (alone {alone})")
        else:
            cells += [f"n.a.: {row['detail']}", "", ""]
        table.add_row(*map(Text, cells))
    console.print(table)


def _number(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "n.a."
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.2f}, {high:.2f}]")
