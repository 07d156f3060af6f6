"""`engine=openai` over whole jobs: against an endpoint in this process that errs, and against vLLM's own with a real model."""

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.prepare import prepare
from jobs.respond import respond
from tests.conftest import API_KEY, API_KEY_ENV
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from tests.jobs.test_evaluate import rows
from tests.vllm_server import NAME, serve
from trust.config import load
from trust.errors import JobStopped, PreflightError
from trust.prepare.job import PrepareConfig
from trust.respond import RespondConfig
from trust.runs import Run

ROWS = 12


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run `r` with prepared samples."""
    docs = [{"title": "Paris", "text": "Paris is the capital of France.", "answers_found": [1]}]
    items = [
        {"id": f"{n:02d}", "question": f"What is capital number {n:02d}?", "answers": [["Paris"]], "docs": docs}
        for n in range(ROWS)
    ]
    (tmp_path / "data.json").write_text(json.dumps(items))
    words = [f"storage.root={tmp_path}", "run=r", f"data.path={tmp_path}/data.json", "data.language=en", "task=em"]
    prepare(load("prepare", PrepareConfig, words))
    return tmp_path


def config(root: Path, url: str, *words: str) -> RespondConfig:
    common = [f"storage.root={root}", "run=r", "engine=openai", f"engine.base_url={url}", "model=served"]
    common += ["model.path=m", "prompt.shots=0", "unit_rows=3", "max_failed=1"]
    return load("respond", RespondConfig, [*common, *words])


def asked(fake: FakeEndpoint) -> list[int]:
    """Numbers of the questions that were asked, sorted, without the preflight's."""
    found = [prompt.partition("capital number ")[2][:2] for prompt in fake.prompts]
    return sorted(int(number) for number in found if number)


def number(request: Request) -> int:
    return int(request.prompt.partition("capital number ")[2][:2] or -1)


@pytest.mark.usefixtures("ray_session")
def test_rubbish_becomes_failed_rows_that_can_be_done_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rubbish = {2: Reply("<html>oops</html>"), 5: Reply(answer(None)), 7: Reply({"error": {"message": "no"}}, 400)}
    with FakeEndpoint(lambda request: rubbish.get(number(request), Reply(answer()))) as fake:
        words = (f"engine.api_key_env={API_KEY_ENV}", "engine.price_in=1000", "engine.price_out=1000")
        respond(config(root, fake.url, *words))
        run = Run.of(config(root, fake.url))
        found = {row["sample_id"]: row for row in rows(run, "responses")}
        assert len(found) == ROWS
        failed = {key: row["reason"] for key, row in found.items() if row["status"] == "failed"}
        assert failed == {"data:02": "bad_response", "data:05": "no_content", "data:07": "request_refused"}
        good = found["data:00"]
        assert (good["output"], good["prompt_tokens"], good["output_tokens"], good["model"]) == (
            "Paris [1].",
            20,
            5,
            "m",
        )
        totals = run.manifest("respond").totals
        assert totals["served:m-2024-07-18@fp_1"] == ROWS - 2, "the one without text was answered by it too"
        assert totals["cost"] == pytest.approx((ROWS - 2) * 25e-3)
        assert "answered by m-2024-07-18@fp_1: 10" in capsys.readouterr().out
        assert asked(fake) == list(range(ROWS))

        rubbish.clear()
        fake.requests.clear()
        respond(config(root, fake.url, *words, "retry_failed=true"))
        assert asked(fake) == [2, 5, 7]
        assert {row["status"] for row in rows(run, "responses")} == {"ok"}
        totals = run.manifest("respond").totals
        assert totals["cost"] == pytest.approx((ROWS + 1) * 25e-3)
        assert not [key for key in totals if key.startswith("failed:")]
    for file in root.rglob("*"):
        assert not file.is_file() or API_KEY.encode() not in file.read_bytes(), file


