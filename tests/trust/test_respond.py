import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from trust import tables
from trust.ask import AskFailed, Completion
from trust.ask.engine import EngineConfig
from trust.errors import ConfigError
from trust.models import ModelConfig
from trust.prompts import Prompt, PromptConfig
from trust.respond import (
    RespondConfig,
    RespondWorker,
    SamplingConfig,
    clean,
    identity,
    respond_row,
    unit_result,
    worker_config,
)
from trust.storage import Storage
from trust.units import UnitResult, row_units

DOCS = [{"doc_id": str(n), "title": f"T{n}", "text": f"text {n}", "score": 1.0, "answers_found": [1]} for n in range(3)]
ROW = {
    "sample_id": "d:1",
    "dataset": "d",
    "language": "en",
    "task": "em",
    "question": "Who?",
    "answers": [["Ann"]],
    "docs": DOCS,
    "context": {"history": "x"},
    "meta": {"source": "y"},
}


class FakeAsk:
    """Answers from a function of (messages, sampling), and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[Any, dict[str, Any]]] = []

    async def complete(self, messages: Any, sampling: dict[str, Any]) -> Completion:
        self.asked.append((messages, sampling))
        result = self.answer(messages, sampling)
        if isinstance(result, BaseException):
            raise result
        return result


@pytest.fixture
def prompt(tmp_path: Path) -> Prompt:
    file = tmp_path / "p.json"
    texts = {"instruction": "I", "demo_sep": "\n", "demo_prompt": "{INST} {Q} {D}{A}", "doc_prompt": "[{ID}] {P}\n"}
    file.write_text(json.dumps(texts))
    return Prompt.load(PromptConfig(name="mine", file=str(file), shots=0, docs=2))


def _respond(prompt: Prompt, answer: Any, row: dict[str, Any] = ROW, draw: int = 0, **sampling: Any) -> Any:
    ask = FakeAsk(answer)
    return asyncio.run(respond_row(row, prompt, SamplingConfig(**sampling), ask, draw, "m")), ask


def test_a_response_is_self_contained_with_documents_as_shown(prompt: Prompt) -> None:
    response, ask = _respond(prompt, lambda *_: Completion("Ann [1].<|im_end|>\n", "stop", 12, 5), draw=3)
    table = unit_result([response]).tables["responses"]
    (back,) = tables.to_rows(table)
    assert {key: back[key] for key in ("sample_id", "model", "prompt", "draw")} == {
        "sample_id": "d:1",
        "model": "m",
        "prompt": "mine",
        "draw": 3,
    }
    assert [doc["doc_id"] for doc in back["docs"]] == ["0", "1"]
    assert (back["output"], back["finish_reason"], back["status"]) == ("Ann [1].", "stop", "ok")
    assert (back["prompt_tokens"], back["output_tokens"], back["meta"]) == (12, 5, {"source": "y"})
    assert ask.asked[0][0] == [{"role": "user", "content": "I Who? [1] text 0\n[2] text 1"}]


def test_a_failed_row_keeps_its_key_and_says_why(prompt: Prompt) -> None:
    response, _ = _respond(prompt, lambda *_: AskFailed("prompt_too_long", "the prompt has 9 tokens"), draw=1)
    assert (response["status"], response["reason"], response["detail"], response["draw"]) == (
        "failed",
        "prompt_too_long",
        "the prompt has 9 tokens",
        1,
    )
    assert response.get("output") is None
    asked = FakeAsk(None)
    bad = {**ROW, "question": " "}
    response = asyncio.run(respond_row(bad, prompt, SamplingConfig(), asked, 0, "m"))
    assert (response["status"], response["reason"], asked.asked) == ("failed", "question_empty", [])
    result = unit_result([response])
    assert result.counts == {"failed": 1}
    assert result.tables["responses"].num_rows == 1


def test_other_errors_are_not_the_rows_fault(prompt: Prompt) -> None:
    with pytest.raises(RuntimeError, match="engine gone"):
        _respond(prompt, lambda *_: RuntimeError("engine gone"))


def test_an_empty_or_cut_answer_is_an_answer(prompt: Prompt) -> None:
    empty, _ = _respond(prompt, lambda *_: Completion(" </s>", "stop", 3, 1))
    assert (empty["status"], empty["output"]) == ("ok", "")
    cut, _ = _respond(prompt, lambda *_: Completion("Ann and", "length", 3, 300))
    assert (cut["status"], cut["finish_reason"]) == ("ok", "length")
    result = unit_result([empty, cut])
    assert result.counts == {"ok": 2}
    assert result.totals == {"prompt_tokens": 6.0, "output_tokens": 301.0}


def test_draws_belong_to_their_own_question(prompt: Prompt) -> None:
    """Row i never gets an answer of row j, whichever comes back first (B30)."""

    async def run() -> list[dict[str, Any]]:
        ask = FakeAsk(
            lambda messages, sampling: Completion(f"{messages[0]['content']}#{sampling['seed']}", "stop", 1, 1)
        )
        sampling = SamplingConfig(draws=2)
        rows = [{**ROW, "sample_id": f"d:{n}", "question": f"Q{n}?"} for n in range(3)]
        return await asyncio.gather(
            *(respond_row(row, prompt, sampling, ask, draw, "m") for row in rows for draw in range(2))
        )

    responses = asyncio.run(run())
    for response in responses:
        assert response["question"] in response["output"]
        seed = SamplingConfig().of(response["sample_id"], response["draw"])["seed"]
        assert response["output"].endswith(f"#{seed}")
    assert len({response["output"] for response in responses}) == 6


def test_seeds_come_from_row_draw_and_seed_alone() -> None:
    def seed(sample_id: str, draw: int, run: int) -> int:
        return SamplingConfig(seed=run).of(sample_id, draw)["seed"]

    assert seed("a", 0, 42) == seed("a", 0, 42)
    seeds = [seed(name, draw, run) for name in ("a", "b", "a1", "") for draw in (0, 1, 11) for run in (1, 42)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= value < 2**31 for value in seeds)


def test_what_is_sent_is_what_was_asked_for(prompt: Prompt) -> None:
    _, ask = _respond(
        prompt, lambda *_: Completion("", "stop", 1, 0), temperature=0.7, top_p=0.9, max_tokens=11, stop=["X"]
    )
    sent = ask.asked[0][1]
    assert sent == {"temperature": 0.7, "top_p": 0.9, "max_tokens": 11, "stop": ["X"], "seed": sent["seed"]}


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"top_p": 0},
        {"top_p": 1.5},
        {"max_tokens": 0},
        {"draws": 0},
        {"draws": 2, "temperature": 0},
    ],
)
def test_sampling_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"sampling\."):
        SamplingConfig(**options)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (" Paris.\n", "Paris."),
        ("Paris.<|im_end|>\n<|endoftext|>", "Paris."),
        ("<|im_end|> is a mark.", "<|im_end|> is a mark."),
        ("The End.", "The End."),
        ("a\n\nb </s>", "a\n\nb"),
        ("", ""),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


class FakeBackend:
    """In place of the engine: says which question it was asked; questions of more than 20 signs are too long."""

    fingerprint = "0" * 16
    has_chat_template = True

    def __init__(self, config: dict[str, Any], storage: Storage) -> None:
        json.dumps(config)  # what crosses to an actor is plain data
        self.closed = False

    async def answer(self, inputs: dict[str, Any]) -> Completion:
        text = inputs["messages"][0]["content"].split("I ")[1].split("?")[0]
        await asyncio.sleep(0.01 / len(text))
        if len(text) > 20:
            raise AskFailed("prompt_too_long", "too long")
        return Completion(f"{text}/{inputs['sampling']['seed']}", "stop", 7, 2)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def config(prompt: Prompt) -> RespondConfig:
    return RespondConfig(
        model=ModelConfig(path="org/m"),
        engine=EngineConfig(device="cpu"),
        prompt=prompt.config,
        sampling=SamplingConfig(draws=2),
    )


def test_a_worker_answers_units(
    config: RespondConfig, prompt: Prompt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two units at once on one loop: every row and draw answered, one overlong row failed, each answer in the call log."""
    monkeypatch.setattr("trust.ask.engines.load", FakeBackend)
    log = tmp_path / "log"
    log.mkdir()
    monkeypatch.setenv("TRUST_CALL_LOG", str(log))
    questions = ["One", "Two", "Three", "A question that is much too long for it"]
    rows = [{**ROW, "sample_id": f"d:{n}", "question": f"{text}?"} for n, text in enumerate(questions)]
    path = str(tmp_path / "samples.parquet")
    Storage().write_table(path, tables.to_table("samples", rows))
    units = row_units([{"path": path, "rows": 4}], 2, 64)

    async def run() -> list[Any]:
        worker = RespondWorker(worker_config(config, prompt))
        results = await asyncio.gather(*(worker.work(unit) for unit in units))
        await worker.close()
        assert worker._backend.closed
        return results

    results = asyncio.run(run())
    assert [result.counts for result in results] == [{"ok": 4}, {"ok": 2, "failed": 2}]
    assert sum(result.totals["output_tokens"] for result in results) == 12
    for row in [row for result in results for row in tables.to_rows(result.tables["responses"])]:
        if row["status"] == "ok":
            seed = config.sampling.of(row["sample_id"], row["draw"])["seed"]
            assert row["output"] == f"{row['question'][:-1]}/{seed}"
        else:
            assert (row["sample_id"], row["reason"], row["output"]) == ("d:3", "prompt_too_long", None)
    lines = [json.loads(line) for file in log.iterdir() for line in file.read_text().splitlines()]
    answered = [f"d:{n}" for n in range(3) for _ in range(2)]
    assert sorted(line["key"] for line in lines) == answered, "a line an answer; the row that failed has none"
    assert len({line["hash"] for line in lines}) == 6


