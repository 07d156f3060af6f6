"""`complete`, answered by an OpenAI-compatible endpoint: chat completions, or plain ones for a text that is sent as it is.

Its own client does the retries. What a server may answer is not what it should, so nothing of an answer is taken on trust:
what cannot be used fails that request alone, with a reason. A key that is refused, money that is gone or an endpoint that
answers nobody any more ends the job, since all other rows would fail alike.
"""

import asyncio
import difflib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from trust.ask import SERVED, AskFailed, Completion
from trust.ask.endpoint import NO_KEY, EndpointConfig
from trust.cost import REASON
from trust.errors import JobStopped, PreflightError
from trust.models import ModelConfig
from trust.storage import Storage

_GIVE_UP = 64  # requests in a row that no try of got through
_RETRY_AFTER_S = 120.0  # the longest that the client waits before a try
_SHORT = 16  # tokens of the preflight's answer; some endpoints take no fewer
_MOST_TOKENS = 2**31 - 1  # that a table takes
_ZERO = 0.01  # the largest logarithm of a probability, with room for rounding
_LISTED = 8  # names of models that a message lists


class Usage(NamedTuple):
    """Tokens that the endpoint says it has read and written; None where it does not say."""

    prompt: int | None
    output: int | None


class OpenAIBackend:
    """Requests to an endpoint, a bounded number at once. Use it from one event loop.

    Args:
        config: `model` (ModelConfig), `engine` (EndpointConfig), and `budget` (what this actor may still spend; None or
            absent for no limit), as plain containers.
        storage: not needed: models lie where the endpoint is.
    """

    has_chat_template = True  # the endpoint's business

    def __init__(self, config: Mapping[str, Any], storage: Storage | None = None) -> None:
        from openai import AsyncOpenAI

        self.model = ModelConfig(**config["model"])
        self.endpoint = EndpointConfig(**config["engine"])
        self._left: float | None = config.get("budget")
        self._key = self.endpoint.api_key()
        self._client = AsyncOpenAI(**_options(self.endpoint, self.endpoint.max_retries))
        self._slots = asyncio.Semaphore(self.endpoint.concurrency)
        self._lost = 0

    async def answer(self, inputs: Mapping[str, Any]) -> Completion:
        """One completion.

        Args:
            inputs: as `trust.ask.vllm.VllmBackend.answer` takes them.

        Raises:
            AskFailed: `prompt_too_long`, `request_refused`, `endpoint_timeout`, `endpoint_unreachable`,
                `endpoint_overloaded`, `endpoint_error`, `bad_response`, `no_content`, `content_filter`, `cost_limit`.
            JobStopped: no request will get through.
        """
        from openai import APIError

        async with self._slots:
            if self._left is not None and self._left <= 0:
                raise AskFailed(REASON, "engine.cost_limit was reached before this was asked")
            try:
                text, retries = await self._send(inputs)
            except (APIError, TimeoutError) as error:
                raise self._failed(error) from error
            self._lost = 0
            return self._read(text, retries, inputs)

    def close(self) -> None:
        """Nothing to end: connections go with the process."""

    async def _send(self, inputs: Mapping[str, Any]) -> tuple[str, int]:
        """The endpoint's answer as it came, and how many tries it took after the first."""
        messages = inputs["messages"]
        body = {"model": self.model.path, "extra_body": self.endpoint.body(inputs, self.model)}
        # The client's own limit is one between two pieces of an answer, which a trickle never reaches.
        most = (self.endpoint.timeout_s + _RETRY_AFTER_S) * (self.endpoint.max_retries + 1)
        async with asyncio.timeout(most):
            if isinstance(messages, str):
                raw = await self._client.completions.with_raw_response.create(prompt=messages, **body)
            else:
                raw = await self._client.chat.completions.with_raw_response.create(messages=messages, **body)
        return _without_key(raw.http_response.text, self._key), raw.retries_taken

    def _read(self, text: str, retries: int, inputs: Mapping[str, Any]) -> Completion:
        body = _object(text)
        used = _usage(body)
        totals = {"retries": float(retries), f"{SERVED}{_served(body)}": 1.0}
        if self.endpoint.price_in is not None or self.endpoint.price_out is not None:
            totals |= self._charge(used, inputs)
        try:
            content, finish_reason = _content(body)
        except AskFailed as error:
            raise AskFailed(error.reason, error.detail, totals=totals) from error
        return Completion(content, finish_reason, used.prompt, used.output, totals, _first_tokens(body))

    def _charge(self, used: Usage, inputs: Mapping[str, Any]) -> dict[str, float]:
        """What a request cost. One whose tokens the endpoint does not tell counts as the most that it can be: a token a
        byte, and an answer of full length."""
        told = used.prompt is not None and used.output is not None
        most = len(json.dumps(inputs["messages"], ensure_ascii=False).encode())
        prompt, output = used if told else (most, inputs["sampling"].get("max_tokens", 0))
        cost = self.endpoint.cost(prompt or 0, output or 0)
        if self._left is not None:
            self._left -= cost
        return {"cost": cost} | ({} if told else {"requests_without_usage": 1.0})

    def _failed(self, error: Exception) -> AskFailed | JobStopped:
        from openai import APIConnectionError, APIStatusError, APITimeoutError

        said = _said(error, self._key)
        retried = True
        if isinstance(error, APIStatusError):
            status = error.status_code
            if status in (400, 413, 422):
                self._lost = 0
                too_long = error.code == "context_length_exceeded" or "context length" in said
                return AskFailed("prompt_too_long" if too_long else "request_refused", f"the endpoint says: {said}")
            if status == 401 or error.code == "insufficient_quota":
                return JobStopped(f"the endpoint at {self.endpoint.base_url} lets nobody in any more: {said}")
            reason = "endpoint_overloaded" if status == 429 else "endpoint_error"
            retried = status in (408, 409, 429) or status >= 500
        elif isinstance(error, (APITimeoutError, TimeoutError)):
            reason = "endpoint_timeout"
        else:
            reason = "endpoint_unreachable" if isinstance(error, APIConnectionError) else "endpoint_error"
        self._lost += 1
        if self._lost >= _GIVE_UP:
            return JobStopped(f"{self._lost} requests in a row got no answer of {self.endpoint.base_url}: {said}")
        tries = f"no answer in {self.endpoint.max_retries + 1} tries" if retried else "the endpoint says"
        return AskFailed(reason, f"{tries}: {said}")


