"""Options of an OpenAI-compatible endpoint. Needs neither its client nor a network."""

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlsplit

from trust.config import one_of
from trust.errors import ConfigError, PreflightError
from trust.models import ModelConfig
from trust.storage import Storage

NO_KEY = "none"  # the client insists on some

_SAMPLING = ("temperature", "top_p", "max_tokens", "seed", "stop")
_OURS = (*_SAMPLING, "model", "messages", "prompt", "stream", "n", "logprobs", "top_logprobs", "response_format")
_VARIABLE = re.compile("[A-Z_][A-Z0-9_]*")


@dataclass
class EndpointConfig:
    """An OpenAI-compatible endpoint. `model.path` is the name that it gives the model.

    Where it lies, how many requests it takes and what they cost is no part of a run's identity; the model's name and
    `model.revision`, and what is sent, are. Which model answered, as the endpoint names it, is counted in the manifest.

    Attributes:
        base_url: up to the version, as in `http://host:8000/v1`.
        api_key_env: environment variable, on every node, that holds the key; null sends none.
        concurrency: requests of one actor that are under way at once.
        timeout_s: seconds that one try of a request may take.
        max_retries: tries after the first, on 408, 409, 429, 5xx, timeouts and broken connections: after as long as
            `Retry-After` says (up to 2 minutes), else after 0.5 s, doubled each time up to 8 s, less up to a quarter by lot.
        price_in, price_out: of a million tokens of prompts and of answers, in any one currency.
        cost_limit: what a run may cost, all its tries together; null for no limit. Requests under way are let finish, so
            that a run may cost a little more. Several actors share it evenly.
        fields: option of sampling -> what this endpoint calls it (`max_tokens: max_completion_tokens`); null leaves it out.
        extra: further fields of a request, by the endpoint's names.
    """

    backend: str = "openai"
    base_url: str = ""
    api_key_env: str | None = None
    concurrency: int = 16
    timeout_s: float = 120
    max_retries: int = 6
    price_in: float | None = None
    price_out: float | None = None
    cost_limit: float | None = None
    fields: dict[str, str | None] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    gpus: ClassVar[int] = 0
    all_cpus: ClassVar[bool] = False

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("engine.base_url is no http:// or https:// address, such as http://host:8000/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigError("engine.base_url holds more than an address: keys come from engine.api_key_env alone")
        if self.api_key_env is not None and not _VARIABLE.fullmatch(self.api_key_env):
            # Not repeated here: it may be the key.
            raise ConfigError("engine.api_key_env is the name of an environment variable (A-Z, 0-9, _), not the key")
        if self.concurrency < 1:
            raise ConfigError(f"engine.concurrency={self.concurrency}: must be at least 1")
        if self.timeout_s <= 0:
            raise ConfigError(f"engine.timeout_s={self.timeout_s:g}: must be above 0")
        if self.max_retries < 0:
            raise ConfigError(f"engine.max_retries={self.max_retries}: cannot be negative")
        for key in ("price_in", "price_out", "cost_limit"):
            value = getattr(self, key)
            if value is not None and value < 0:
                raise ConfigError(f"engine.{key}={value:g}: cannot be negative")
        if self.cost_limit == 0:
            raise ConfigError("engine.cost_limit=0: nothing could be asked; null is no limit")
        if self.cost_limit is not None and None in (self.price_in, self.price_out):
            raise ConfigError(f"engine.cost_limit={self.cost_limit:g}: needs engine.price_in and engine.price_out")
        for key in self.fields:
            one_of("engine.fields", key, _SAMPLING)
        if taken := [key for key in self.extra if key in _OURS]:
            raise ConfigError(f"engine.extra.{taken[0]} cannot be set there; see sampling, model and engine.fields")

    @property
    def requests_in_flight(self) -> int:
        return self.concurrency

    def api_key(self) -> str:
        """The key from the environment; NO_KEY where none is wanted.

        Raises:
            PreflightError: the variable is not set here, or holds what no header can.
        """
        if self.api_key_env is None:
            return NO_KEY
        if key := os.environ.get(self.api_key_env, "").strip():
            if key.isascii() and key.isprintable() and " " not in key:
                return key
            # Else the client's own message would show the key.
            raise PreflightError(
                f"engine.api_key_env={self.api_key_env}: what it holds on node {platform.node()} is no key: there is a blank, a "
                "line break or a character outside ASCII in it"
            )
        raise PreflightError(
            f"engine.api_key_env={self.api_key_env}: node {platform.node()} has no such variable in its environment; set it "
            "on every node before Ray starts there"
        )

    def portable(self, path: str) -> str:
        """The model's name holds everywhere as it is."""
        return path

    def body(self, inputs: Mapping[str, Any], model: ModelConfig) -> dict[str, Any]:
        """What a request holds beside the model's name and the prompt.

        Args:
            inputs: of the ask (trust.ask.openai): `messages`, `sampling`, `schema`.
        """
        wanted = {key: value for key, value in inputs["sampling"].items() if value or key not in ("stop", "logprobs")}
        logprobs = wanted.pop("logprobs", None)
        named = {self.fields.get(key, key): value for key, value in wanted.items()}
        sent = {key: value for key, value in named.items() if key is not None} | self.extra
        if logprobs:
            plain = isinstance(inputs["messages"], str)
            sent |= {"logprobs": logprobs} if plain else {"logprobs": True, "top_logprobs": logprobs}
        if schema := inputs.get("schema"):
            held = {"name": "answer", "strict": True, "schema": schema}
            sent["response_format"] = {"type": "json_schema", "json_schema": held}
        if model.chat_template_kwargs:
            sent["chat_template_kwargs"] = model.chat_template_kwargs
        return sent

    def cost(self, prompt_tokens: int, output_tokens: int) -> float:
        """Price of one request; 0 where no prices are given."""
        return (prompt_tokens * (self.price_in or 0) + output_tokens * (self.price_out or 0)) / 1e6

    def preflight(self, model: ModelConfig, storage: Storage, chat: bool, sampling: Mapping[str, Any]) -> None:
        """Asks the endpoint one short question. Raises PreflightError, in one line."""
        from trust.ask.openai import check

        if model.adapter:
            raise ConfigError(
                f"model.adapter={model.adapter}: an endpoint serves an adapter under a name of its own: load it there, and "
                "set model.path to that name"
            )
        check(self, model, chat, sampling)

    def identity(self, model: ModelConfig, storage: Storage | None = None) -> dict[str, Any]:
        return {
            "backend": "openai",
            "model": model.path,
            "revision": model.revision,
            "chat_template_kwargs": model.chat_template_kwargs,
            "fields": self.fields,
            "extra": self.extra,
        }
