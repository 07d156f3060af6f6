"""What a language model says is read as told, and what says neither yes nor no is a failed verdict with its text."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from trust.ask import AskFailed, Completion, Verdict
from trust.ask.endpoint import EndpointConfig
from trust.ask.engine import EngineConfig
from trust.ask.judges import build_entails
from trust.ask.llm import LlmConfig, LlmJudge
from trust.ask.runner import Ledger, Runner
from trust.errors import ConfigError, JobStopped
from trust.models import ModelConfig

PAIR = {"premise": "Paris is the capital of France. {hypothesis}", "hypothesis": "Paris is in France."}
ENDPOINT = EndpointConfig(base_url="http://host/v1")


class Backend:
    """Answers with what `say` makes of an ask's inputs, and keeps them."""

    def __init__(self, say: Callable[[dict[str, Any]], Any]) -> None:
        self.say = say
        self.asked: list[dict[str, Any]] = []

    async def answer(self, inputs: dict[str, Any]) -> Completion:
        self.asked.append(inputs)
        said = self.say(inputs)
        if isinstance(said, BaseException):
            raise said
        return said

    def close(self) -> None: ...


def config(**options: Any) -> LlmConfig:
    return LlmConfig(**{"model": ModelConfig(path="m"), "engine": ENDPOINT} | options)


def judge(say: Callable[[dict[str, Any]], Any], **options: Any) -> tuple[LlmJudge, Backend]:
    backend = Backend(say)
    return LlmJudge(config(**options), backend), backend


def ask(say: Callable[[dict[str, Any]], Any], **options: Any) -> Verdict:
    return asyncio.run(judge(say, **options)[0].answer(PAIR))


def said(text: str, **options: Any) -> Completion:
    return Completion(text, "stop", 10, 1, {"cost": 1.0}, **options)


def tokens(**shares: float) -> tuple[tuple[str, float], ...]:
    return tuple((token, math.log(share)) for token, share in shares.items())


def test_the_question_holds_both_texts_and_how_to_answer() -> None:
    made, backend = judge(lambda _: said("yes", first_tokens=tokens(yes=1.0)))
    asyncio.run(made.answer(PAIR))
    (inputs,) = backend.asked
    text = inputs["messages"][0]["content"]
    assert f"Text:\n{PAIR['premise']}\n" in text, "a premise may hold braces"
    assert "Statement:\nParis is in France.\n" in text
    assert text.endswith("Answer with one word, yes or no.")
    assert inputs["sampling"] == {"temperature": 0.0, "top_p": 1.0, "max_tokens": 16, "seed": 0, "logprobs": 20} | {
        "seed": inputs["sampling"]["seed"]
    }
    made, backend = judge(
        lambda _: said("yes", first_tokens=tokens(yes=1.0)), prompt="Is {hypothesis} in {premise}?", chat=False
    )
    asyncio.run(made.answer(PAIR))
    assert backend.asked[0]["messages"].startswith(f"Is Paris is in France. in {PAIR['premise']}?")


@pytest.mark.parametrize(
    ("first", "p_yes"),
    [
        (tokens(yes=0.6, no=0.2), 0.75),
        ((("Yes", math.log(0.2)), (" yes", math.log(0.1)), ("▁No", math.log(0.5)), ("YES", math.log(0.1))), 4 / 9),
        (tokens(yes=0.9), 1.0),
        (tokens(no=0.9, maybe=0.1), 0.0),
    ],
)
def test_the_first_tokens_share_of_yes(first: tuple[tuple[str, float], ...], p_yes: float) -> None:
    verdict = ask(lambda _: said("Yes, it does", first_tokens=first))
    assert verdict.p_yes == pytest.approx(p_yes)
    assert (verdict.label, verdict.raw, verdict.totals) == (int(p_yes >= 0.5), "Yes, it does", {"cost": 1.0})
    assert ask(lambda _: said("", first_tokens=first), threshold=1.0).label == int(p_yes == 1.0)


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        (said("The text says", first_tokens=tokens(The=0.9, yes=0.02, no=0.02)), "no_verdict"),
        (said("yes"), "no_logprobs"),
    ],
)
def test_a_first_token_that_says_neither_is_no_verdict(completion: Completion, reason: str) -> None:
    with pytest.raises(AskFailed) as failed:
        ask(lambda _: completion)
    assert (failed.value.reason, failed.value.raw, failed.value.totals) == (reason, completion.text, {"cost": 1.0})


@pytest.mark.parametrize(("text", "label"), [('{"verdict": "yes"}', 1), ('{ "verdict":"no" }', 0)])
def test_json(text: str, label: int) -> None:
    made, backend = judge(lambda _: said(text), reading="json")
    verdict = asyncio.run(made.answer(PAIR))
    assert (verdict.label, verdict.p_yes, verdict.raw) == (label, label, text)
    assert backend.asked[0]["schema"]["properties"]["verdict"]["enum"] == ["yes", "no"]
    assert "logprobs" not in backend.asked[0]["sampling"]


