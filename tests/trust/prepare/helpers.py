"""Runs of the prepare worker over files, in this process."""

import asyncio
import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from trust.prepare import DataConfig
from trust.prepare.plan import plan
from trust.prepare.worker import PrepareWorker
from trust.storage import open_storage
from trust.tables import to_rows

Rows = dict[str, list[dict[str, Any]]]


def sample(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A good row; a change to `...` takes the field out."""
    row = {
        "id": f"q{number}",
        "question": f"Where is town {number}?",
        "answers": [["Norway", "Kingdom of Norway"], ["the north"]],
        "docs": [
            {"title": "Towns", "text": f"Town {number} lies in Norway.", "answers_found": [1, 0], "score": 1.5},
            {"title": "Seas", "text": "The sea is cold.", "answers_found": [0, 0], "rec_score": 0.25},
        ],
        "output": "It is in Norway [1].",
    }
    row.update(changes)
    return {key: value for key, value in row.items() if value is not ...}


def prepare(path: Path | str, compat: str = "strict", unit_rows: int = 3, **data: Any) -> Rows:
    """The tables made of a file: samples, responses, failed."""
    config = DataConfig(path=str(path), **data)
    storage = open_storage()
    worker = PrepareWorker({"data": asdict(config), "compat": compat, "storage": {"root": "runs"}})
    found: Rows = {"samples": [], "responses": [], "failed": []}

    async def work() -> None:
        for unit in plan(config, storage, unit_rows).units:
            result = await worker.work(unit)
            made = {name: to_rows(table) for name, table in result.tables.items()}
            failed = len(made.get("failed", []))
            assert result.counts == {"ok": sum(map(len, made.values())) - failed, "failed": failed}
            for name, rows in made.items():
                found[name] += rows
        await worker.close()

    asyncio.run(work())
    return found


def write(path: Path, text: str | bytes) -> Path:
    """The text in a file, compressed by the file's ending."""
    data = text.encode() if isinstance(text, str) else text
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = pa.Codec("zstd").compress(data, asbytes=True)
    path.write_bytes(data)
    return path


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def in_order(rows: Rows) -> Rows:
    """The tables with their rows sorted, for files that were cut differently."""
    return {table: sorted(found, key=str) for table, found in rows.items()}
