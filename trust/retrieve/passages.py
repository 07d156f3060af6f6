"""The text of passages, by where they stand in a corpus: read for those that were chosen, and for no others."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from trust.storage import Storage

_GROUPS = 32  # row groups that are in memory at a time

Place = tuple[int, int]  # number of a corpus part, and row in it


def read_passages(parts: Sequence[str], places: Iterable[Place], storage: Storage) -> dict[Place, tuple[str, str]]:
    """Title and text of the passages at `places`. Of each corpus part the row groups that hold one of them are read, once.

    Args:
        parts: paths of the corpus parts.
    """
    wanted: dict[int, set[int]] = defaultdict(set)
    for part, row in places:
        wanted[part].add(row)
    found: dict[Place, tuple[str, str]] = {}
    for part, rows in sorted(wanted.items()):
        ordered = np.array(sorted(rows))
        for number, content in _rows(parts[part], ordered, storage):
            title, text = (content.column(name).to_pylist() for name in ("title", "text"))
            found |= {(part, row): one for row, one in zip(number.tolist(), zip(title, text, strict=True), strict=True)}
    return found


def _rows(path: str, rows: np.ndarray, storage: Storage) -> Iterable[tuple[np.ndarray, pa.Table]]:
    """Some of `rows` (ascending) at a time, with their numbers."""
    with storage.open_table(path) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        group_of = np.searchsorted(bounds, rows, side="right") - 1
        groups = np.unique(group_of)
        for start in range(0, len(groups), _GROUPS):
            some = groups[start : start + _GROUPS]
            numbers = rows[np.isin(group_of, some)]
            first = np.concatenate([[0], np.cumsum([sizes[group] for group in some])])
            places = np.searchsorted(some, group_of[np.isin(group_of, some)])
            content = file.read_row_groups(some.tolist(), columns=["title", "text"])
            yield numbers, content.take(pa.array(first[places] + numbers - bounds[some][places]))
