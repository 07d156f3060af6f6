"""Entailment by asking a language model whether it holds, yes or no, through any backend of `complete`.

How the answer is read is a setting, never a silent fallback:
- `logprobs`: p_yes is the share of "yes" in what the first token gives to "yes" and "no";
- `json`: the answer is held to a schema with one of the two words; p_yes is 1 or 0;
- `samples`: several answers are drawn; p_yes is the share that say yes.
The label is 1 from p_yes `threshold` on. What is neither yes nor no is a failed verdict with the text beside it.
"""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trust import config as configs
from trust.ask import AskFailed, Completion, Verdict, ask_hash, languages
from trust.ask.engines import EngineBacked
from trust.errors import ConfigError
from trust.fingerprint import fingerprint
from trust.storage import Storage, open_storage

READINGS = ("logprobs", "json", "samples")
PROMPT = (
    "Text:\n{premise}\n\nStatement:\n{hypothesis}\n\n"
    "Does the text support everything that the statement says? Go by the text alone, not by what you know."
)

_ANSWER = {
    "logprobs": "Answer with one word, yes or no.",
    "json": 'Answer with a JSON object, {"verdict": "yes"} or {"verdict": "no"}.',
    "samples": "Answer with one word, yes or no.",
}
_SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
_LOGPROBS = 20  # the most that endpoints give
_LEAST = 0.05  # of the first token's probability that yes and no together must have
# The first word, unless it is a part of another ("no-one") or the other one comes right behind it ("yes and no").
_WORD = re.compile(r"[\W_]*(yes|no)\b(?!-\w)(?!\W+(?:(?:and|or|but)\W+)?(?!\1\b)(?:yes|no)\b)", re.IGNORECASE)


@dataclass(kw_only=True)
class LlmConfig(EngineBacked):
    """A language model as judge.

    Attributes:
        reading: how an answer is read, see the module: `logprobs`, `json` or `samples`.
        samples: answers a pair, an odd number (`samples`).
        temperature: at which they are drawn (`samples`).
        prompt: the question, with `{premise}` and `{hypothesis}`; null for ours. How to answer is put below it.
        chat: whether the chat template is used; else the model goes on with the text.
        max_tokens: length of an answer.
        threshold: p_yes from which on the label is 1.
        languages: what the model is for (primary BCP 47 tags), null for any.
    """

    backend: str = "llm"
    reading: str = "logprobs"
    samples: int = 5
    temperature: float = 0.7
    prompt: str | None = None
    chat: bool = True
    max_tokens: int = 16
    threshold: float = 0.5
    languages: list[str] | None = None

    def __post_init__(self) -> None:
        configs.one_of("judge.entails.reading", self.reading, READINGS)
        if self.samples < 1 or self.samples % 2 == 0:
            raise ConfigError(f"judge.entails.samples={self.samples}: an odd number, so that there is a majority")
        if self.temperature <= 0:
            raise ConfigError(f"judge.entails.temperature={self.temperature:g}: must be above 0")
        if not 0 < self.threshold <= 1:
            raise ConfigError(f"judge.entails.threshold={self.threshold:g}: a probability above 0, at most 1")
        if self.max_tokens < 1:
            raise ConfigError(f"judge.entails.max_tokens={self.max_tokens}: must be at least 1")
        for name in ("{premise}", "{hypothesis}"):
            if self.prompt is not None and name not in self.prompt:
                raise ConfigError(f"judge.entails.prompt does not hold {name}")
        languages.check(self.languages)

    def describe(self) -> str:
        reading = f"{self.samples} samples" if self.reading == "samples" else self.reading
        return f"llm {super().describe()}, by {reading}"

    def preflight(self, storage: Storage | None = None) -> None:
        self.engine.preflight(self.model, storage or open_storage(), self.chat, self.sampling(0))

    def fingerprint(self, storage: Storage | None = None) -> str:
        """Identity of the judge's answers: model, prompt and how they are read; not where it runs."""
        options = {key: value for key, value in asdict(self).items() if key not in ("model", "engine", "languages")}
        if self.reading != "samples":
            del options["samples"], options["temperature"]
        asked = {"question": self.prompt or PROMPT, "answer": _ANSWER[self.reading]}
        return fingerprint(options | asked | {"engine": self.engine.identity(self.model, storage)})

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "LlmJudge":
        return LlmJudge(self, self.load_engine(storage, budget), storage)

    def asked(self, pair: Mapping[str, str]) -> list[dict[str, str]] | str:
        """What the model is sent about a pair."""
        text = _fill(self.prompt or PROMPT, pair) + f"\n\n{_ANSWER[self.reading]}"
        return [{"role": "user", "content": text}] if self.chat else f"{text}\nAnswer:"

    def sampling(self, seed: int) -> dict[str, Any]:
        """How one answer is drawn."""
        temperature = self.temperature if self.reading == "samples" else 0.0
        drawn = {"temperature": temperature, "top_p": 1.0, "max_tokens": self.max_tokens, "seed": seed}
        return drawn | ({"logprobs": _LOGPROBS} if self.reading == "logprobs" else {})