def check(endpoint: EndpointConfig, model: ModelConfig, chat: bool, sampling: Mapping[str, Any]) -> None:
    """Asks the endpoint one question, to be answered in a few tokens, as the job will.

    Raises:
        PreflightError: in one line what is wrong: nobody there, the key, the model's name, an option it does not know.
    """
    from openai import APIConnectionError, APIError, APIStatusError, OpenAI

    at = f"engine.base_url={endpoint.base_url}"
    key = endpoint.api_key()
    client = OpenAI(**_options(endpoint, min(endpoint.max_retries, 2)))
    short = dict(sampling) | {"max_tokens": min(sampling.get("max_tokens", _SHORT), _SHORT)}
    messages: Any = [{"role": "user", "content": "Say yes."}] if chat else "Say yes."
    inputs = {"messages": messages, "sampling": short}
    body = {"model": model.path, "extra_body": endpoint.body(inputs, model)}
    try:
        if chat:
            raw = client.chat.completions.with_raw_response.create(messages=messages, **body)
        else:
            raw = client.completions.with_raw_response.create(prompt=messages, **body)
    except APIStatusError as error:
        raise PreflightError(
            f"{at}: {_advice(error.status_code, endpoint, model, client)}{_said(error, key)}"
        ) from error
    except APIConnectionError as error:
        raise PreflightError(f"{at}: nobody answers there: {_said(error, key)}") from error
    except APIError as error:
        raise PreflightError(f"{at}: {_said(error, key)}") from error
    finally:
        client.close()
    try:
        answer = _object(_without_key(raw.http_response.text, key))
        _content(answer)
    except AskFailed as error:
        if error.reason == "bad_response":
            raise PreflightError(f"{at}: this is no OpenAI-compatible endpoint: {error.detail}") from error
        return  # a model that thinks first says nothing in so few tokens
    if sampling.get("logprobs") and not _first_tokens(answer):
        raise PreflightError(f"{at}: tells no log-probabilities: set judge.entails.reading to json or samples")
    if endpoint.cost_limit is not None and None in _usage(answer):
        raise PreflightError(f"{at}: does not say how many tokens it used, so that engine.cost_limit cannot be kept")