def test_a_retry_asks_only_for_what_failed(
    config: RespondConfig, prompt: Prompt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trust.ask.engines.load", FakeBackend)
    rows = [{**ROW, "sample_id": f"d:{n}", "question": f"{text}?"} for n, text in enumerate(["One", "Two"])]
    samples, before = str(tmp_path / "samples.parquet"), str(tmp_path / "before.parquet")
    Storage().write_table(samples, tables.to_table("samples", rows))
    earlier = [
        {**row, "model": "m", "prompt": "p", "draw": draw, "status": "failed" if (n, draw) == (1, 1) else "ok"}
        for n, row in enumerate(rows)
        for draw in range(2)
    ]
    Storage().write_table(before, tables.to_table("responses", earlier))
    unit = row_units([{"path": samples, "rows": 2}], 2, 64)[0]
    unit.source["retry"] = {"responses": [before]}

    async def run() -> UnitResult:
        worker = RespondWorker(worker_config(config, prompt))
        return await worker.work(unit)

    result = asyncio.run(run())
    made = tables.to_rows(result.tables["responses"])
    assert [(row["sample_id"], row["draw"], row["status"]) for row in made] == [("d:1", 1, "ok")]
    assert result.counts == {"ok": 1, "failed": -1}


def test_actors_elsewhere_find_model_and_adapter(
    config: RespondConfig, prompt: Prompt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org/tuned").mkdir(parents=True)
    assert worker_config(config, prompt)["model"]["adapter"] is None
    config.model.adapter = "org/tuned"
    assert worker_config(config, prompt)["model"]["adapter"] == str(tmp_path / "org/tuned")
    config.model.adapter = "org/of-the-hub"
    assert worker_config(config, prompt)["model"]["adapter"] == "org/of-the-hub"


def test_identity_is_of_what_changes_answers(config: RespondConfig, prompt: Prompt) -> None:
    first = identity(config, prompt)
    json.dumps(first)
    config.cluster.max_actors, config.engine.max_num_seqs, config.unit_rows = 3, 5, 7
    assert identity(config, prompt) == first
    config.sampling.top_p = 0.5
    assert identity(config, prompt) != first
