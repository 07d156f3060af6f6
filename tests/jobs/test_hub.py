"""Whole jobs whose judge lies on a hub: what is wrong there is said before anything starts, and what was taken is recorded."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_hub import TOKEN, FakeHub, Repo
from tests.jobs.test_resume import items
from tests.kills import finish, job, table
from trust.runs import Run
from trust.storage import Storage

NAME = "Org/Judge"


@pytest.fixture
def there(shared: Path) -> Iterator[FakeHub]:
    with FakeHub() as hub:
        hub.repos[NAME] = Repo(gated=True)
        folder = shared / "models" / "tiny_true_nli"
        hub.repos[NAME].commit({file.name: file.read_bytes() for file in folder.iterdir()})
        yield hub


@pytest.fixture
def env(there: FakeHub, tmp_path: Path) -> dict[str, str]:
    return {"HF_ENDPOINT": there.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0"}


def words(tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items(12)))
    where = [f"storage.root={tmp_path}/runs", f"data.path={tmp_path}/data.jsonl", "data.name=d", "task=em", "run=r"]
    return job("evaluate", *where, f"judge.entails.model={NAME}", "replicates=100", *more)


def test_no_access_is_said_before_anything_starts(
    there: FakeHub, env: dict[str, str], tmp_path: Path, repo: Path
) -> None:
    started = time.monotonic()
    done = subprocess.run(words(tmp_path), cwd=repo, env=os.environ | env, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"error: model {NAME}: is gated, and this node has no token: accept its licence at {there.url}"
    )
    assert time.monotonic() - started < 60
    assert not list((tmp_path / "runs").rglob("*.parquet"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_actors_and_a_branch_that_moves(there: FakeHub, env: dict[str, str], tmp_path: Path, repo: Path) -> None:
    commit = there.repos[NAME].refs["main"]
    env["HF_TOKEN"] = TOKEN
    pool = ["cluster.min_actors=2", "cluster.max_actors=2", "cluster.actor_cpus=1"]
    said = finish(words(tmp_path, *pool), repo, env)
    run = Run(Storage(), str(tmp_path / "runs"), "r")
    manifest = run.manifest("evaluate")
    assert manifest is not None
    assert manifest.config["judge"]["entails"]["revision"] == commit
    assert set(table(run, "scores")["status"].to_pylist()) == {"scored"}
    assert there.count("GET .*safetensors") == 1
    assert commit in json.loads(Storage().read_bytes(run.path("summary.json")))["judge"]

    for revision in ("main", commit):
        again = finish(words(tmp_path, f"judge.entails.revision={revision}"), repo, env)
        assert "is finished already" in again
    offline = finish(words(tmp_path), repo, env | {"HF_HUB_OFFLINE": "1"})
    assert "is finished already" in offline
    changed = dict(there.repos[NAME].commits[commit]) | {"generation_config.json": b"{}"}
    there.repos[NAME].commit(changed)
    moved = subprocess.run(words(tmp_path), cwd=repo, env=os.environ | env, check=False, capture_output=True, text=True)
    assert moved.returncode == 2
    assert "another config" in moved.stderr
    finish(words(tmp_path, f"judge.entails.revision={commit}"), repo, env)

    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert TOKEN.encode() not in kept
    assert TOKEN not in said + again + offline + moved.stderr