@pytest.mark.usefixtures("ray_session")
def test_the_money_is_spent_and_no_more_and_the_rest_can_be_had_later(root: Path) -> None:
    """An answer costs 1."""
    price = ("engine.price_in=0", "engine.price_out=200000", "engine.concurrency=2")
    with FakeEndpoint() as fake:
        with pytest.raises(
            JobStopped, match=r"cost_limit=5 is reached: [56] is spent, and [67] rows .*retry_failed=true"
        ):
            respond(config(root, fake.url, *price, "engine.cost_limit=5"))
        assert len(asked(fake)) in (5, 6), "two are under way at once"
        first = asked(fake)
        with pytest.raises(JobStopped, match="cost_limit=5 is reached"):
            respond(config(root, fake.url, *price, "engine.cost_limit=5", "retry_failed=true"))
        assert asked(fake) == first, "nothing is left of the limit"
        respond(config(root, fake.url, *price, "engine.cost_limit=20", "retry_failed=true"))
        assert asked(fake) == list(range(ROWS)), "every question once, over all tries"
    run = Run.of(config(root, fake.url))
    assert {row["status"] for row in rows(run, "responses")} == {"ok"}
    assert run.manifest("respond").totals["cost"] == ROWS


@pytest.mark.usefixtures("ray_session")
def test_an_endpoint_may_move_but_another_model_is_another_run(root: Path) -> None:
    with FakeEndpoint() as fake, FakeEndpoint() as moved:
        respond(config(root, fake.url))
        respond(config(root, moved.url, "engine.concurrency=3"))
        assert asked(moved) == []
        with pytest.raises(PreflightError, match=r"model\.revision was null, is .*2025"):
            respond(config(root, moved.url, "model.revision=2025-01-01"))


@pytest.mark.usefixtures("ray_session")
def test_a_revoked_key_stops_the_job_and_keeps_what_is_done(root: Path) -> None:
    state: dict[str, Any] = {"good": 7}

    def reply(request: Request) -> Reply:
        state["good"] -= 1
        return Reply(answer()) if state["good"] >= 0 else Reply({"error": {"message": "revoked"}}, 401)

    with FakeEndpoint(reply) as fake:
        words = ("engine.concurrency=1", "cluster.units_in_flight=1", "unit_rows=2")
        with pytest.raises(JobStopped, match=r"lets nobody in any more: .*revoked"):
            respond(config(root, fake.url, *words))
        state["good"] = 100
        fake.requests.clear()
        respond(config(root, fake.url, *words))
        assert asked(fake) == [*range(6, ROWS)], "one of the seven was the preflight's, and units hold two rows"


def test_what_is_wrong_is_said_before_anything_starts(root: Path) -> None:
    gone = Reply({"error": {"message": "unknown"}}, 404)
    with (
        FakeEndpoint(lambda request: gone, models=["llama-3"]) as fake,
        pytest.raises(PreflightError, match=r"does not serve model\.path=m; it has llama-3"),
    ):
        respond(config(root, fake.url))
    with pytest.raises(PreflightError, match="nobody answers there"):
        respond(config(root, fake.url))
    assert not (root / "r" / "_units" / "respond").exists()


@pytest.mark.usefixtures("ray_session")
def test_answers_of_vllms_own_server(root: Path, smollm2: str) -> None:
    with serve(smollm2, root / "server.log") as url:
        words = (f"model.path={NAME}", f"engine.api_key_env={API_KEY_ENV}", "sampling.max_tokens=24")
        with pytest.raises(PreflightError, match=r"does not serve model\.path=smolm; did you mean smollm2\?"):
            respond(config(root, url, *words, "model.path=smolm"))
        with pytest.raises(PreflightError, match=r"wants a key"):
            respond(config(root, url, f"model.path={NAME}"))
        respond(config(root, url, *words))
    found = rows(Run.of(config(root, url)), "responses")
    assert [row["status"] for row in found] == ["ok"] * ROWS
    assert all(row["output"] and 1 <= row["output_tokens"] <= 24 and row["prompt_tokens"] > 50 for row in found)
    assert all(row["model"] == NAME for row in found)
