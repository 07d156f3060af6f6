from typing import Any

import pytest

from tests.conftest import API_KEY, API_KEY_ENV
from trust.ask.endpoint import EndpointConfig
from trust.errors import ConfigError, PreflightError
from trust.models import ModelConfig

URL = "http://host:8000/v1"


def endpoint(**options: Any) -> EndpointConfig:
    return EndpointConfig(**{"base_url": URL} | options)


def test_an_endpoint_asks_for_no_gpu_and_few_cpus() -> None:
    config = endpoint(concurrency=5)
    assert (config.gpus, config.all_cpus, config.requests_in_flight) == (0, False, 5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": ""}, "engine.base_url is no http"),
        ({"base_url": "host:8000/v1"}, "engine.base_url is no http"),
        ({"base_url": "https://me:secret@host/v1"}, "engine.api_key_env alone"),
        ({"base_url": "https://host/v1?key=secret"}, "engine.api_key_env alone"),
        ({"base_url": "https://host/v1#secret"}, "engine.api_key_env alone"),
        ({"api_key_env": "sk-proj-secret"}, "name of an environment variable"),
        ({"concurrency": 0}, "concurrency=0"),
        ({"timeout_s": 0}, "timeout_s=0"),
        ({"max_retries": -1}, "max_retries=-1"),
        ({"price_in": -1}, "price_in=-1"),
        ({"cost_limit": 0, "price_in": 1, "price_out": 1}, "cost_limit=0: nothing could be asked"),
        ({"cost_limit": 5}, "needs engine.price_in and engine.price_out"),
        ({"fields": {"max_token": "x"}}, "did you mean max_tokens"),
        ({"extra": {"messages": []}}, "extra.messages cannot be set there"),
        ({"extra": {"temperature": 1}}, "extra.temperature cannot be set there"),
    ],
)
def test_endpoints_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        endpoint(**options)
    assert "secret" not in str(error.value)


def test_the_key_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert endpoint(api_key_env=API_KEY_ENV).api_key() == API_KEY
    monkeypatch.delenv(API_KEY_ENV)
    with pytest.raises(PreflightError, match=f"api_key_env={API_KEY_ENV}: node .* has no such variable"):
        endpoint(api_key_env=API_KEY_ENV).api_key()


@pytest.mark.parametrize("key", ["secret\nsecret2", "two secrets", "clé-secret", "secret\x01"])
def test_a_key_that_no_header_takes_is_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_ENV, key)
    with pytest.raises(PreflightError, match=f"api_key_env={API_KEY_ENV}: what it holds .* is no key") as error:
        endpoint(api_key_env=API_KEY_ENV).api_key()
    assert "secret" not in str(error.value)


def test_what_is_sent() -> None:
    sampling = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "seed": 1, "stop": []}
    inputs = {"messages": [], "sampling": sampling}
    assert endpoint().body(inputs, ModelConfig(path="m")) == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "seed": 1,
    }
    renamed = endpoint(fields={"max_tokens": "max_completion_tokens", "seed": None}, extra={"reasoning_effort": "low"})
    model = ModelConfig(path="m", chat_template_kwargs={"enable_thinking": False})
    assert renamed.body({"messages": [], "sampling": sampling | {"stop": ["X"]}}, model) == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 7,
        "stop": ["X"],
        "reasoning_effort": "low",
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_logprobs_and_schemas_are_sent_as_each_kind_of_completion_wants_them() -> None:
    schema = {"type": "object"}
    chat = {"messages": [], "sampling": {"logprobs": 20}, "schema": schema}
    held = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    assert endpoint().body(chat, ModelConfig(path="m")) == {
        "logprobs": True,
        "top_logprobs": 20,
        "response_format": held,
    }
    plain = {"messages": "text", "sampling": {"logprobs": 20}}
    assert endpoint().body(plain, ModelConfig(path="m")) == {"logprobs": 20}


def test_prices_are_of_a_million_tokens() -> None:
    assert endpoint(price_in=2, price_out=10).cost(1_000_000, 500_000) == 7
    assert endpoint().cost(1_000_000, 1) == 0


def test_identity_is_of_model_and_request_not_of_where_it_runs() -> None:
    def of(model: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        return endpoint(**options).identity(ModelConfig(**{"path": "m"} | (model or {})))

    moved = {"base_url": "https://other/v1", "api_key_env": "KEY", "concurrency": 1, "timeout_s": 1, "max_retries": 0}
    assert of(**moved, price_in=1, price_out=1, cost_limit=1) == of()
    assert of({"path": "n"}) != of()
    assert of({"revision": "2024-07-18"}) != of()
    assert of({"chat_template_kwargs": {"a": 1}}) != of()
    assert of(extra={"reasoning_effort": "low"}) != of()
    assert of(fields={"seed": None}) != of()
