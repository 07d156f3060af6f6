"""Slices: parts of the rows told apart by the language or by a column of the user's own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from trust.config import nearest
from trust.errors import PreflightError
from trust.storage import Storage

LANGUAGE = "language"
NONE = "(none)"  # the slice of rows that have no value in the column
MAX_VALUES = 250
MAX_LENGTH = 200
_MAX_NAMES = 1000
_BATCH_ROWS = 8192


@dataclass
class Found:
    """What rows hold in the columns that were asked for.

    Attributes:
        values: column -> its different values; where they are more than `MAX_VALUES`, not all.
        names: columns of the user's own, a thousand at most.
    """

    values: dict[str, set[str]]
    names: set[str] = field(default_factory=set)


def slices_of(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """Column -> the slice that a row of responses belongs to."""
    return {name: _shown(row[LANGUAGE] if name == LANGUAGE else (row["meta"] or {}).get(name)) for name in columns}


def find(storage: Storage, path: str, columns: Sequence[str]) -> Found:
    """What one part of the table responses holds; only its columns `language` and `meta` are read, in small batches."""
    found = Found({name: set() for name in columns})
    with storage.open_table(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=[LANGUAGE, "meta"]):
            meta = batch.column("meta")
            if len(found.names) < _MAX_NAMES:
                found.names.update(pc.unique(meta.keys).to_pylist())
            for name, values in found.values.items():
                if len(values) <= MAX_VALUES:
                    column = batch.column(LANGUAGE) if name == LANGUAGE else pc.map_lookup(meta, name, "first")
                    values.update(_shown(value) for value in pc.unique(column).to_pylist()[: MAX_VALUES + 1])
    return found


def check(columns: Sequence[str], parts: Iterable[Found]) -> None:
    """Whether the columns make slices.

    Args:
        parts: what each part of the table holds.

    Raises:
        PreflightError: no row has a value in a column (names the nearest one that has), or there are too many different
            values, or too long ones.
    """
    whole = Found({name: set() for name in columns})
    for part in parts:
        if len(whole.names) < _MAX_NAMES:
            whole.names |= part.names
        for name, values in whole.values.items():
            if len(values) <= MAX_VALUES:
                values.update(part.values[name])
    for name, values in whole.values.items():
        if not values - {NONE}:
            known = sorted({LANGUAGE, *whole.names} - {name})
            raise PreflightError(
                f"slices: no row has a value in a column {name}{nearest(name, known)}; there are {', '.join(known[:50])}"
            )
        if long := next((value for value in sorted(values) if len(value) > MAX_LENGTH), None):
            raise PreflightError(
                f"slices: the column {name} holds texts of more than {MAX_LENGTH} characters ({long[:40]!r}...); a slice "
                "is named by its value, so name a column of short ones"
            )
        if len(values) > MAX_VALUES:
            raise PreflightError(
                f"slices: the column {name} has more than {MAX_VALUES} different values (such as "
                f"{', '.join(sorted(values)[:3])}), and sums are kept for each; name a coarser column, or add one to the "
                "data (the domain of a link, the year of a date, a band of a number)"
            )


def _shown(value: str | None) -> str:
    return (value or "").strip() or NONE
