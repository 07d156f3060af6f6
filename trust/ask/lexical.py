"""Entailment by word recall: no model, for smoke runs and as a floor. Every report marks numbers that rest on it."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import regex

from trust import config as configs
from trust.ask import Verdict
from trust.errors import ConfigError
from trust.fingerprint import fingerprint
from trust.storage import Storage

_WORD = regex.compile(r"[\w\p{M}]+")  # vowel signs of Indic scripts are marks within a word
_VOCALISED = regex.compile(r"[\u0640\u064b-\u0652\u0670]+")  # what Arabic mostly leaves out
# Scripts written without spaces: one character is the unit there, a run of letters elsewhere.
_UNSPACED = regex.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@dataclass
class LexicalConfig:
    """The lexical judge.

    Attributes:
        threshold: share of the hypothesis' distinct words that the premise must hold.
    """

    backend: str = "lexical"
    threshold: float = 0.8
    batch_size: int = 256

    languages: ClassVar[list[str] | None] = None  # words are words in any of them
    gpus: ClassVar[float] = 0.0
    all_cpus: ClassVar[bool] = False
    cost_limit: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigError(f"judge.entails.threshold={self.threshold}: a share above 0, at most 1")

    def describe(self) -> str:
        return f"lexical (word recall >= {self.threshold:g}, no model: for smoke runs)"

    def preflight(self, storage: Storage | None = None) -> None:
        """Nothing is needed."""

    def fingerprint(self, storage: Storage | None = None) -> str:
        return fingerprint({"backend": "lexical", "threshold": self.threshold, "version": 2})

    def for_actor(self, cpus: int) -> dict[str, Any]:
        return configs.plain(self)

    def load(self, storage: Storage | None = None, budget: float | None = None) -> "LexicalJudge":
        return LexicalJudge(self)


class LexicalJudge:
    """Label 1 where the premise holds at least `threshold` of the hypothesis' distinct words; p_yes is that share."""

    def __init__(self, config: LexicalConfig) -> None:
        self.batch_size = config.batch_size
        self.lanes = 1
        self.languages = config.languages
        self.threshold = config.threshold
        self.fingerprint = config.fingerprint()

    def close(self) -> None:
        """Nothing to end."""

    def answer_batch(self, inputs: Sequence[dict[str, Any]]) -> list[Verdict]:
        answers = []
        for pair in inputs:
            wanted = set(words(pair["hypothesis"]))
            recall = len(wanted & set(words(pair["premise"]))) / len(wanted) if wanted else 0.0
            answers.append(Verdict(int(recall >= self.threshold), recall))
        return answers


def words(text: str) -> list[str]:
    """Lower-case words of `text`; single characters for scripts without spaces."""
    found = []
    for word in _WORD.findall(_VOCALISED.sub("", unicodedata.normalize("NFKC", text).casefold())):
        if _UNSPACED.search(word):
            found.extend(word)
        else:
            found.append(word)
    return found
