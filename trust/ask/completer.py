"""A language model that answers `complete` for metrics: which one, on which engine, and for which languages."""

from dataclasses import dataclass
from typing import Any

from trust.ask import languages
from trust.ask.engines import EngineBacked
from trust.fingerprint import fingerprint
from trust.storage import Storage, open_storage

_SAMPLING = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 16, "seed": 0, "logprobs": 20}


@dataclass(kw_only=True)
class CompleterConfig(EngineBacked):
    """Who completes.

    Attributes:
        logprobs: whether metrics may ask for log-probabilities of the first token; false where an endpoint tells none.
        languages: what the model is for (primary BCP 47 tags), null for any.
    """

    backend: str = "model"
    logprobs: bool = True
    languages: list[str] | None = None

    def __post_init__(self) -> None:
        languages.check(self.languages)

    def preflight(self, storage: Storage | None = None) -> None:
        sampling = {key: value for key, value in _SAMPLING.items() if key != "logprobs" or self.logprobs}
        self.engine.preflight(self.model, storage or open_storage(), True, sampling)

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the answers: model and engine, as far as it changes them."""
        return fingerprint({"engine": self.engine.identity(self.model, storage), "logprobs": self.logprobs})

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "Completer":
        return Completer(self, self.load_engine(storage, budget), storage)


class Completer:
    """The engine (trust.ask.runner.StreamBackend), with what metrics must know of it."""

    def __init__(self, config: CompleterConfig, backend: Any, storage: Storage | None = None) -> None:
        self.fingerprint = config.fingerprint(storage)
        self.languages = config.languages
        self._logprobs = config.logprobs
        self._backend = backend

    async def answer(self, inputs: dict[str, Any]) -> Any:
        """The completion. Log-probabilities that cannot be had are left out, which the answer then shows."""
        sampling = inputs["sampling"]
        if not self._logprobs and "logprobs" in sampling:
            sampling = {key: value for key, value in sampling.items() if key != "logprobs"}
        return await self._backend.answer({**inputs, "sampling": sampling})

    def close(self) -> None:
        self._backend.close()
