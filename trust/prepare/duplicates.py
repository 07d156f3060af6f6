"""Rows that share a key, found and settled over all parts of a table.

Which of them keeps the key follows from the rows' content alone, never from the order of files or units. Work is split
by buckets of the key space, so that no task and no driver holds all keys.
"""

import hashlib
import json
import re
import zlib
from collections import defaultdict
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa

from trust.storage import Storage
from trust.tables import SORT_KEYS, sort, to_table

_BATCH_ROWS = 8192
_PLACES = b"places"
_NUMBERED = re.compile(r"#\d+\Z")


class Repeat(NamedTuple):
    """A row whose key stands elsewhere too, in the order of their contents.

    Attributes:
        row: its number in its part.
        occurrence: 2 for the second row with this key, and so on; the first one is left alone. A number is passed over
            where `{sample_id}#{number}` is a row's own id.
        same: whether it equals the first one in every column.
    """

    row: int
    occurrence: int
    same: bool


def placed_table(name: str, rows: list[tuple[dict[str, Any], int | None]], file: str) -> pa.Table:
    """A unit's part of a table; where its rows stand in their file goes along beside the schema, for `resolve` to tell.

    Args:
        rows: with the line of each, from 1 (None in Parquet).
    """
    ordered = sorted(rows, key=lambda row: tuple(row[0][key] for key in SORT_KEYS[name]))
    places = json.dumps({"file": file, "lines": [line for _, line in ordered]})
    return to_table(name, (row for row, _ in ordered)).replace_schema_metadata({_PLACES: places})


def find_repeats(parts: list[str], storage: Storage, table: str, bucket: int, buckets: int) -> dict[str, list[Repeat]]:
    """The rows of one bucket of keys that are not the first with their key.

    Reads the key columns of all parts, and whole rows only where a key stands twice. Memory follows the keys of the
    bucket.

    Args:
        parts: Parquet objects of `table`.
        bucket: from 0; all rows of a sample, and of ids that are this one with `#` and a number, fall into the same one
            of `buckets`.

    Returns:
        Part -> its repeats; parts without any are left out.
    """
    places: dict[tuple[Any, ...], list[tuple[str, int]]] = {}
    for part in parts:
        for row, key in enumerate(_keys(storage, part, SORT_KEYS[table])):
            if zlib.crc32(_NUMBERED.sub("", key[0]).encode()) % buckets == bucket:
                places.setdefault(key, []).append((part, row))
    repeated = {key: found for key, found in places.items() if len(found) > 1}
    wanted: dict[str, list[int]] = defaultdict(list)
    for found in repeated.values():
        for part, row in found:
            wanted[part].append(row)
    contents = {part: _contents(storage.read_table(part), sorted(rows)) for part, rows in wanted.items()}
    repeats: dict[str, list[Repeat]] = defaultdict(list)
    for key, found in repeated.items():
        ordered = sorted((contents[part][row], part, row) for part, row in found)
        first = ordered[0][0]
        free = (n for n in count(2) if (f"{key[0]}#{n}", *key[1:]) not in places)
        for (content, part, row), occurrence in zip(ordered[1:], free, strict=False):
            repeats[part].append(Repeat(row, occurrence, content == first))
    return {part: sorted(found) for part, found in repeats.items()}


def resolve(
    content: pa.Table, table: str, repeats: list[Repeat], job: str, compat: str
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """One part with its repeats settled.

    Args:
        content: the part, as `find_repeats` read it.
        compat: `strict` takes repeats out, as failed rows; `upstream` keeps them under `{sample_id}#{occurrence}`.

    Returns:
        The part, sorted by its key, and rows of the table failed.
    """
    if compat == "upstream":
        return sort(table, _renamed(content, repeats)), []
    out = {repeat.row for repeat in repeats}
    kept = content.take(pa.array([row for row in range(content.num_rows) if row not in out], pa.int64()))
    keys = content.select(SORT_KEYS[table]).take(pa.array([repeat.row for repeat in repeats], pa.int64())).to_pylist()
    places = json.loads((content.schema.metadata or {}).get(_PLACES, b"{}"))
    failed = [_failed(key, repeat, job, table) for key, repeat in zip(keys, repeats, strict=True)]
    for row, repeat in zip(failed, repeats, strict=True):
        row |= {"file": places.get("file"), "line": places["lines"][repeat.row] if places else None}
    return kept, failed


def _keys(storage: Storage, part: str, columns: list[str]) -> Any:
    with storage.open_table(part) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            found = batch.to_pydict()
            yield from zip(*(found[column] for column in columns), strict=True)


def _contents(part: pa.Table, rows: list[int]) -> dict[int, str]:
    """Row number -> sha256 of the row."""
    found = part.take(pa.array(rows, pa.int64())).to_pylist()
    return {
        row: hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
        for row, value in zip(rows, found, strict=True)
    }


def _renamed(content: pa.Table, repeats: list[Repeat]) -> pa.Table:
    ids = content.column("sample_id").to_pylist()
    for repeat in repeats:
        ids[repeat.row] = f"{ids[repeat.row]}#{repeat.occurrence}"
    index = content.schema.get_field_index("sample_id")
    return content.set_column(index, content.schema.field(index), pa.array(ids, pa.string()))


def _failed(key: dict[str, Any], repeat: Repeat, job: str, table: str) -> dict[str, Any]:
    name = ", ".join(f"{column}={value}" for column, value in key.items())
    how = "the same in every column" if repeat.same else "with other content"
    column = "corpus.columns.id" if table == "corpus" else "data.columns.id"
    others = f"their ids must differ ({column} names the column), or take the row out"
    return {
        "job": job,
        "row": f"{'|'.join(str(value) for value in key.values())}#{repeat.occurrence}",
        "field": SORT_KEYS[table][0],
        "reason": "duplicate",
        "detail": f"row number {repeat.occurrence} of {table} with the key {name}, {how}: {others}",
    }
