"""Which backend answers `entails`: its config, its fingerprint, and how it is built in an actor."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from trust import config as configs
from trust.ask.lexical import LexicalConfig
from trust.ask.llm import LlmConfig
from trust.ask.nli import NliConfig
from trust.ask.none import NoneConfig
from trust.ask.t5 import T5Config
from trust.storage import Storage

CHOICES: dict[str, type] = {
    "t5": T5Config,
    "nli": NliConfig,
    "llm": LlmConfig,
    "lexical": LexicalConfig,
    "none": NoneConfig,
}


class EntailsConfig(Protocol):
    """What the config of each backend says of it, with no model loaded. A judge is one module with such a dataclass, a line
    in `CHOICES`, a file in `conf/judge/entails` and a test.

    Attributes:
        languages: primary BCP 47 tags of what it is for; None is any.
        gpus: an actor's share of GPUs; None takes one where the cluster has one now.
        all_cpus: whether it keeps all CPUs busy that it is given.
        cost_limit: what a run may cost; None for no limit.
    """

    languages: list[str] | None
    gpus: float | None
    all_cpus: bool
    cost_limit: float | None

    def describe(self) -> str:
        """The judge in words, for summaries and reports."""
        ...

    def preflight(self, storage: Storage | None = None) -> None:
        """Whether all that it needs is there. Raises PreflightError."""
        ...

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of its answers."""
        ...

    def for_actor(self, cpus: int) -> dict[str, Any]:
        """Plain values that hold in an actor of `cpus` CPUs, wherever it runs."""
        ...

    def load(self, storage: Storage | None = None, budget: float | None = None) -> Any:
        """The backend (trust.ask.runner) with its model loaded; it has `languages` and `close()` too.

        Args:
            budget: what it may cost from now on, for one that has a `cost_limit`.
        """
        ...


@dataclass
class JudgeConfig:
    """One backend an ask."""

    entails: Any = field(default_factory=T5Config, metadata={"choices": CHOICES, "by": "backend"})


def build(values: Any, path: str = "judge.entails") -> Any:
    """The config of a judge (EntailsConfig) from plain values, checked; a config that is one already stays.

    Args:
        path: how messages call it.

    Raises:
        ConfigError: no such backend, or an option that it does not have.
    """
    if not isinstance(values, dict):
        return values
    configs.one_of(f"{path}.backend", str(values.get("backend")), CHOICES)
    return configs.build(CHOICES[values["backend"]], values, path)


def build_entails(values: dict[str, Any], storage: Storage | None = None, budget: float | None = None) -> Any:
    """The judge for plain config values, with its model loaded.

    Args:
        storage: the door to a model on s3://; None builds one from the environment.
        budget: what it may cost from now on; None for no limit.
    """
    return build(values).load(storage, budget)


def identity(config: JudgeConfig, storage: Storage | None = None) -> dict[str, Any]:
    """What of the judges changes results: their answers, and which rows are marked as none of theirs."""
    return {"entails": config.entails.fingerprint(storage), "languages": config.entails.languages}
