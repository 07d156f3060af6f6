"""What an actor does before its first unit."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from ray.exceptions import RayTaskError

from trust.errors import JobStopped, PreflightError, StorageError
from trust.storage import Storage
from trust.units import Unit, UnitActor, UnitResult, UnitStore, stopping


def test_an_actor_on_a_node_that_sees_another_folder_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    store = UnitStore(Storage(), str(tmp_path / "runs"), "count", "fingerprint")
    batch = {"unit": [json.dumps(Unit("u0", {"start": 0}, 10).__dict__)]}

    elsewhere = UnitActor("tests.trust.workers:CountingWorker", {"log": str(log)}, store)
    with pytest.raises(PreflightError, match=r"^node \S+ does not see .*/runs/_units/count/fingerprint"):
        elsewhere(batch)
    assert not (tmp_path / "runs").exists(), "nothing is left on a disk that nobody reads"

    store.keep_identity({"n": 1})
    here = UnitActor("tests.trust.workers:CountingWorker", {"log": str(log)}, store)
    assert json.loads(here(batch)["receipt"][0])["rows"] == 10


def test_an_actor_whose_unit_broke_does_nothing_more_of_what_it_was_handed(tmp_path: Path) -> None:
    store = UnitStore(Storage(), str(tmp_path / "runs"), "count", "fingerprint")
    store.keep_identity({})
    actor = UnitActor("tests.trust.workers:CountingWorker", {"log": str(tmp_path), "seconds": 1, "broken": "u0"}, store)
    with ThreadPoolExecutor(2) as pool:
        calls = []
        for name in ("u0", "u1"):
            calls.append(pool.submit(actor, {"unit": [json.dumps(Unit(name, {"start": 0}, 10).__dict__)]}))
            time.sleep(0.3)
        for call in calls:
            with pytest.raises(OSError, match="on fire"):
                call.result()
    with pytest.raises(OSError, match="on fire"):
        actor({"unit": [json.dumps(Unit("u2", {"start": 0}, 10).__dict__)]})
    assert not list(tmp_path.glob("*.txt")), "no unit was worked on to its end"
    assert not store.finished()


def test_what_stopped_an_actor_is_said_and_not_where() -> None:
    cause = JobStopped("the key is revoked")
    raised = RayTaskError("apply()", "File runner.py ^^^^^^^^\nJobStopped: the key is revoked", cause)
    with (
        pytest.raises(JobStopped, match=r"^the job stopped: the key is revoked\. What is finished is kept"),
        stopping(),
    ):
        raise raised.as_instanceof_cause()


def test_a_receipt_whose_files_are_gone_is_no_finished_unit(tmp_path: Path) -> None:
    store = UnitStore(Storage(), str(tmp_path), "count", "fingerprint")
    for name in ("u0", "u1"):
        store.write(Unit(name, {}, 1), UnitResult({"t": pa.table({"n": [1]})}))
    store.storage.delete(store.path("u1.t.parquet"))  # as when a finished job was being removed and was killed
    assert store.whole() == {"u0"}
    assert store.finished() == {"u0", "u1"}


def test_a_receipt_that_goes_while_it_is_read_is_named(tmp_path: Path) -> None:
    store = UnitStore(Storage(), str(tmp_path), "count", "fingerprint")
    with pytest.raises(StorageError, match=r"u0\.json was there and is gone"):
        list(store.receipts(["u0"]))


def test_changed_sums_of_a_unit_are_named(tmp_path: Path) -> None:
    store = UnitStore(Storage(), str(tmp_path), "count", "fingerprint")
    store.write(Unit("u0", {}, 1), UnitResult({}, sums={"n": np.arange(64)}))
    path = Path(store.path("u0.npz"))
    data = path.read_bytes()
    path.write_bytes(data[:60] + bytes([data[60] ^ 255]) + data[61:])
    with pytest.raises(StorageError, match=f"{path} is damaged: delete it"):
        store.sums("u0")


def test_an_error_of_ours_from_a_task_is_told_without_its_traceback() -> None:
    raised = RayTaskError("f", "Traceback: File x.py, line 1", StorageError("cannot write x: full"), "p", 1, "host")
    with pytest.raises(JobStopped, match=r"^the job stopped: cannot write x: full\. What is finished"), stopping():
        raise raised.as_instanceof_cause()
