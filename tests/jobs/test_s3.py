"""Whole jobs on s3://, against a real server over HTTP: from a file in a bucket to the report, over kills and outages."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.evaluate import evaluate
from jobs.prepare import prepare
from tests.conftest import S3_SECRET, new_bucket
from tests.faulty_s3 import FaultyS3
from tests.jobs.test_resume import items
from tests.kills import answered, finish, job, kill_when, receipts, table
from trust.config import load
from trust.errors import TrustError
from trust.evaluate import EvaluateConfig
from trust.prepare.job import PrepareConfig
from trust.runs import Run
from trust.storage import Storage

ROWS, UNIT = 300, 10


class Bucket:
    """A bucket with a data file of its own, and the words of jobs that read and write there through `endpoint`."""

    def __init__(self, endpoint: str, address: str, rows: int) -> None:
        self.storage, self.endpoint, self.root = Storage(endpoint), endpoint, f"{address}/runs"
        self.data = f"{address}/in/data.jsonl"
        self.storage.write_bytes(self.data, "".join(json.dumps(item) + "\n" for item in items(rows)).encode())

    def words(self, run: str, *more: str) -> list[str]:
        where = ["storage=s3", f"storage.root={self.root}", f"storage.endpoint={self.endpoint}", f"run={run}"]
        return [*where, f"data.path={self.data}", "data.name=d", "task=em", f"unit_rows={UNIT}", *more]

    def judged(self, run: str, *more: str) -> list[str]:
        return self.words(run, "judge/entails=lexical", "replicates=100", *more)

    def evaluate(self, run: str, *more: str) -> Run:
        evaluate(load("evaluate", EvaluateConfig, self.judged(run, *more)))
        return self.run(run)

    def run(self, name: str) -> Run:
        return Run(self.storage, self.root, name)

    def summary(self, run: str) -> dict[str, Any]:
        return dict(json.loads(self.storage.read_bytes(self.run(run).path("summary.json"))))


def same_tables(first: Run, second: Run) -> None:
    for name in ("responses", "scores", "verdicts"):
        one, other = table(first, name), table(second, name)
        assert one.num_rows == len({tuple(row.items()) for row in one.select(_key(name)).to_pylist()}), "a row twice"
        assert one.equals(other), name
    assert table(first, "scores").num_rows == table(first, "responses").num_rows


def _key(name: str) -> list[str]:
    return ["judge", "sample_id", "hash"] if name == "verdicts" else ["sample_id", "model", "prompt", "draw"]


@pytest.fixture(scope="module")
def bucket(s3_server: str, ray_session: None) -> Bucket:
    return Bucket(s3_server, new_bucket(s3_server), ROWS)


@pytest.fixture(scope="module")
def whole(bucket: Bucket) -> Run:
    """A run that nothing disturbed."""
    return bucket.evaluate("whole")


def test_from_a_file_to_the_report(bucket: Bucket, whole: Run, capfd: pytest.CaptureFixture[str]) -> None:
    prepare(load("prepare", PrepareConfig, bucket.words("prepared")))
    assert table(bucket.run("prepared"), "samples").num_rows == ROWS
    assert table(whole, "scores").num_rows == ROWS
    assert bucket.summary("whole")["num_scored"] == ROWS
    assert b"</html>" in bucket.storage.read_bytes(whole.path("report.html"))

    again = bucket.evaluate("again", "metrics.trust_score.at_most_citations=2")
    totals = again.manifest("evaluate").totals
    assert totals.get("asks_asked", 0) == 0
    assert totals["asks_reused"] == whole.manifest("evaluate").totals["asks_asked"] > 0

    said = capfd.readouterr()
    assert f"{bucket.root}/again/report.html" in said.out
    assert S3_SECRET not in said.out + said.err
    objects = bucket.storage.s3.objects.find(bucket.root)
    assert len(objects) > 20
    assert not [path for path in objects if S3_SECRET.encode() in bucket.storage.read_bytes(f"s3://{path}")]


def test_ten_seconds_of_503_while_units_are_running(bucket: Bucket, whole: Run) -> None:
    with FaultyS3(bucket.endpoint) as proxy:
        address = f"{bucket.root.rpartition('/')[0]}/disturbed"
        there = Bucket(proxy.url, address, ROWS)
        with proxy.failing(".", seconds=10, after=r"PUT \S+/_units/evaluate/\S+\.json ") as fault:
            disturbed = there.evaluate("whole")
        assert fault.hits > 20
        same_tables(disturbed, whole)
        assert there.summary("whole") == bucket.summary("whole")


def test_a_table_that_is_cut_short_stops_the_job_with_one_line(bucket: Bucket, s3: str) -> None:
    few = Bucket(bucket.endpoint, s3, 20)
    prepare(load("prepare", PrepareConfig, few.words("r", "data.outputs=require")))
    (part,) = few.run("r").parts("responses")
    few.storage.write_bytes(part["path"], few.storage.read_bytes(part["path"])[:-100])
    words = [word for word in few.judged("r") if not word.startswith(("data.", "task="))]
    with pytest.raises(TrustError, match=f"cannot read {part['path']}: .*cut short or damaged") as error:
        evaluate(load("evaluate", EvaluateConfig, words))
    assert error.value.exit_code == 1
    assert "\n" not in str(error.value)
    assert few.run("r").manifest("evaluate") is None
    assert few.storage.list_names(few.run("r").path("scores")) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_prepare_killed_at_half_and_started_again(s3: str, repo: Path, s3_server: str) -> None:
    there = Bucket(s3_server, s3, 2000)
    words = job("prepare", *there.words("r", "data.outputs=require"))
    kill_when(words, repo, {}, lambda: len(receipts(there.storage, there.run("r"), "prepare")) >= 100, 300)
    folder = there.run("r").path("_units", "prepare")
    folder = f"{folder}/{there.storage.list_folders(folder)[0]}"
    kept = {file.path: file.written for file in there.storage.list_files(folder) if file.path.endswith(".json")}
    assert 100 <= len(kept) < 200
    assert there.run("r").manifest("prepare") is None
    assert there.storage.list_names(there.run("r").path("responses")) == [], "a half-made table"
    assert "units are done already" in finish(words, repo, {})
    written = {file.path: file.written for file in there.storage.list_files(folder)}
    assert {path: written[path] for path in kept} == kept, "a finished unit was done again"
    finish(job("prepare", *there.words("whole", "data.outputs=require")), repo, {})
    killed, whole = (table(there.run(name), "responses") for name in ("r", "whole"))
    assert killed.num_rows == 2000
    assert killed.equals(whole)


@pytest.mark.parametrize("rows", [600, 2000])
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_half_and_started_again(
    bucket: Bucket, s3: str, tmp_path: Path, repo: Path, rows: int, s3_server: str
) -> None:
    there = Bucket(s3_server, s3, rows)
    log = tmp_path / "log"
    log.mkdir()
    env = {"TRUST_CALL_LOG": str(log)}
    words = job("evaluate", *there.judged("r"))
    killed = there.run("r")
    kill_when(words, repo, env, lambda: len(receipts(there.storage, killed, "evaluate")) >= rows // UNIT // 2, 900)
    before = answered(log)
    assert killed.manifest("evaluate") is None
    assert there.storage.list_names(killed.path("scores")) == [], "a half-made table"
    logged = finish(words, repo, env)
    assert "units are done already" in logged
    assert S3_SECRET not in logged

    other = Bucket(s3_server, f"{s3}/other", rows)
    unbroken = other.evaluate("r")
    same_tables(killed, unbroken)
    assert there.summary("r") == other.summary("r")
    asked = answered(log)
    repeated = len(asked) - len(set(asked))
    print(f"s3, {rows} rows: {len(before)} asks answered when killed, {repeated} of them again")
    assert len(set(asked)) == unbroken.manifest("evaluate").totals["asks_asked"]
    assert repeated <= 0.1 * len(before)
