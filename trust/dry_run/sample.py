"""A small sample of a table's rows, the same at each call, from which estimates are made."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trust import tables
from trust.storage import Storage

ROWS = 64
SEED = 0


@dataclass(frozen=True)
class Sample:
    """Rows, and how they were chosen, in words."""

    rows: list[dict[str, Any]]
    how: str


def sample(parts: Sequence[dict[str, Any]], storage: Storage) -> Sample:
    """`ROWS` rows of a table, or all where it has no more.

    Args:
        parts: as a manifest names them, with full paths: `path` and `rows`.
    """
    total = sum(part["rows"] for part in parts)
    chosen = sorted(random.Random(SEED).sample(range(total), min(ROWS, total)))
    found: list[dict[str, Any]] = []
    start = 0
    for part in parts:
        mine = [index - start for index in chosen if start <= index < start + part["rows"]]
        if len(mine) == part["rows"]:
            found += tables.to_rows(storage.read_table(part["path"]))
        else:
            for index in mine:
                found += tables.to_rows(storage.read_range(part["path"], index, 1))
        start += part["rows"]
    how = f"all {total:,} rows" if len(found) == total else f"{len(found)} of {total:,} rows drawn with seed {SEED}"
    return Sample(found, how)


def first(parts: Sequence[dict[str, Any]], storage: Storage) -> Iterator[dict[str, Any]]:
    """The first `ROWS` rows of a table."""
    left = ROWS
    for part in parts:
        wanted = min(left, part["rows"])
        if wanted:
            yield from tables.to_rows(storage.read_range(part["path"], 0, wanted))
        left -= wanted
