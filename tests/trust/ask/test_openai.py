"""The client of an endpoint, against one in this process that errs, is late, or talks rubbish."""

import asyncio
import itertools
import json
import socket
import time
from typing import Any

import pytest

from tests.conftest import API_KEY, API_KEY_ENV
from tests.fake_endpoint import FakeEndpoint, Reply, Request, answer
from trust.ask import AskFailed, Completion
from trust.ask import openai as backends
from trust.ask.endpoint import EndpointConfig
from trust.ask.openai import OpenAIBackend, check
from trust.errors import JobStopped, PreflightError
from trust.models import ModelConfig

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
SAMPLING = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 30, "seed": 1, "stop": []}


def backend(fake: FakeEndpoint, budget: float | None = None, **options: Any) -> OpenAIBackend:
    engine = {"backend": "openai", "base_url": fake.url, "max_retries": 0, "timeout_s": 5} | options
    return OpenAIBackend({"model": {"path": "m"}, "engine": engine, "budget": budget})


def ask(made: OpenAIBackend, *messages: Any) -> list[Any]:
    """Answers, or what was raised, in order."""

    async def run() -> list[Any]:
        asks = [made.answer({"messages": m, "sampling": SAMPLING, "key": "x"}) for m in messages or (QUESTION,)]
        return await asyncio.gather(*asks, return_exceptions=True)

    return asyncio.run(run())


def test_an_answer_with_its_tokens_and_who_gave_it() -> None:
    with FakeEndpoint() as fake:
        (completion,) = ask(backend(fake, api_key_env=API_KEY_ENV, price_in=1, price_out=2))
    assert completion == Completion(
        "Paris [1].", "stop", 20, 5, {"retries": 0, "served:m-2024-07-18@fp_1": 1, "cost": pytest.approx(30e-6)}
    )
    (request,) = fake.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {"model": "m", "messages": QUESTION, **{k: v for k, v in SAMPLING.items() if k != "stop"}}
    assert request.headers["authorization"] == f"Bearer {API_KEY}"


def test_a_plain_text_is_completed_as_it_is() -> None:
    with FakeEndpoint(lambda request: Reply(answer(" Paris.", message=None))) as fake:
        (completion,) = ask(backend(fake), "The capital of France is")
    assert completion.text == " Paris."
    assert (fake.requests[0].path, fake.requests[0].body["prompt"]) == ("/v1/completions", "The capital of France is")


def test_tokens_that_are_not_told_are_unknown_and_not_0() -> None:
    with FakeEndpoint(lambda request: Reply(answer(usage=False))) as fake:
        (completion,) = ask(backend(fake))
    assert (completion.prompt_tokens, completion.output_tokens) == (None, None)
    odd = {"prompt_tokens": -1, "completion_tokens": 2**40}
    with FakeEndpoint(lambda request: Reply(answer() | {"usage": odd})) as fake:
        (completion,) = ask(backend(fake))
    assert (completion.prompt_tokens, completion.output_tokens) == (None, None)


def test_an_answer_that_ran_out_of_tokens_is_an_answer() -> None:
    with FakeEndpoint(lambda request: Reply(answer("Par", finish_reason="length"))) as fake:
        (completion,) = ask(backend(fake))
    assert (completion.text, completion.finish_reason) == ("Par", "length")


@pytest.mark.parametrize(
    ("messages", "logprobs", "first"),
    [
        (
            QUESTION,
            {"content": [{"token": "a", "logprob": -1, "top_logprobs": [{"token": "a", "logprob": -1}]}]},
            (("a", -1.0),),
        ),
        ("text", {"top_logprobs": [{"a": -1, "b": -2.5}]}, (("a", -1.0), ("b", -2.5))),
        (QUESTION, None, ()),
        (QUESTION, {"content": []}, ()),
        (QUESTION, {"content": [{"token": "a"}]}, ()),
        (QUESTION, {"top_logprobs": "a"}, ()),
        ("text", {"top_logprobs": [{"a": float("nan"), "b": -1}]}, ()),
        ("text", {"top_logprobs": [{"a": 1000, "b": -1}]}, ()),
    ],
)
def test_the_likeliest_first_tokens(messages: Any, logprobs: Any, first: tuple[tuple[str, float], ...]) -> None:
    with FakeEndpoint(lambda request: Reply(answer(logprobs=logprobs))) as fake:
        (completion,) = ask(backend(fake), messages)
    assert completion.first_tokens == first


