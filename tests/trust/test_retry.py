"""`retry_failed`: only failed rows are done again, and tables, counts and sums are as if they had never failed."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kills import kill_when
from trust.config import ClusterConfig, JobConfig
from trust.execute import execute
from trust.runs import Manifest, Plan, Run
from trust.storage import StorageConfig
from trust.units import Unit

UNITS = 5


def make(root: Path, seconds: float = 0.0) -> tuple[Plan, Run, JobConfig]:
    (root / "log").mkdir(parents=True, exist_ok=True)
    config = JobConfig(run="r", storage=StorageConfig(str(root / "runs")), cluster=ClusterConfig(units_in_flight=1))
    plan = Plan(
        job="respond",
        identity={"units": UNITS},
        units=[Unit(f"u{i}", {"start": i * 6}, 6) for i in range(UNITS)],
        worker="tests.trust.workers:FlakyWorker",
        worker_config={"log": str(root / "log"), "down": str(root / "down"), "seconds": seconds},
        config={},
    )
    return plan, Run.of(config), config


def responses(run: Run) -> list[tuple[str, str]]:
    found = [run.storage.read_table(part["path"]).select(["sample_id", "status"]) for part in run.parts("responses")]
    return sorted((row["sample_id"], row["status"]) for table in found for row in table.to_pylist())


def done(root: Path) -> list[str]:
    return sorted(line for file in (root / "log").glob("*.txt") for line in file.read_text().split())


def fail_first(root: Path) -> Manifest:
    (root / "down").touch()
    plan, run, config = make(root)
    manifest = execute(plan, run, config)
    (root / "down").unlink()
    return manifest


ALL_OK = [(f"d:{i:05d}", "ok") for i in range(6 * UNITS)]


@pytest.mark.usefixtures("ray_session")
class TestRetry:
    def test_only_failed_rows_are_done_again_and_all_adds_up(self, tmp_path: Path) -> None:
        assert fail_first(tmp_path).counts == {"ok": 20, "failed": 10}
        plan, run, config = make(tmp_path)
        manifest = execute(plan, run, config, retry_failed=True)
        assert manifest.counts == {"ok": 30}
        assert responses(run) == ALL_OK
        assert run.sums("respond")["g"].tolist() == [30, 0]
        assert manifest.totals["tokens"] == 40, "tokens of both tries"
        asked = done(tmp_path)
        assert len(asked) == 40
        assert {key for key in set(asked) if asked.count(key) == 2} == {f"d:{i:05d}" for i in range(0, 30, 3)}
        named = {part["path"].rsplit("/", 1)[1] for part in run.parts("responses")}
        assert set(os.listdir(run.path("responses"))) == named, "a replaced part is left"

    def test_what_fails_again_is_tried_in_another_round(self, tmp_path: Path) -> None:
        fail_first(tmp_path)
        (tmp_path / "down").touch()
        plan, run, config = make(tmp_path)
        again = execute(plan, run, config, retry_failed=True)
        assert (again.counts, again.retries) == ({"ok": 20, "failed": 10}, 1)
        (tmp_path / "down").unlink()
        last = execute(plan, run, config, retry_failed=True)
        assert (last.counts, last.retries) == ({"ok": 30}, 2)
        assert responses(run) == ALL_OK
        assert run.sums("respond")["g"].tolist() == [30, 0]

    def test_without_the_word_nothing_is_retried(self, tmp_path: Path) -> None:
        first = fail_first(tmp_path)
        plan, run, config = make(tmp_path)
        assert execute(plan, run, config) == first
        assert len(done(tmp_path)) == 30

    def test_nothing_failed_means_nothing_to_do(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path)
        first = execute(plan, run, config)
        assert execute(plan, run, config, retry_failed=True) == first
        assert len(done(tmp_path)) == 30

    def test_what_was_made_of_the_failed_rows_is_removed(self, tmp_path: Path) -> None:
        fail_first(tmp_path)
        plan, run, config = make(tmp_path)
        execute(replace(plan, job="evaluate"), run, config)
        run.storage.write_bytes(run.path("summary.json"), b"{}")
        execute(plan, run, config, retry_failed=True)
        assert run.manifest("evaluate") is None
        assert not run.storage.exists(run.path("summary.json"))


DRIVER = """
import sys
from pathlib import Path
from tests.trust.test_retry import make
from trust.execute import execute
plan, run, config = make(Path(sys.argv[1]), seconds=1.0)
execute(plan, run, config, retry_failed=True)
"""


@pytest.mark.usefixtures("ray_session")
def test_a_retry_killed_on_the_way_goes_on(tmp_path: Path, repo: Path) -> None:
    fail_first(tmp_path)
    receipts = tmp_path / "runs" / "r" / "_units" / "respond"

    def retried() -> int:
        return len(list(receipts.glob("*/*-retry1.json")))

    kill_when([sys.executable, "-c", DRIVER, str(tmp_path)], repo, {}, lambda: retried() >= 2, 90)
    assert 2 <= retried() < UNITS
    plan, run, config = make(tmp_path)
    assert (manifest := run.manifest("respond"))
    assert manifest.counts == {"ok": 20, "failed": 10}
    assert execute(plan, run, config, retry_failed=True).counts == {"ok": 30}
    assert responses(run) == ALL_OK
    assert run.sums("respond")["g"].tolist() == [30, 0]
    assert len(done(tmp_path)) <= 30 + 10 + 2, "more than the unit in flight was retried twice"
