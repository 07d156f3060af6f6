"""Workers for tests of the unit machinery: no model, a call log, and faults on demand."""

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from trust import tables
from trust.retry import changed, failed_before
from trust.storage import Storage
from trust.units import Unit, UnitResult

RESPONSE = {
    "dataset": "d",
    "language": "en",
    "task": "em",
    "question": "q",
    "model": "m",
    "prompt": "p",
    "draw": 0,
}


class CountingWorker:
    """Makes one sample a row, logs each unit it does, sleeps `seconds` a unit."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    async def close(self) -> None: ...

    async def work(self, unit: Unit) -> UnitResult:
        await asyncio.sleep(self.config.get("seconds", 0))
        if unit.name == self.config.get("broken"):
            raise OSError("the disk is on fire")
        with open(Path(self.config["log"]) / f"{os.getpid()}.txt", "a") as file:
            file.write(unit.name + "\n")
        first = unit.source["start"]
        rows = [
            {
                "sample_id": f"d:{first + i:05d}",
                "dataset": "d",
                "language": "en",
                "task": "em",
                "question": f"q{first + i}",
            }
            for i in range(unit.rows)
        ]
        sums = {"g": np.array([[2**40 + first, unit.rows]], dtype=np.int64)}
        return UnitResult({"samples": tables.to_table("samples", rows)}, {"ok": unit.rows}, {"tokens": 2.0}, sums)


class FlakyWorker:
    """A response a row; while the file `down` is there, each third row fails. Logs each row it does."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    async def close(self) -> None: ...

    async def work(self, unit: Unit) -> UnitResult:
        ids = [f"d:{unit.source['start'] + i:05d}" for i in range(unit.rows)]
        again = failed_before(unit, Storage(), "responses", ids)
        if again is not None:
            ids = [row["sample_id"] for row in again]
            await asyncio.sleep(self.config.get("seconds", 0))
        down = os.path.exists(self.config["down"])
        rows = []
        for sample_id in ids:
            bad = down and int(sample_id[2:]) % 3 == 0
            outcome = {"status": "failed", "reason": "down"} if bad else {"status": "ok", "output": "fine"}
            rows.append({**RESPONSE, "sample_id": sample_id, **outcome})
        with open(Path(self.config["log"]) / f"{os.getpid()}.txt", "a") as file:
            file.writelines(f"{sample_id}\n" for sample_id in ids)
        counts = dict(Counter(row["status"] for row in rows))
        change = changed(counts, again) if again is not None else counts
        sums = {"g": np.array([change.get("ok", 0), change.get("failed", 0)], dtype=np.int64)}
        return UnitResult({"responses": tables.to_table("responses", rows)}, change, {"tokens": float(len(ids))}, sums)
