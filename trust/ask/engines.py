"""Which backend answers `complete`: what its config says of it, and how it is built in an actor."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from trust import config as configs
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


@dataclass(kw_only=True)
class EngineBacked:
    """The config of who answers an ask by a language model: what follows from its model and engine.

    Attributes:
        model: who is asked.
        engine: the backend of `complete` that it runs on (conf/engine).
    """

    model: ModelConfig
    engine: Any = field(metadata={"choices": CHOICES, "by": "backend"})

    @property
    def gpus(self) -> float:
        return float(self.engine.gpus)

    @property
    def all_cpus(self) -> bool:
        return bool(self.engine.all_cpus)

    @property
    def cost_limit(self) -> float | None:
        return self.engine.cost_limit

    def describe(self) -> str:
        model = self.model.name + (f"@{self.model.revision}" if self.model.revision else "")
        return f"{model} on {self.engine.backend}"

    def for_actor(self, cpus: int) -> dict[str, Any]:
        values = configs.plain(self)
        values["model"] = self.model.for_actor(self.engine.portable)
        return values

    def load_engine(self, storage: Storage | None, budget: float | None) -> VllmBackend | OpenAIBackend:
        """The engine with the model loaded; see `load`."""
        return load({"model": asdict(self.model), "engine": asdict(self.engine), "budget": budget}, storage)
