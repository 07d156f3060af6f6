"""A worker for tests of the unit machinery: no model, a call log, and faults on demand."""

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np

from trust import tables
from trust.units import Unit, UnitResult


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