@pytest.mark.parametrize(
    ("reply", "reason", "said"),
    [
        (Reply("<html>Bad gateway</html>"), "bad_response", "no JSON: '<html>"),
        (Reply('{"choices": [{"message": {"content": "\\ud83d"}}]}'), "bad_response", "no JSON"),
        (Reply("[" * 100_000), "bad_response", "no JSON"),
        (Reply([1, 2]), "bad_response", "no object"),
        (Reply({"choices": []}), "bad_response", "no choices"),
        (Reply({"choices": {}}), "bad_response", "no choices"),
        (Reply({"choices": ["x"]}), "bad_response", "no choices"),
        (Reply({"error": {"message": "model is loading"}}), "bad_response", "model is loading"),
        (Reply(answer(None)), "no_content", r"finish_reason stop"),
        (Reply(answer(["Paris"])), "bad_response", "no text"),
        (Reply(answer({"text": "Paris"})), "bad_response", "no text"),
        (Reply(answer("Pa", finish_reason="content_filter")), "content_filter", "held the answer back"),
        (Reply({"error": {"message": "top_p is out of range"}}, 400), "request_refused", "top_p is out of range"),
        (
            Reply({"error": {"message": "too many tokens", "code": "context_length_exceeded"}}, 400),
            "prompt_too_long",
            "too many tokens",
        ),
        (Reply({"error": {"message": "maximum context length is 8"}}, 400), "prompt_too_long", "length is 8"),
        (Reply("<html>down</html>", 503), "endpoint_error", "503"),
        (Reply({"error": {"message": "slow down"}}, 429), "endpoint_overloaded", "slow down"),
        (Reply(answer(), cut=True), "endpoint_unreachable", "no answer in 1 tries"),
        (Reply(answer(), delay_s=2), "endpoint_timeout", "timed out"),
    ],
)
def test_what_cannot_be_used_fails_that_request_alone(reply: Reply, reason: str, said: str) -> None:
    def one_bad(request: Request) -> Reply:
        return reply if request.prompt == "bad" else Reply(answer())

    with FakeEndpoint(one_bad) as fake:
        good, bad = ask(backend(fake, timeout_s=0.5), QUESTION, [{"role": "user", "content": "bad"}])
    assert good.text == "Paris [1]."
    assert isinstance(bad, AskFailed)
    assert bad.reason == reason
    assert said in bad.detail


def test_nobody_there_fails_the_request() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        fake = FakeEndpoint()
        fake.url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        (failed,) = ask(backend(fake))
    assert failed.reason == "endpoint_unreachable"


def test_tries_again_as_long_as_it_is_told_to_wait() -> None:
    replies = [
        Reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "1"}),
        Reply("<html>Bad gateway</html>", 502),
        Reply(answer(), cut=True),
        Reply(answer()),
    ]
    with FakeEndpoint(lambda request: replies[len(fake.requests) - 1]) as fake:
        (completion,) = ask(backend(fake, max_retries=3))
    assert completion.totals["retries"] == 3
    times = [request.at for request in fake.requests]
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert waits[0] >= 1
    assert waits[1] >= 0.6, "twice the first wait, less a quarter"
    assert waits[2] > waits[1]


def test_no_more_requests_at_once_than_allowed() -> None:
    with FakeEndpoint(lambda request: Reply(answer(request.prompt), delay_s=0.05)) as fake:
        made = backend(fake, concurrency=3)
        answers = ask(made, *([{"role": "user", "content": str(n)}] for n in range(12)))
    assert [completion.text for completion in answers] == [str(n) for n in range(12)]
    assert fake.most == 3


def test_a_key_that_is_echoed_is_not_repeated() -> None:
    with FakeEndpoint(lambda request: Reply({"error": {"message": f"{API_KEY} may not do that"}}, 400)) as fake:
        (failed,) = ask(backend(fake, api_key_env=API_KEY_ENV))
    assert failed.detail.endswith("*** may not do that")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": f"{API_KEY} may not do that"}}, "*** may not do that"),
        (f"<html>Bearer {API_KEY}</html>", "Bearer ***"),
    ],
)
def test_a_key_that_is_echoed_as_an_answer_is_not_repeated(body: Any, said: str) -> None:
    with FakeEndpoint(lambda request: Reply(body)) as fake:
        (failed,) = ask(backend(fake, api_key_env=API_KEY_ENV))
        endpoint = EndpointConfig(base_url=fake.url, api_key_env=API_KEY_ENV)
        with pytest.raises(PreflightError) as error:
            check(endpoint, ModelConfig(path="m"), True, SAMPLING)
    assert said in failed.detail
    assert API_KEY not in failed.detail + str(error.value)


def test_what_is_not_tried_again_is_not_said_to_be() -> None:
    with FakeEndpoint(lambda request: Reply({"error": {"message": "not for you"}}, 403)) as fake:
        (failed,) = ask(backend(fake, max_retries=3))
    assert (failed.reason, len(fake.requests)) == ("endpoint_error", 1)
    assert failed.detail.startswith("the endpoint says: ")


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"error": {"message": "key is revoked"}}, 401),
        Reply({"error": {"message": "no money", "code": "insufficient_quota"}}, 429),
    ],
)
def test_what_fails_every_request_stops_the_job(reply: Reply) -> None:
    with FakeEndpoint(lambda request: reply) as fake:
        (stopped,) = ask(backend(fake))
    assert isinstance(stopped, JobStopped)
    assert str(reply.body["error"]["message"]) in str(stopped)


