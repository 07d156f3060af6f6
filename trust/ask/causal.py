"""`logprob` by a causal language model in vLLM: the mean log-probability of the continuation's tokens behind the context.

Both are tokenized as one text, as the model would read it. A token that reaches from the context into the continuation counts as
the continuation's, so every character of the continuation is in exactly one counted token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trust.ask import Likelihood, languages
from trust.ask.engines import EngineBacked
from trust.ask.vllm import VllmBackend
from trust.errors import ConfigError
from trust.fingerprint import fingerprint
from trust.storage import Storage, open_storage

_SAMPLING = {"temperature": 0.0, "max_tokens": 1, "prompt_logprobs": 0}


@dataclass(kw_only=True)
class CausalConfig(EngineBacked):
    """A causal language model that scores texts.

    Attributes:
        languages: what the model is for (primary BCP 47 tags), null for any.
    """

    backend: str = "causal"
    languages: list[str] | None = None

    def __post_init__(self) -> None:
        languages.check(self.languages)
        if self.engine.backend != "vllm":
            raise ConfigError(
                f"judge.logprob.engine.backend={self.engine.backend}: endpoints do not tell how likely a prompt is; set vllm"
            )

    def preflight(self, storage: Storage | None = None) -> None:
        self.engine.preflight(self.model, storage or open_storage(), False, _SAMPLING)

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the answers: model and engine, as far as it changes them."""
        return fingerprint({"logprob": self.engine.identity(self.model, storage)})

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "CausalScorer":
        engine = self.load_engine(storage, budget)
        assert isinstance(engine, VllmBackend)
        return CausalScorer(self, engine, storage)


class CausalScorer:
    """Asks the engine (trust.ask.runner.StreamBackend)."""

    def __init__(self, config: CausalConfig, backend: VllmBackend, storage: Storage | None = None) -> None:
        self.fingerprint = config.fingerprint(storage)
        self.languages = config.languages
        self._backend = backend

    async def answer(self, inputs: Mapping[str, Any]) -> Likelihood:
        """How likely `continuation` is behind `context`.

        Raises:
            AskFailed: `prompt_too_long`: nothing is cut, since what is left would be another text; or as the engine says.
        """
        return await self._backend.likelihood(inputs["context"], inputs["continuation"])

    def close(self) -> None:
        self._backend.close()
