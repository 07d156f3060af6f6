"""One writer at a time; a dead one is replaced."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trust import lease
from trust.errors import PreflightError
from trust.lease import Lease
from trust.storage import Storage


def test_a_living_holder_is_named_and_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "job.lease")
    with Lease(Storage(), path):
        with (
            pytest.raises(PreflightError, match=r"another run is writing here: process \d+ on "),
            Lease(Storage(), path),
        ):
            pass
        assert Storage().exists(path)
    assert not Storage().exists(path)


def test_a_holder_of_this_machine_that_was_killed_is_replaced_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "job.lease")
    code = "import sys, os; from trust.lease import Lease; from trust.storage import Storage\n"
    code += "Lease(Storage(), sys.argv[1]).__enter__(); os._exit(9)"
    subprocess.run([sys.executable, "-c", code, path], check=False)
    assert Storage().exists(path)
    with Lease(Storage(), path):
        pass


@pytest.mark.parametrize(("age", "free"), [(1.0, False), (lease.STALE_S + 1, True)])
def test_a_holder_of_another_machine_is_replaced_when_its_heartbeat_is_old(
    tmp_path: Path, age: float, free: bool
) -> None:
    path = str(tmp_path / "job.lease")
    holder = {"id": "x", "host": "elsewhere", "pid": 1, "started": 0.0, "beat": time.time() - age}
    Storage().write_bytes(path, json.dumps(holder).encode())
    if free:
        with Lease(Storage(), path):
            pass
    else:
        with pytest.raises(PreflightError, match="elsewhere"), Lease(Storage(), path):
            pass


def test_the_heartbeat_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_S", 0.05)
    path = tmp_path / "job.lease"
    with Lease(Storage(), str(path)):
        first = json.loads(path.read_text())["beat"]
        time.sleep(0.4)
        assert json.loads(path.read_text())["beat"] > first
