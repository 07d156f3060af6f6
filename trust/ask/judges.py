"""Which backend answers `entails`: its config, its fingerprint, and how it is built in an actor."""

from dataclasses import dataclass, field
from typing import Any

from trust import config as configs
from trust import models
from trust.ask.lexical import LexicalConfig, LexicalJudge
from trust.ask.t5 import T5Config, T5Judge, judge_fingerprint
from trust.storage import Storage

CHOICES: dict[str, type] = {"t5": T5Config, "lexical": LexicalConfig}


@dataclass
class JudgeConfig:
    """One backend an ask."""

    entails: Any = field(default_factory=T5Config, metadata={"choices": CHOICES, "by": "backend"})


def build_entails(values: dict[str, Any], storage: Storage | None = None) -> Any:
    """The judge for plain config values, with its model loaded.

    Args:
        storage: the door to a model on s3://; None builds one from the environment.
    """
    kind: type[T5Config] | type[LexicalConfig] = CHOICES[values["backend"]]
    config = configs.build(kind, values, "judge.entails")
    return T5Judge(config, storage) if isinstance(config, T5Config) else LexicalJudge(config)


def for_actor(config: T5Config | LexicalConfig, cpus: int) -> dict[str, Any]:
    """Plain config values that hold in an actor of `cpus` CPUs, wherever it runs."""
    values = configs.plain(config)
    if isinstance(config, T5Config):
        values["threads"] = config.threads or cpus
        values["model"] = models.portable(config.model)
    return values


def entails_fingerprint(config: T5Config | LexicalConfig, storage: Storage | None = None) -> str:
    """Identity of the judge's answers, without loading it."""
    if isinstance(config, T5Config):
        return judge_fingerprint(config, storage)
    return LexicalJudge(config).fingerprint


def preflight(config: T5Config | LexicalConfig, storage: Storage | None = None) -> None:
    """Whether the judge's model is there. Raises PreflightError."""
    if isinstance(config, T5Config):
        models.preflight(config.model, config.revision, storage)


def describe(config: T5Config | LexicalConfig) -> str:
    """The judge in words, for summaries and reports."""
    if isinstance(config, T5Config):
        return f"t5 {config.model}" + (f"@{config.revision}" if config.revision else "") + f" {config.dtype}"
    return f"lexical (word recall >= {config.threshold:g}, no model: for smoke runs)"


def identity(config: JudgeConfig, storage: Storage | None = None) -> dict[str, str]:
    """What of the judges changes results."""
    return {"entails": entails_fingerprint(config.entails, storage)}
