"""A run from claim to manifest: whole tables only, no unit twice, no other config's rows."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kills import finish, kill_when, receipts
from trust.config import ClusterConfig, JobConfig
from trust.errors import JobStopped, PreflightError
from trust.execute import execute
from trust.runs import Plan, Run
from trust.storage import StorageConfig
from trust.units import Unit


def make(root: Path, units: int = 6, seconds: float = 0.0, **options: object) -> tuple[Plan, Run, JobConfig]:
    log = root / "log"
    log.mkdir(parents=True, exist_ok=True)
    config = JobConfig(run="r", storage=StorageConfig(str(root / "runs")), cluster=ClusterConfig(units_in_flight=2))
    plan = Plan(
        job="count",
        identity={"n": units},
        units=[Unit(f"u{i}", {"start": i * 10}, 10) for i in range(units)],
        worker="tests.trust.workers:CountingWorker",
        worker_config={"log": str(log), "seconds": seconds, **options},
        config={},
    )
    return plan, Run.of(config), config


def done(root: Path) -> list[str]:
    return sorted(line for file in (root / "log").glob("*.txt") for line in file.read_text().split())


@pytest.mark.usefixtures("ray_session")
class TestExecute:
    def test_tables_counts_and_sums_cover_all_units(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path)
        manifest = execute(plan, run, config)
        assert manifest.counts == {"ok": 60}
        assert manifest.totals["tokens"] == 12
        table = run.storage.read_table(run.parts("samples")[0]["path"])
        assert table["sample_id"].to_pylist() == [f"d:{i:05d}" for i in range(60)]
        assert run.sums("count")["g"].tolist() == [[6 * 2**40 + 150, 60]]

    def test_unit_parts_are_gone_and_receipts_stay(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path)
        execute(plan, run, config)
        left = os.listdir(run.path("_units", "count", plan.fingerprint))
        assert sorted(left) == ["identity", *(f"u{i}.json" for i in range(6))]

    def test_a_finished_run_is_not_done_again(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path)
        first = execute(plan, run, config)
        assert execute(plan, run, config) == first
        assert done(tmp_path) == sorted(unit.name for unit in plan.units)

    def test_another_config_is_refused_and_named(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path)
        execute(plan, run, config)
        with pytest.raises(PreflightError, match=r"n was 6, is 7.*overwrite=true"):
            execute(replace(plan, identity={"n": 7}), run, config)

    def test_overwrite_replaces_and_leaves_no_old_part(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path)
        execute(plan, run, config)
        shorter = replace(plan, identity={"n": 2}, units=plan.units[:2])
        assert execute(shorter, run, replace(config, overwrite=True)).counts == {"ok": 20}
        assert len(os.listdir(run.path("samples"))) == 1

    def test_a_broken_unit_stops_with_one_message_and_the_rest_is_kept(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path, broken="u5")
        with pytest.raises(JobStopped, match="the disk is on fire"):
            execute(plan, run, config)
        assert run.manifest("count") is None
        with pytest.raises(PreflightError, match=r"n was 6, is 7.*overwrite=true"):
            execute(replace(plan, identity={"n": 7}), run, config)
        whole = replace(plan, worker_config=plan.worker_config | {"broken": None})
        assert execute(whole, run, config).counts == {"ok": 60}
        assert len(done(tmp_path)) == len(set(done(tmp_path))) == 6

    @pytest.mark.parametrize("name", ["u1.samples.parquet", "u1.npz"])
    @pytest.mark.parametrize("part", [0.5, None])
    def test_what_is_cut_short_or_gone_is_done_again_by_the_next_start(
        self, tmp_path: Path, name: str, part: float | None
    ) -> None:
        plan, run, config = make(tmp_path, broken="u5")
        with pytest.raises(JobStopped):
            execute(plan, run, config)
        path = Path(run.path("_units", "count", plan.fingerprint, name))
        data = path.read_bytes()
        path.unlink() if part is None else path.write_bytes(data[: int(len(data) * part)])
        whole = replace(plan, worker_config=plan.worker_config | {"broken": None})
        with pytest.raises(JobStopped, match=f"files of 1 units are gone or cut short .*{name}.*Start it again"):
            execute(whole, run, config)
        assert run.manifest("count") is None
        assert execute(whole, run, config).counts == {"ok": 60}
        ids = run.storage.read_table(run.parts("samples")[0]["path"])["sample_id"].to_pylist()
        assert ids == [f"d:{i:05d}" for i in range(60)]
        assert run.sums("count")["g"].tolist() == [[6 * 2**40 + 150, 60]]
        assert sorted(done(tmp_path)) == sorted([*(f"u{i}" for i in range(6)), "u1"])

    def test_a_receipt_that_is_cut_short_is_named(self, tmp_path: Path) -> None:
        plan, run, config = make(tmp_path, broken="u5")
        with pytest.raises(JobStopped):
            execute(plan, run, config)
        path = Path(run.path("_units", "count", plan.fingerprint, "u1.json"))
        path.write_text(path.read_text()[:20])
        whole = replace(plan, worker_config=plan.worker_config | {"broken": None})
        with pytest.raises(JobStopped, match=r"u1\.json is cut short or damaged: delete it"):
            execute(whole, run, config)
        path.unlink()
        assert execute(whole, run, config).counts == {"ok": 60}


DRIVER = """
import sys
from pathlib import Path
from tests.trust.test_execute import make
from trust.execute import execute
from trust import cluster
plan, run, config = make(Path(sys.argv[1]), units=12, seconds=0.6)
cluster.connect(config.cluster)
execute(plan, run, config)
"""


def test_killed_at_half_and_started_again_gives_the_same_table(tmp_path: Path, repo: Path) -> None:
    words = [sys.executable, "-c", DRIVER, str(tmp_path)]
    _, run, _ = make(tmp_path, units=12)
    kill_when(words, repo, {}, lambda: len(receipts(run.storage, run, "count")) >= 5, 90)
    assert 5 <= len(receipts(run.storage, run, "count")) < 12
    finish(words, repo, {})
    manifest = json.loads(Path(run.path("manifests", "count.json")).read_text())
    assert manifest["counts"] == {"ok": 120}
    ids = run.storage.read_table(run.parts("samples")[0]["path"])["sample_id"].to_pylist()
    assert ids == [f"d:{i:05d}" for i in range(120)]
    repeated = len(done(tmp_path)) - 12
    assert repeated <= 4, "more than the units in flight were done twice"


@pytest.mark.usefixtures("ray_session")
def test_overwriting_a_job_removes_what_later_ones_made_of_it(tmp_path: Path) -> None:
    plan, run, config = make(tmp_path, units=1)
    for job in ("prepare", "curate", "respond", "evaluate"):  # each leaves samples
        execute(replace(plan, job=job), run, config)
    elsewhere = replace(plan, job="label", config=plan.config | {"from_run": "other"})
    execute(elsewhere, run, config)
    run.storage.write_bytes(run.path("summary.json"), b"{}")
    execute(replace(plan, job="curate", identity={"n": 2}), run, replace(config, overwrite=True))
    left = [manifest.job for manifest in run.manifests()]
    assert left == ["curate", "evaluate", "label", "prepare"], "respond read samples of this run, the others did not"
    assert not run.storage.exists(run.path("summary.json"))
    assert len(run.parts("samples")) == 4
