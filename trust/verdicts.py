"""The verdict store: judged pairs are kept beside the runs and shared by metrics, modes, runs and sweeps.

Append-only: `{storage.root}/_verdicts/{judge fingerprint}/{lowest}~{highest}~{content}.parquet`, where lowest and highest
are the sample ids in the file, so that a unit opens only the files that can hold its samples. Many writers at once do no
harm: names come from the content, and a verdict that stands twice is read once.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import pyarrow.compute as pc

from trust import tables
from trust.storage import Storage, join

_KEY_BYTES = 40


class VerdictStore:
    """Verdicts of one judge.

    Args:
        root: `storage.root`.
        judge: the judge's fingerprint.
    """

    def __init__(self, storage: Storage, root: str, judge: str) -> None:
        self._storage = storage
        self._folder = join(root, "_verdicts", judge)

    def load(self, sample_ids: Iterable[str]) -> list[dict[str, Any]]:
        """Known verdicts of these samples, as rows of the verdicts table."""
        wanted = sorted(set(sample_ids))
        if not wanted:
            return []
        low, high = _key(wanted[0]), _key(wanted[-1])
        rows: dict[str, dict[str, Any]] = {}
        for name in self._storage.list_names(self._folder):
            first, _, rest = name.partition("~")
            if first > high or rest.partition("~")[0] < low:
                continue
            table = self._storage.read_table(join(self._folder, name), filters=pc.field("sample_id").isin(wanted))
            for row in tables.to_rows(table):
                rows.setdefault(row["hash"], row)
        return list(rows.values())

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Keeps verdicts that were asked now; failed ones are not kept, so that they are asked again."""
        good = [row for row in rows if row["status"] == "ok"]
        if not good:
            return
        table = tables.to_table("verdicts", good)
        ids = sorted(row["sample_id"] for row in good)
        content = hashlib.sha256("".join(sorted(row["hash"] for row in good)).encode()).hexdigest()[:16]
        self._storage.write_table(join(self._folder, f"{_key(ids[0])}~{_key(ids[-1])}~{content}.parquet"), table)


def _key(sample_id: str) -> str:
    """A file-name-safe key that sorts as the id's first bytes do."""
    return sample_id.encode()[:_KEY_BYTES].hex()
