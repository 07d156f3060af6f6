"""One writer at a time; a dead one is replaced, a living one never, whatever the clocks say."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from trust import lease
from trust.errors import JobStopped, PreflightError, StorageError
from trust.lease import Lease
from trust.storage import Storage

HOLDER = """
import sys, time
from trust import lease
from trust.errors import JobStopped
from trust.storage import Storage
lease.HEARTBEAT_S, lease.STALE_S = 0.2, 1.5
if sys.argv[2]:
    lease._machine = lambda: sys.argv[2]
with lease.Lease(Storage(), sys.argv[1]) as held:
    print("held", flush=True)
    sys.stdin.readline()
    try:
        held.check()
        print("still mine")
    except JobStopped as error:
        print(error)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "HEARTBEAT_S", 0.2)
    monkeypatch.setattr(lease, "STALE_S", 1.5)


@contextmanager
def holder(path: Path, machine: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease, as one of `machine` where that is given."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), machine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("machine", ["", "elsewhere"])
def test_a_living_holder_is_named_and_kept(tmp_path: Path, machine: str) -> None:
    path = tmp_path / "job.lease"
    with holder(path, machine) as process:
        with (
            pytest.raises(PreflightError, match=f"another run is writing here: process {process.pid} on "),
            Lease(Storage(), str(path)),
        ):
            pass
        out, _ = process.communicate("go\n", timeout=30)
        assert out == "still mine\n"
    assert not path.exists()


def test_a_holder_of_this_machine_that_was_killed_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "job.lease"
    with holder(path) as process:
        process.kill()  # not waited for: a zombie still has its number
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        started = time.monotonic()
        with Lease(Storage(), str(path)):
            assert time.monotonic() - started < lease.STALE_S / 2


def test_a_holder_of_another_machine_is_replaced_when_it_gives_no_sign_for_long(tmp_path: Path) -> None:
    path = tmp_path / "job.lease"
    with holder(path, "elsewhere") as process:
        process.kill()
        process.wait()
        started = time.monotonic()
        with Lease(Storage(), str(path)):
            assert time.monotonic() - started >= lease.STALE_S


def test_a_number_that_now_is_another_process_is_looked_at_for_long(tmp_path: Path) -> None:
    path = tmp_path / "job.lease"
    left = {"id": "x", "host": "here", "machine": lease._machine(), "pid": os.getpid(), "beat": 7}
    path.write_text(json.dumps(left))
    started = time.monotonic()
    with Lease(Storage(), str(path)):
        assert time.monotonic() - started >= lease.STALE_S


def test_one_that_was_taken_for_dead_stops_and_leaves_the_new_lease_alone(tmp_path: Path) -> None:
    path = tmp_path / "job.lease"
    with holder(path, "elsewhere") as process:
        os.kill(process.pid, signal.SIGSTOP)  # as a laptop that sleeps
        with Lease(Storage(), str(path)) as mine:
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(3 * lease.HEARTBEAT_S)
            out, _ = process.communicate("go\n", timeout=30)
            assert f"process {os.getpid()} on" in out
            assert "has taken this run over" in out
            mine.check()
        assert not path.exists()


def test_the_heartbeat_goes_on_and_survives_a_fault_of_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, storage = tmp_path / "job.lease", Storage()

    def away(path: str) -> bytes:
        raise StorageError(f"cannot read {path}")

    with Lease(storage, str(path)) as held:
        with monkeypatch.context() as fault:
            fault.setattr(storage, "read_bytes", away)
            time.sleep(3 * lease.HEARTBEAT_S)
        beat = json.loads(path.read_text())["beat"]
        path.write_bytes(b"{")  # damaged, but nobody else's
        held.check(at_once=True)
        wait_for(lambda: path.read_bytes().endswith(b"}"))
        wait_for(lambda: json.loads(path.read_text())["beat"] > beat)
        held.check(at_once=True)


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_check_says_who_took_it(tmp_path: Path) -> None:
    path = tmp_path / "job.lease"
    with Lease(Storage(), str(path)) as held:
        path.write_text(json.dumps({"id": "x", "host": "elsewhere", "machine": "m", "pid": 7, "beat": 1}))
        with pytest.raises(JobStopped, match="process 7 on elsewhere has taken this run over"):
            held.check()


def test_one_that_slept_until_who_took_it_had_ended_stops_too(tmp_path: Path) -> None:
    path = tmp_path / "job.lease"
    with holder(path, "elsewhere") as process:
        os.kill(process.pid, signal.SIGSTOP)
        with Lease(Storage(), str(path)):
            pass
        os.kill(process.pid, signal.SIGCONT)
        time.sleep(3 * lease.HEARTBEAT_S)
        out, _ = process.communicate("go\n", timeout=30)
        assert "another process, which has ended since, has taken this run over" in out
        assert not path.exists()


@pytest.mark.parametrize("left", [b"", b"{", b"[1]", b"{}", b"\xff\xfe"])
def test_a_damaged_lease_is_replaced_when_nobody_mends_it(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "job.lease"
    path.write_bytes(left)
    started = time.monotonic()
    with Lease(Storage(), str(path)):
        assert time.monotonic() - started >= lease.STALE_S
