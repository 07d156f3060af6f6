"""G-Eval with steps that the model writes: once a run, kept in the manifest, and used for every row."""

import json
import math
from pathlib import Path

import pytest

from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from trust.config import load
from trust.errors import JobStopped
from trust.evaluate import EvaluateConfig, run_evaluate
from trust.runs import Manifest, Run

ROWS = 6
STEPS = ["Read the response.", "Look for mistakes."]


def run_job(folder: Path, url: str, *words: str) -> tuple[Run, Manifest]:
    items = [{"id": f"{n}", "question": "Capital?", "output": f"It is Paris {n}.", "docs": []} for n in range(ROWS)]
    (folder / "data.json").write_text(json.dumps(items))
    common = [f"storage.root={folder}", f"data.path={folder}/data.json", "task=none", "run=r", "replicates=100"]
    common += ["metrics=[geval]", "metrics.geval.aspects=[fluency]", "metrics.geval.steps=written", "unit_rows=2"]
    common += ["judge/complete=openai", f"judge.complete.engine.base_url={url}", "judge.complete.model.path=m"]
    config = load("evaluate", EvaluateConfig, [*common, *words])
    return Run.of(config), run_evaluate(config)


def wants_steps(request: Request) -> bool:
    return "Write the steps" in request.prompt


def says(request: Request) -> Reply:
    if wants_steps(request):
        return Reply(answer(json.dumps({"steps": [STEPS[0], "", f"  {STEPS[1]}"]})))
    top = [{"token": "3", "logprob": math.log(0.9)}]
    return Reply(answer("3", logprobs={"content": [{"token": "3", "logprob": top[0]["logprob"], "top_logprobs": top}]}))


@pytest.mark.usefixtures("ray_session")
def test_steps_are_written_once_and_used_for_every_row(tmp_path: Path) -> None:
    with FakeEndpoint(says) as fake:
        run, manifest = run_job(tmp_path, fake.url)
        asked = [request for request in fake.requests if wants_steps(request)]
        assert len(asked) == 1
        assert asked[0].body["response_format"]["json_schema"]["schema"]["required"] == ["steps"]
        graded = [text for text in fake.prompts if "It is Paris" in text]
        assert len(graded) == ROWS
        assert all(f"1. {STEPS[0]}\n2. {STEPS[1]}" in text for text in graded)
        assert manifest.config["setup"] == {"geval": {"fluency": STEPS}}
        assert {row["status"] for row in rows(run, "scores")} == {"scored"}

        # The rows alone were lost: what was written first stays.
        run.storage.delete(run.path("manifests", "evaluate.json"))
        for name in run.storage.list_names(run.path("_units", "evaluate", manifest.fingerprint)):
            run.storage.delete(run.path("_units", "evaluate", manifest.fingerprint, name))
        _, again = run_job(tmp_path, fake.url)
        assert again.config["setup"] == manifest.config["setup"]
        assert sum(map(wants_steps, fake.requests)) == 1


@pytest.mark.usefixtures("ray_session")
def test_a_model_that_writes_no_steps_stops_the_run_before_any_row(tmp_path: Path) -> None:
    with FakeEndpoint(lambda request: Reply(answer("Let me think."))) as fake:
        with pytest.raises(
            JobStopped, match=r"metrics\.geval cannot be set up: no_steps: fluency: what the model wrote"
        ):
            run_job(tmp_path, fake.url, "judge.complete.logprobs=false")
        assert not any("It is Paris" in text for text in fake.prompts)
