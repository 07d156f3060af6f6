"""Submitted jobs on three real Ray nodes: one that dies on the way, one that comes, one that sees other folders."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.nodes import Nodes, below
from trust.runs import Run
from trust.storage import StorageConfig, open_storage

ROWS = 600
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
POOL = ["cluster=pool", "cluster.min_actors=3", "cluster.max_actors=3", "cluster.actor_cpus=1"]


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of which one node has another one of the same name."""
    return tmp_path_factory.mktemp("private")


@pytest.fixture(scope="module")
def nodes(private: Path) -> Iterator[Nodes]:
    """Three nodes of one CPU each. The last one has no S3 keys, and its `private` folder is another one."""
    started = Nodes(env=KEYS)
    try:
        started.add()
        for key in KEYS:
            del started.env[key]
        hides = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
        started.add(hide=private if hides else None)
        started.env |= KEYS
        yield started
    finally:
        started.close()


CHECK = """
import json, sys
import ray
from trust import cluster
from trust.config import ClusterConfig
from trust.errors import PreflightError
from trust.storage import Storage

cluster.AUTOSCALER_S = 2.0
cluster.connect(ClusterConfig(address=sys.argv[1]))
endpoint, bucket, shared, private = sys.argv[2:]

@ray.remote(num_cpus=1)
class Busy:
    def there(self):
        return True

others = [Busy.remote() for _ in range(3)]
ray.get([other.there.remote() for other in others])
assert not ray.available_resources().get("CPU")

def told(call, *arguments):
    try:
        call(*arguments)
    except PreflightError as error:
        return str(error)
    return ""

pool = lambda actors: ClusterConfig(min_actors=actors, max_actors=actors)
print(json.dumps({
    "fits": told(cluster.preflight, pool(3), 1, 0),
    "cpus": told(cluster.preflight, pool(4), 1, 0),
    "gpus": told(cluster.preflight, pool(1), 1, 1),
    "shared": told(cluster.check_reach, Storage(), shared),
    "private": told(cluster.check_reach, Storage(), private),
    "s3": told(cluster.check_reach, Storage(endpoint), bucket),
}))
"""


@pytest.fixture(scope="module")
def checks(nodes: Nodes, repo: Path, private: Path, s3_server: str) -> dict[str, str]:
    """What each preflight says while other jobs hold every CPU."""
    import s3fs

    s3fs.S3FileSystem(endpoint_url=s3_server, key="test", secret="test", skip_instance_cache=True).mkdir("nodes")
    shared = private.parent / "shared_by_all"
    words = [nodes.address, s3_server, "s3://nodes", str(shared), str(private)]
    done = subprocess.run(
        [sys.executable, "-c", CHECK, *words], cwd=repo, env=nodes.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(shared) == os.listdir(private) == [], "markers are left"
    return dict(json.loads(done.stdout.splitlines()[-1]))


class TestPreflight:
    def test_only_totals_count(self, checks: dict[str, str]) -> None:
        assert checks["fits"] == ""

    def test_the_sum_is_spelled_out(self, checks: dict[str, str]) -> None:
        assert checks["cpus"].startswith(
            "cluster.min_actors=4 actors of 1 CPU each need 4 CPU, and an actor lies on one node; "
            "this cluster's nodes have 1 CPU; 1 CPU; 1 CPU, which is room for 3, and none is being added"
        )
        assert "1 actors of 1 CPU and 1 GPU each" in checks["gpus"]
        assert "have 1 CPU and 0 GPU; 1 CPU and 0 GPU; 1 CPU and 0 GPU, which is room for 0" in checks["gpus"]

    def test_a_folder_that_all_share_passes(self, checks: dict[str, str]) -> None:
        assert checks["shared"] == ""

    def test_a_node_that_sees_another_folder_is_named(self, checks: dict[str, str], private: Path) -> None:
        if not checks["private"]:
            pytest.skip("no mount namespace may be made here")
        assert checks["private"].startswith("1 of 3 nodes cannot use the storage: node ")
        assert f"storage.root={private} is not the folder that the job writes to" in checks["private"]
        assert "every node shares, or use an s3:// address" in checks["private"]

    def test_a_node_without_keys_is_named(self, checks: dict[str, str]) -> None:
        assert checks["s3"].startswith("1 of 3 nodes cannot use the storage: node ")
        assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in checks["s3"]


def test_a_relative_path_in_a_submitted_job_is_refused(nodes: Nodes, repo: Path) -> None:
    job = submit(nodes, repo, "jobs.prepare", "data=demo", "storage.root=runs", "run=r")
    told, _ = job.communicate(timeout=120)
    assert job.returncode == 1
    assert "error: runs: a submitted job runs in a folder of its own, so a relative path leads nowhere" in told
    assert "exit code 2" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    "judge",
    ["lexical", pytest.param("t5", marks=pytest.mark.slow)],
)
def test_prepare_and_evaluate_while_one_node_dies_and_one_comes(
    nodes: Nodes, repo: Path, shared: Path, tmp_path: Path, judge: str
) -> None:
    rows = ROWS if judge == "lexical" else 60
    data = tmp_path / "data.json"
    data.write_text(json.dumps([item(number) for number in range(rows)]))
    words = [f"data.path={data}", "task=em", f"judge/entails={judge}", "replicates=100", "report=false"]
    words += [f"judge.entails.model={shared}/models/tiny_true_nli"] if judge == "t5" else []
    unit = rows // 30

    alone = [
        sys.executable,
        "-m",
        "jobs.evaluate",
        *words,
        f"unit_rows={unit}",
        f"storage.root={tmp_path}/one",
        "run=r",
    ]
    whole = subprocess.run(alone, cwd=repo, capture_output=True, text=True, check=False)
    assert whole.returncode == 0, whole.stderr

    job = submit(
        nodes, repo, "jobs.evaluate", *words, *POOL, f"unit_rows={unit}", f"storage.root={tmp_path}/many", "run=r"
    )
    told = while_nodes_change(nodes, job, tmp_path / "many" / "r" / "_units" / "evaluate", 5)
    assert job.returncode == 0, told
    assert f"evaluate: {rows} of {rows} rows" in told
    ours = [line for line in told.splitlines() if line[2:3] == line[5:6] == ":" and "rows" in line]
    assert len(ours) >= 4, "progress of both jobs is seen"

    one, many = (tables(tmp_path / name) for name in ("one", "many"))
    for name in ("responses", "scores"):
        assert many[name].num_rows == rows
        same = [column for column in one[name].column_names if column != "trace"]  # it holds raw scores
        assert many[name].select(same).equals(one[name].select(same)), name
    columns = ["hash", "sample_id", "answer", "status"]
    assert many["verdicts"].select(columns).equals(one["verdicts"].select(columns))
    summaries = [json.loads((tmp_path / name / "r" / "summary.json").read_text()) for name in ("one", "many")]
    assert summaries[0] == summaries[1]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("smollm2")