def test_an_endpoint_that_answers_nobody_stops_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_GIVE_UP", 3)
    replies = [Reply("down", 503), Reply("down", 503), Reply(answer()), *[Reply("down", 503)] * 3]
    with FakeEndpoint(lambda request: replies[len(fake.requests) - 1]) as fake:
        made = backend(fake, concurrency=1)
        got = ask(made, *[QUESTION] * 6)
    assert [type(item) for item in got] == [AskFailed, AskFailed, Completion, AskFailed, AskFailed, JobStopped]
    assert "3 requests in a row" in str(got[-1])


def test_nothing_is_sent_once_the_money_is_spent() -> None:
    with FakeEndpoint() as fake:
        made = backend(fake, budget=2.0, concurrency=1, price_in=25_000, price_out=100_000)
        got = ask(made, *[QUESTION] * 4)
    assert [type(item) for item in got] == [Completion, Completion, AskFailed, AskFailed]
    assert got[2].reason == "cost_limit"
    assert sum(item.totals["cost"] for item in got[:2]) == pytest.approx(2.0)
    assert len(fake.requests) == 2


def test_a_request_that_failed_may_have_cost_something() -> None:
    with FakeEndpoint(lambda request: Reply(answer(None))) as fake:
        (failed,) = ask(backend(fake, price_in=1, price_out=1))
    assert failed.totals["cost"] == pytest.approx(25e-6)


def test_unknown_tokens_count_as_the_most_they_can_be() -> None:
    with FakeEndpoint(lambda request: Reply(answer(usage=False))) as fake:
        (completion,) = ask(backend(fake, price_in=1e6, price_out=1e6))
    assert completion.totals["cost"] == len(json.dumps(QUESTION)) + SAMPLING["max_tokens"]
    assert completion.totals["requests_without_usage"] == 1


class TestCheck:
    """What is wrong is said in one line before anything starts."""

    def refuse(self, fake: FakeEndpoint, said: str, model: str = "m", **options: Any) -> str:
        with pytest.raises(PreflightError, match=said) as error:
            check(
                EndpointConfig(base_url=fake.url, **{"timeout_s": 5, "max_retries": 0} | options),
                ModelConfig(path=model),
                True,
                SAMPLING,
            )
        assert "\n" not in str(error.value)
        assert API_KEY not in str(error.value)
        return str(error.value)

    def test_all_is_well(self) -> None:
        with FakeEndpoint() as fake:
            check(EndpointConfig(base_url=fake.url), ModelConfig(path="m"), True, SAMPLING)
            check(EndpointConfig(base_url=fake.url), ModelConfig(path="m"), False, SAMPLING)
        assert [request.path for request in fake.requests] == ["/v1/chat/completions", "/v1/completions"]
        assert all(request.body["max_tokens"] == 16 for request in fake.requests)

    def test_nobody_there(self) -> None:
        fake = FakeEndpoint()
        fake._server.server_close()
        started = time.monotonic()
        self.refuse(fake, rf"engine\.base_url={fake.url}: nobody answers there")
        assert time.monotonic() - started < 5

    def test_keys(self) -> None:
        with FakeEndpoint(lambda request: Reply({"error": {"message": "no key"}}, 401)) as fake:
            self.refuse(fake, r"wants a key: name the environment variable .*engine\.api_key_env")
        with FakeEndpoint(lambda request: Reply({"error": {"message": f"no {API_KEY}"}}, 401)) as fake:
            self.refuse(fake, rf"refuses the key in {API_KEY_ENV}: .*no \*\*\*", api_key_env=API_KEY_ENV)

    def test_unknown_models(self) -> None:
        gone = Reply({"error": {"message": "The model does not exist"}}, 404)
        with FakeEndpoint(lambda request: gone, models=["smollm2", "llama-3"]) as fake:
            self.refuse(fake, r"does not serve model\.path=smolm2; did you mean smollm2\?", model="smolm2")
            self.refuse(fake, r"does not serve model\.path=qwen; it has smollm2, llama-3", model="qwen")

    def test_wrong_addresses(self) -> None:
        with FakeEndpoint() as fake:
            fake.url = fake.url.removesuffix("/v1")
            self.refuse(fake, "has nothing there .*ends in /v1")
        with FakeEndpoint(lambda request: Reply("<html>Welcome</html>")) as fake:
            self.refuse(fake, "no OpenAI-compatible endpoint: .*Welcome")

    def test_an_option_that_it_does_not_know(self) -> None:
        said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'"
        with FakeEndpoint(lambda request: Reply({"error": {"message": said}}, 400)) as fake:
            self.refuse(fake, rf"engine\.fields renames .*{said}")

    def test_a_cost_limit_that_cannot_be_kept(self) -> None:
        priced = {"price_in": 1, "price_out": 1, "cost_limit": 1}
        with FakeEndpoint(lambda request: Reply(answer(usage=False))) as fake:
            self.refuse(fake, r"engine\.cost_limit cannot be kept", **priced)

    def test_a_model_that_says_nothing_in_so_few_tokens_is_fine(self) -> None:
        with FakeEndpoint(lambda request: Reply(answer(None, finish_reason="length"))) as fake:
            check(EndpointConfig(base_url=fake.url), ModelConfig(path="m"), True, SAMPLING)
