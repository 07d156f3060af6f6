"""What an actor does before its first unit."""

import json
from pathlib import Path

import pytest
from ray.exceptions import RayTaskError

from trust.errors import JobStopped, PreflightError
from trust.storage import Storage
from trust.units import Unit, UnitActor, UnitStore, stopping


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


def test_what_stopped_an_actor_is_said_and_not_where() -> None:
    cause = JobStopped("the key is revoked")
    raised = RayTaskError("apply()", "File runner.py ^^^^^^^^\nJobStopped: the key is revoked", cause)
    with (
        pytest.raises(JobStopped, match=r"^the job stopped: the key is revoked\. What is finished is kept"),
        stopping(),
    ):
        raise raised.as_instanceof_cause()