def test_respond_while_a_node_dies_and_one_comes(nodes: Nodes, repo: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text(json.dumps([item(number, docs=1) for number in range(24)]))
    root = f"storage.root={tmp_path}/runs"
    prepare = submit(nodes, repo, "jobs.prepare", f"data.path={data}", "task=em", root, "run=r")
    assert "prepare: 24 ok" in prepare.communicate(timeout=120)[0]

    words = [
        "sampling.temperature=0",
        "sampling.max_tokens=24",
        "model.max_model_len=2048",
        "unit_rows=2",
        "prompt.shots=1",
    ]
    pool = ["cluster.min_actors=2", "cluster.max_actors=2", "cluster.actor_cpus=1", "cluster.units_in_flight=1"]
    job = submit(nodes, repo, "jobs.respond", "model=smollm2", *words, *pool, root, "run=r")
    told = while_nodes_change(nodes, job, tmp_path / "runs" / "r" / "_units" / "respond", 3)
    assert job.returncode == 0, told
    made = tables(tmp_path / "runs", ("responses",))["responses"]
    assert sorted(made["sample_id"].to_pylist()) == [f"data:{number:04d}" for number in range(24)]
    assert set(made["status"].to_pylist()) == {"ok"}


def item(number: int, docs: int = 4) -> dict[str, Any]:
    made = [
        {"title": f"T{number}-{doc}", "text": f"Fact {number} is about item {number}. " * 8, "answers_found": [1]}
        for doc in range(docs)
    ]
    output = f"Fact {number} is about item {number} [1][2]. It is not about item {number + 1} [3][4]."
    answer = {"answers": [[f"item {number}"]], "docs": made, "output": output}
    return {"id": f"{number:04d}", "question": f"What is fact {number}?", "language": "en"} | answer


def submit(nodes: Nodes, repo: Path, *words: str) -> subprocess.Popen[str]:
    return nodes.submit("python", "-m", *words, options=["--working-dir", str(repo)])


def while_nodes_change(nodes: Nodes, job: subprocess.Popen[str], receipts: Path, after: int) -> str:
    """Kills a node that works when `after` units are done, then adds one; returns what the job printed."""
    told: list[str] = []
    reader = threading.Thread(target=lambda: told.extend(job.stdout or ()))
    reader.start()
    while job.poll() is None and len(list(receipts.glob("*/*.json"))) < after:
        time.sleep(0.02)
    assert job.poll() is None, f"ended before the kill: {''.join(told)}"
    nodes.kill(next(node for node in nodes.running[1:] if below(node.pid, "UnitActor")))
    nodes.add()
    job.wait(timeout=900)
    reader.join()
    return "".join(told)


def tables(root: Path, names: tuple[str, ...] = ("responses", "scores", "verdicts")) -> dict[str, pa.Table]:
    storage = open_storage(config=StorageConfig())
    run = Run(storage, str(root), "r")
    return {name: pa.concat_tables([storage.read_table(part["path"]) for part in run.parts(name)]) for name in names}
