"""Which backend answers `complete`: what its config says of it, and how it is built in an actor."""

from collections.abc import Mapping
from typing import Any, Protocol

from trust.ask.endpoint import EndpointConfig
from trust.ask.engine import EngineConfig
from trust.ask.openai import OpenAIBackend
from trust.ask.vllm import VllmBackend
from trust.models import ModelConfig
from trust.storage import Storage

CHOICES: dict[str, type] = {"vllm": EngineConfig, "openai": EndpointConfig}
_BACKENDS: dict[str, type[VllmBackend] | type[OpenAIBackend]] = {"vllm": VllmBackend, "openai": OpenAIBackend}


class CompleteConfig(Protocol):
    """What the config of each backend says of it, with nothing loaded.

    Attributes:
        gpus: that an actor takes.
        all_cpus: whether it keeps all CPUs busy that it is given, where it takes no GPU.
        cost_limit: what a run may cost; None for no limit.
        requests_in_flight: requests that keep it busy.
    """

    backend: str
    gpus: int
    all_cpus: bool
    cost_limit: float | None
    requests_in_flight: int

    def portable(self, path: str) -> str:
        """`model.path` as it holds in another process."""
        ...

    def preflight(self, model: ModelConfig, storage: Storage, chat: bool, sampling: Mapping[str, Any]) -> None:
        """Whether `model` can answer, chat messages or plain text, sampled so. Revisions that may come to mean something else
        are made commits in `model`, so that all that follows, and the manifest, hold these. Raises ConfigError,
        PreflightError."""
        ...

    def identity(self, model: ModelConfig, storage: Storage | None = None) -> dict[str, Any]:
        """What of model and backend changes answers (plain JSON types)."""
        ...


def load(config: Mapping[str, Any], storage: Storage | None = None) -> VllmBackend | OpenAIBackend:
    """The backend for plain config values, with its model loaded.

    Args:
        config: `engine`, `model`, and `budget` (what an endpoint's actor may spend).
        storage: the door to a model on s3://; None builds one from the environment.
    """
    return _BACKENDS[config["engine"]["backend"]](config, storage)