@pytest.mark.parametrize(
    "text", ["yes", '{"verdict": "maybe"}', '{"verdict": ', "[]", '{"verdict": {}}', '{"answer": "yes"}']
)
def test_other_json_is_no_verdict(text: str) -> None:
    with pytest.raises(AskFailed) as failed:
        ask(lambda _: said(text), reading="json")
    assert (failed.value.reason, failed.value.raw) == ("no_verdict", text)


def in_turn(*answers: Any) -> Callable[[dict[str, Any]], Any]:
    left = list(answers)
    return lambda _: left.pop(0)


@pytest.mark.parametrize(
    ("answers", "p_yes"),
    [
        (["Yes.", "yes", "No", "**Yes**", "no way"], 0.6),
        (["No", "no", "No, because yes", "I think so", "nobody knows"], 0.0),
        (["Yes", "yes, yes", "Yes. There is no doubt.", "yes and no", "Yes or no?"], 1.0),
        (["No", "no, no", "No\nIt says yes to others.", "no/yes", "No-one knows"], 0.0),
        (["Yes", "yes.", "No.", "Yes\nNo", "No, but yes"], 2 / 3),
        (["yes", "no", "No", "hm", AskFailed("no_content", "nothing")], 1 / 3),
    ],
)
def test_the_share_of_samples_that_say_yes(answers: list[Any], p_yes: float) -> None:
    says = [item if isinstance(item, AskFailed) else said(item) for item in answers]
    made, backend = judge(in_turn(*says), reading="samples")
    verdict = asyncio.run(made.answer(PAIR))
    assert verdict.p_yes == pytest.approx(p_yes)
    assert verdict.label == int(p_yes >= 0.5)
    assert verdict.totals == {"cost": float(len([item for item in says if isinstance(item, Completion)]))}
    seeds = {inputs["sampling"]["seed"] for inputs in backend.asked}
    assert len(seeds) == 5
    assert backend.asked[0]["sampling"]["temperature"] == 0.7


def test_samples_of_which_too_few_answer_are_no_verdict() -> None:
    with pytest.raises(AskFailed, match="2 of 5 answers say yes or no") as failed:
        ask(in_turn(*map(said, ["yes", "yes", "hm", "well", "nobody"])), reading="samples")
    assert failed.value.raw == '["yes", "yes", "hm", "well", "nobody"]'
    with pytest.raises(AskFailed, match="down"):
        ask(lambda _: AskFailed("endpoint_error", "down"), reading="samples")
    with pytest.raises(JobStopped, match="revoked"):
        ask(lambda _: JobStopped("revoked"), reading="samples")


def test_texts_are_kept_beside_verdicts_good_and_failed() -> None:
    def say(inputs: dict[str, Any]) -> Completion:
        good = "in France" in inputs["messages"][0]["content"]
        return said("yes" if good else "Well", first_tokens=tokens(yes=0.9) if good else tokens(Well=0.9))

    async def rows() -> Ledger:
        ledger = Ledger({"entails": "j"})
        row = Runner({"entails": judge(say)[0]}).ask_for("s", ledger)
        assert (await row.entails("Paris", "in France")).label == 1
        with pytest.raises(AskFailed):
            await row.entails("Paris", "in Rome")
        return ledger

    ledger = asyncio.run(rows())
    kept = {row["inputs"]["hypothesis"]: (row["status"], row["raw"]) for row in ledger.verdicts.values()}
    assert kept == {"in France": ("ok", "yes"), "in Rome": ("failed", "Well")}
    assert ledger.totals == {"cost": 2.0}


def test_identity_is_of_model_prompt_and_reading() -> None:
    def of(**options: Any) -> str:
        return config(**options).fingerprint()

    moved = EndpointConfig(base_url="http://other/v1", concurrency=3)
    assert of(engine=moved, languages=["en"], samples=7) == of()
    changes: list[dict[str, Any]] = [{"reading": "json"}, {"prompt": "{premise}{hypothesis}"}, {"threshold": 0.6}]
    changes += [{"model": ModelConfig(path="n")}, {"chat": False}, {"engine": EngineConfig(device="cpu")}]
    changes += [{"reading": "samples"}, {"reading": "samples", "samples": 7}, {"max_tokens": 3}]
    assert len({of(), *(of(**change) for change in changes)}) == 1 + len(changes)


def test_room_is_what_its_engine_takes_and_plain_values_build_it() -> None:
    assert (config().gpus, config().all_cpus) == (0, False)
    assert config(engine=EngineConfig(device="gpu", tensor_parallel=2)).gpus == 2
    assert config(engine=EngineConfig(device="cpu")).all_cpus
    values = config(reading="json").for_actor(1)
    assert asdict(build_entails(values)._config) == values
    assert config().describe() == "llm m on openai, by logprobs"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reading": "logprob"}, "did you mean logprobs"),
        ({"samples": 4}, "an odd number"),
        ({"temperature": 0}, "temperature=0"),
        ({"threshold": 0}, "threshold=0"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"prompt": "Is it so? {premise}"}, r"does not hold \{hypothesis\}"),
        ({"languages": ["English"]}, "languages"),
    ],
)
def test_judges_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config(**options)
