"""Models on s3://, in whole jobs: fetched once a node, however many actors use them."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest

from tests.conftest import new_bucket
from tests.faulty_s3 import FaultyS3
from tests.jobs.test_s3 import Bucket, same_tables
from tests.kills import answered, finish, job, kill_when, receipts, table
from trust import models
from trust.storage import Storage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

TWO_ACTORS = ["cluster.min_actors=2", "cluster.max_actors=2", "cluster.actor_cpus=1"]


def upload(folder: Path, storage: Storage, address: str) -> None:
    for path in folder.iterdir():
        if path.is_file():
            storage.write_bytes(f"{address}/{path.name}", path.read_bytes())


def test_a_judge_for_two_actors(
    s3_server: str, tmp_path: Path, repo: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyS3(s3_server) as proxy:
        there = Bucket(proxy.url, new_bucket(s3_server), 40)
        model = f"{there.root}/models/judge"
        upload(shared / "models" / "tiny_true_nli", there.storage, model)

        def weights_read(work: Callable[[], object]) -> int:
            before = proxy.count("GET .*safetensors")
            work()
            return proxy.count("GET .*safetensors") - before

        monkeypatch.setenv("TRUST_CACHE", str(tmp_path / "one"))
        first, again = (weights_read(lambda: models.fetch(model, storage=there.storage)) for _ in range(2))

        def evaluated(run: str) -> int:
            words = job("evaluate", *there.words(run, f"judge.entails.model={model}"), *TWO_ACTORS, "replicates=100")
            return weights_read(lambda: finish(words, repo, {"TRUST_CACHE": str(tmp_path / "node")}))

        cold, warm = evaluated("cold"), evaluated("warm")
        assert cold - warm == first - again > 0, "fetched more than once"
        for run in ("cold", "warm"):
            assert pc.unique(table(there.run(run), "scores")["status"]).to_pylist() == ["scored"]
        assert there.run("cold").manifest("evaluate").totals["asks_asked"] >= 40
        same_tables(there.run("cold"), there.run("warm"))


def test_respond_killed_at_half_with_its_model_there(s3_server: str, smollm2: str, tmp_path: Path, repo: Path) -> None:
    rows = 60
    there = Bucket(s3_server, new_bucket(s3_server), rows)
    upload(Path(smollm2), there.storage, f"{there.root}/models/SmolLM2")
    log = tmp_path / "log"
    log.mkdir()
    env = {"TRUST_CACHE": str(tmp_path / "cache"), "TRUST_CALL_LOG": str(log)}
    finish(job("prepare", *there.words("r")), repo, env)
    more = ["engine=cpu", f"model.path={there.root}/models/SmolLM2", "model.max_model_len=2048", "prompt.shots=1"]
    more += ["sampling.temperature=0", "sampling.max_tokens=8", "unit_rows=1", "cluster.units_in_flight=4"]
    words = [word for word in there.words("r") if not word.startswith(("data.", "task=", "unit_rows="))]
    words = job("respond", *words, *more)
    kill_when(words, repo, env, lambda: len(receipts(there.storage, there.run("r"), "respond")) >= rows // 2, 600)
    before = answered(log)
    assert there.run("r").manifest("respond") is None
    assert "units are done already" in finish(words, repo, env)

    made = table(there.run("r"), "responses")
    assert made["sample_id"].to_pylist() == [f"d:{number:04d}" for number in range(rows)]
    assert pc.unique(made["status"]).to_pylist() == ["ok"]
    asked = answered(log)
    repeated = len(asked) - len(set(asked))
    print(f"respond on s3: {len(before)} answered when killed, {repeated} of them again")
    assert len(set(asked)) == rows
    assert repeated <= 0.1 * len(before)
    assert len([path for path in (tmp_path / "cache" / "models").iterdir() if path.is_dir()]) == 1
    assert json.loads(there.storage.read_bytes(there.run("r").path("manifests/respond.json")))["counts"] == {"ok": rows}
