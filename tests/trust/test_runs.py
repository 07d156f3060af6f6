"""What a finished job left, where it is damaged: the file is named, and what to do."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from trust.errors import StorageError
from trust.runs import Manifest, Run
from trust.storage import Storage


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with a finished job that left sums."""
    run = Run(Storage(), str(tmp_path), "r")
    manifest = Manifest("count", "r", "f", {}, {}, {}, "", 1, {"ok": 1}, {}, {}, sums="manifests/count-0.sums.npz")
    run.write_sums(manifest.sums, {"n": np.arange(64)})
    run.storage.write_bytes(run.path("manifests", "count.json"), json.dumps(asdict(manifest)).encode())
    return run


@pytest.mark.parametrize("data", [b"", b'{"job": "co', b"[1, 2]", b"{}", b"\xff\xfe"])
def test_a_damaged_manifest_is_named(run: Run, data: bytes) -> None:
    path = run.path("manifests", "count.json")
    run.storage.write_bytes(path, data)
    with pytest.raises(StorageError, match=f"{path} is cut short or damaged: delete it and start jobs.count again"):
        run.manifest("count")


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "other", "changed"])
def test_damaged_sums_are_named(run: Run, damage: str) -> None:
    path = Path(run.path("manifests", "count-0.sums.npz"))
    data = path.read_bytes()
    middle = len(data) // 2
    left = {"empty": b"", "cut": data[:middle], "other": b"x" * 200}
    left["changed"] = data[:60] + bytes([data[60] ^ 255]) + data[61:]
    path.unlink() if damage == "gone" else path.write_bytes(left[damage])
    with pytest.raises(StorageError, match=f"{path} is gone, cut short or damaged: start jobs.count again"):
        run.sums("count")
