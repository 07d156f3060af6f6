"""Which backend answers which ask: its config, its fingerprint, and how it is built in an actor."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from trust import config as configs
from trust.ask.causal import CausalConfig
from trust.ask.completer import CompleterConfig
from trust.ask.lexical import LexicalConfig
from trust.ask.llm import LlmConfig
from trust.ask.nli import NliConfig
from trust.ask.none import NoneConfig
from trust.ask.sentence import SentenceConfig
from trust.ask.seq2seq import Seq2SeqConfig
from trust.ask.t5 import T5Config
from trust.ask.token import TokenConfig
from trust.errors import ConfigError
from trust.storage import Storage

CHOICES: dict[str, type] = {"t5": T5Config, "nli": NliConfig, "llm": LlmConfig, "lexical": LexicalConfig}
COMPLETERS: dict[str, type] = {"model": CompleterConfig}  # conf/judge/complete
SCORERS: dict[str, type] = {"seq2seq": Seq2SeqConfig, "causal": CausalConfig}  # conf/judge/logprob
EMBEDDERS: dict[str, type] = {"sentence": SentenceConfig, "token": TokenConfig}  # conf/judge/embed
NOBODY: dict[str, type] = {"none": NoneConfig}


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
        """Whether all that it needs is there. Makes the revision of a hub id the commit that it means now, so that all that
        follows, and the manifest, hold it. Raises PreflightError."""
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
    """Who answers each ask of the metrics.

    Attributes:
        entails: the judge of premise and hypothesis.
        complete: the language model that is asked in words.
        logprob: the model that says how likely a text is.
        embed: the model that gives vectors.
    """

    entails: Any = field(default_factory=T5Config, metadata={"choices": CHOICES | NOBODY, "by": "backend"})
    complete: Any = field(default_factory=NoneConfig, metadata={"choices": COMPLETERS | NOBODY, "by": "backend"})
    logprob: Any = field(default_factory=NoneConfig, metadata={"choices": SCORERS | NOBODY, "by": "backend"})
    embed: Any = field(default_factory=NoneConfig, metadata={"choices": EMBEDDERS | NOBODY, "by": "backend"})

    def chosen(self) -> dict[str, Any]:
        """Ask -> who answers it, without those that nobody answers."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {ask: config for ask, config in found.items() if not isinstance(config, NoneConfig)}

    def only(self, asks: Iterable[str]) -> "JudgeConfig":
        """The same with nobody for the asks that are not made.

        Raises:
            ConfigError: nobody is chosen for one that is.
        """
        for ask in asks:
            if ask not in self.chosen():
                raise ConfigError(f"judge/{ask} is not set, but the metrics ask it: choose one of conf/judge/{ask}")
        return JudgeConfig(
            **{ask: config for ask, config in self.chosen().items() if ask in asks}
            | ({} if "entails" in asks else {"entails": NoneConfig()})
        )

    def describe(self) -> str:
        """Who answers, in words, for summaries and reports."""
        chosen = self.chosen()
        if list(chosen) == ["entails"]:
            return str(chosen["entails"].describe())
        return "; ".join(f"{ask}: {config.describe()}" for ask, config in chosen.items()) or NoneConfig().describe()

    def cost_limit(self) -> float | None:
        """What a run may cost.

        Raises:
            ConfigError: several of them have a limit of their own.
        """
        limits = [config.cost_limit for config in self.chosen().values() if config.cost_limit is not None]
        if len(limits) > 1:
            raise ConfigError("several judges have a cost_limit; costs are counted together, so set one of them only")
        return next(iter(limits), None)


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


def load(values: dict[str, Any], storage: Storage | None = None, budget: float | None = None) -> dict[str, Any]:
    """Ask -> its backend, with its model loaded.

    Args:
        values: ask -> plain config values (`for_actor`).
        storage: the door to a model on s3://; None builds one from the environment.
        budget: what they may cost from now on; None for no limit.
    """
    config = configs.build(JudgeConfig, {"entails": {"backend": "none"}, **values}, "judge")
    return {ask: chosen.load(storage, budget) for ask, chosen in config.chosen().items()}


def build_entails(values: dict[str, Any], storage: Storage | None = None, budget: float | None = None) -> Any:
    """The judge for plain config values, with its model loaded.

    Args:
        storage: the door to a model on s3://; None builds one from the environment.
        budget: what it may cost from now on; None for no limit.
    """
    return build(values).load(storage, budget)


def identity(config: JudgeConfig, storage: Storage | None = None) -> dict[str, Any]:
    """What of the judges changes results: their answers, and which rows are marked as none of theirs."""
    chosen = config.chosen()
    languages = {ask: judge.languages for ask, judge in chosen.items() if ask != "embed"}
    return {ask: judge.fingerprint(storage) for ask, judge in chosen.items()} | {"languages": languages}
