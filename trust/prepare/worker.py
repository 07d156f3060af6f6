"""The worker of `jobs.prepare`: a unit of a file in, parts of samples, responses and failed out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trust import config as configs
from trust.errors import RowError
from trust.prepare import nomiracl, pools, rated, releases
from trust.prepare.cells import DELIMITERS
from trust.prepare.config import DataConfig
from trust.prepare.duplicates import placed_table
from trust.prepare.read import RawRow, UnitReader
from trust.prepare.trust_format import has_output, to_responses, to_sample
from trust.storage import open_storage
from trust.tables import to_table
from trust.units import Unit, UnitResult

_Made = tuple[str, dict[str, Any] | RowError]


class PrepareWorker:
    """Reads and checks the rows of units.

    Args:
        config: plain: `data` (a DataConfig), `compat`, `storage`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self._data = configs.build(DataConfig, config["data"], "data")
        self._compat = config["compat"]
        storage = config["storage"]
        self._storage = open_storage(storage.get("root", ""), storage)
        self._reader = UnitReader(self._storage, self._data.columns)

    async def work(self, unit: Unit) -> UnitResult:
        """Rows of the unit as tables; counts are rows of output (a list of outputs counts each)."""
        rows: dict[str, list[tuple[dict[str, Any], int | None]]] = {"samples": [], "responses": []}
        failed: list[dict[str, Any]] = []
        for raw in self._rows(unit):
            made = self._make(raw)
            for number, (table, row) in enumerate(made):
                if isinstance(row, RowError):
                    place = f"{raw.place}.{number}" if len(made) > 1 else raw.place
                    failed.append(self._failed(raw, place, row))
                else:
                    rows[table].append((row, raw.line))
        counts = {"ok": sum(map(len, rows.values())), "failed": len(failed)}
        file = unit.source.get("file") or unit.source["pool"]["topics"]
        found = {name: placed_table(name, made, file) for name, made in rows.items() if made}
        return UnitResult(found | ({"failed": to_table("failed", failed)} if failed else {}), counts)

    async def close(self) -> None:
        self._reader.close()

    def _rows(self, unit: Unit) -> Iterator[RawRow]:
        if unit.source["format"] == pools.FORMAT:
            return pools.read_pool(unit.source, self._data.pool, self._storage)
        rows = self._reader.read(unit.source)
        if unit.source["format"] not in DELIMITERS or self._data.outputs != "require":
            return rows
        return map(self._answered, rows)

    def _answered(self, raw: RawRow) -> RawRow:
        """A cell cannot tell an empty answer from none; where each row is to have one, it is an empty one."""
        name = self._data.columns.get("output", "output")
        if isinstance(raw.value, dict) and name in raw.value and raw.value[name] is None:
            return replace(raw, value=raw.value | {name: ""})
        return raw

    def _make(self, raw: RawRow) -> list[_Made]:
        """Rows with the tables they belong to."""
        if isinstance(raw.value, RowError):
            return [("failed", raw.value)]
        if self._data.kind == "trust":
            return self._read(raw.value)
        try:
            if self._data.kind in rated.KINDS:
                rows = rated.to_rows(raw.value, self._data.kind)
            elif self._data.kind in releases.KINDS:
                split = self._data.split or releases.split_of(raw.file)
                rows = [({"split": split} if split else {}) | releases.to_row(raw.value, self._data.kind)]
            else:
                rows = nomiracl.to_rows(raw.value, self._data, raw.file)
        except RowError as error:
            return [("failed", error)]
        return [made for row in rows for made in self._read(row)]

    def _read(self, value: dict[str, Any]) -> list[_Made]:
        outputs = self._data.outputs
        try:
            if outputs == "require" or (outputs == "split" and has_output(value, self._data)):
                return [("responses", row) for row in to_responses(value, self._data, self._compat)]
            return [("samples", to_sample(value, self._data, self._compat))]
        except RowError as error:
            return [("failed", error)]

    def _failed(self, raw: RawRow, place: str, error: RowError) -> dict[str, Any]:
        return {
            "job": "prepare",
            "row": place,
            "file": raw.file,
            "line": raw.line,
            "field": error.field or None,
            "reason": error.reason,
            "detail": error.detail,
        }