class LlmJudge:
    """Asks `backend` (trust.ask.runner.StreamBackend for `complete`) and reads what it says."""

    def __init__(self, config: LlmConfig, backend: Any, storage: Storage | None = None) -> None:
        self.fingerprint = config.fingerprint(storage)
        self.languages = config.languages
        self._config = config
        self._backend = backend

    async def answer(self, inputs: Mapping[str, Any]) -> Verdict:
        """The verdict on `premise` and `hypothesis`.

        Raises:
            AskFailed: `no_verdict` where the answer is neither yes nor no (the text is kept), or as the backend says.
        """
        if self._config.reading == "samples":
            return await self._vote(inputs)
        completion = await self._ask(inputs, 0)
        read = _by_logprobs if self._config.reading == "logprobs" else _by_json
        try:
            p_yes = read(completion)
        except AskFailed as error:
            raise AskFailed(error.reason, error.detail, totals=completion.totals, raw=completion.text) from error
        return self._verdict(p_yes, completion.text, completion.totals)

    def close(self) -> None:
        self._backend.close()

    async def _vote(self, inputs: Mapping[str, Any]) -> Verdict:
        """The share of yes among the answers that say yes or no, which most of them must."""
        asks = (self._ask(inputs, draw) for draw in range(self._config.samples))
        answers = await asyncio.gather(*asks, return_exceptions=True)
        totals: Counter[str] = Counter()
        for item in answers:
            if not isinstance(item, Completion | AskFailed):
                raise item
            totals.update(item.totals)
        texts = [item.text for item in answers if isinstance(item, Completion)]
        raw = json.dumps(texts, ensure_ascii=False)
        votes = [match[1].casefold() == "yes" for text in texts if (match := _WORD.match(text))]
        if 2 * len(votes) <= len(answers):
            failed = next((item for item in answers if isinstance(item, AskFailed)), None)
            if failed and not texts:
                raise AskFailed(failed.reason, failed.detail, totals=totals)
            raise AskFailed(
                "no_verdict", f"{len(votes)} of {len(answers)} answers say yes or no", totals=totals, raw=raw
            )
        return self._verdict(sum(votes) / len(votes), raw, totals)

    async def _ask(self, inputs: Mapping[str, Any], draw: int) -> Completion:
        config = self._config
        pair = {key: str(inputs[key]) for key in ("premise", "hypothesis")}
        seed = int(ask_hash("entails", pair | {"draw": draw})[:8], 16) >> 1
        return await self._backend.answer(
            {
                "messages": config.asked(pair),
                "sampling": config.sampling(seed),
                "schema": _SCHEMA if config.reading == "json" else None,
            }
        )

    def _verdict(self, p_yes: float, raw: str, totals: Mapping[str, float]) -> Verdict:
        return Verdict(int(p_yes >= self._config.threshold), p_yes, raw=raw, totals=totals)


def _fill(template: str, pair: Mapping[str, str]) -> str:
    """One pass, so that a premise with `{hypothesis}` in it stays as it is."""
    return re.sub(r"\{(premise|hypothesis)\}", lambda match: pair[match[1]], template)


def _by_logprobs(completion: Completion) -> float:
    if not completion.first_tokens:
        raise AskFailed(
            "no_logprobs", "no log-probabilities came with the answer; set judge.entails.reading to json or samples"
        )
    mass = {"yes": 0.0, "no": 0.0}
    for token, logprob in completion.first_tokens:
        word = token.strip(" \n\t▁Ġ\"'*.,:").casefold()
        if word in mass:
            mass[word] += math.exp(logprob)
    both = mass["yes"] + mass["no"]
    if both < _LEAST:
        raise AskFailed(
            "no_verdict", f"its first word is neither yes nor no ({both:.1%} likely): {completion.text[:80]!r}"
        )
    return mass["yes"] / both


def _by_json(completion: Completion) -> float:
    try:
        verdict = json.loads(completion.text)["verdict"]
        return float({"yes": 1, "no": 0}[verdict])
    except (ValueError, TypeError, KeyError) as error:
        raise AskFailed(
            "no_verdict", f"not the JSON that was asked for ({completion.finish_reason}): {completion.text[:80]!r}"
        ) from error