def _options(endpoint: EndpointConfig, max_retries: int) -> dict[str, Any]:
    return {
        "base_url": endpoint.base_url,
        "api_key": endpoint.api_key(),
        "timeout": endpoint.timeout_s,
        "max_retries": max_retries,
    }


def _advice(status: int, endpoint: EndpointConfig, model: ModelConfig, client: Any) -> str:
    """What to do about an answer that refuses the preflight's question."""
    if status == 401:
        if endpoint.api_key_env is None:
            return "wants a key: name the environment variable that holds it in engine.api_key_env: "
        return f"refuses the key in {endpoint.api_key_env}: "
    if status == 404:
        if names := _models(client):
            near = difflib.get_close_matches(model.path, names, n=1, cutoff=0.5)
            told = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(names[:_LISTED])}"
            return f"does not serve model.path={model.path}{told}: " if model.path not in names else ""
        return "has nothing there (an address mostly ends in /v1): "
    if status in (400, 422):
        return "refuses the request (engine.fields renames an option of sampling or leaves it out): "
    return "answers, but not now: " if status in (408, 409, 429) or status >= 500 else ""


def _models(client: Any) -> list[str]:
    """Names of the models that the endpoint says it serves; empty where it does not say."""
    try:
        listed = _object(client.models.with_raw_response.list().http_response.text).get("data")
        return [str(item["id"]) for item in listed or []]
    except Exception:  # only a help for the message: whatever went wrong, the first error is the one to tell
        return []


def _object(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
        json.dumps(body, ensure_ascii=False).encode()  # halves of characters, which no table takes
    except (ValueError, RecursionError) as error:
        raise AskFailed("bad_response", f"the answer is no JSON: {_short(text)!r}") from error
    if not isinstance(body, dict):
        raise AskFailed("bad_response", f"the answer is no object: {_short(text)!r}")
    return body


def _content(body: dict[str, Any]) -> tuple[str, str]:
    """Text and finish reason of the first choice."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        told = f"an error: {_short(json.dumps(body['error']))}" if body.get("error") else "no choices"
        raise AskFailed("bad_response", f"the answer holds {told}")
    choice = choices[0]
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else choice.get("text")
    finish_reason = choice.get("finish_reason")
    if finish_reason == "content_filter":
        raise AskFailed("content_filter", "the endpoint's content filter held the answer back")
    if content is None:
        raise AskFailed("no_content", f"the answer holds no text (finish_reason {finish_reason})")
    if not isinstance(content, str):
        raise AskFailed("bad_response", f"the answer's content is no text: {_short(json.dumps(content))}")
    return content, finish_reason if isinstance(finish_reason, str) else "stop"


def _usage(body: dict[str, Any]) -> Usage:
    used = body.get("usage")
    counts = [used.get(key) if isinstance(used, dict) else None for key in ("prompt_tokens", "completion_tokens")]
    return Usage(
        *(n if isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= _MOST_TOKENS else None for n in counts)
    )


def _first_tokens(body: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens of the first choice; empty where the endpoint does not tell, or not in a known form."""
    try:
        told = body["choices"][0]["logprobs"]
        if "content" in told:
            listed = [(item["token"], item["logprob"]) for item in told["content"][0]["top_logprobs"]]
        else:
            listed = [*told["top_logprobs"][0].items()]
        found = tuple((str(token), float(logprob)) for token, logprob in listed)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return ()
    return found if all(logprob <= _ZERO for _, logprob in found) else ()  # NaN, which JSON of Python has, is not


def _served(body: dict[str, Any]) -> str:
    """The model that answered, as the endpoint names it, with its revision where it gives one."""
    revision = body.get("system_fingerprint")
    return f"{body.get('model') or 'unnamed'}" + (f"@{revision}" if revision else "")


def _said(error: Exception, key: str) -> str:
    """An error in one line, with what is behind a broken connection, and never with the key."""
    told = [str(error), *([str(error.__cause__)] if error.__cause__ else [])]
    line = " ".join(" ".join(told).split()).encode(errors="replace").decode()
    return _without_key(line, key)[:300] or type(error).__name__


def _without_key(text: str, key: str) -> str:
    """What an endpoint says, which may repeat what it was sent."""
    return text if key == NO_KEY else text.replace(key, "***")


def _short(text: str) -> str:
    return " ".join(text.split())[:120]
