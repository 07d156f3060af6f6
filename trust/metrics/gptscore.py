"""GPTScore (Fu et al., NAACL 2024, arXiv 2302.04166): how likely a causal language model finds a response behind a text and an
instruction that names an aspect, as the mean log-probability of its tokens (eq. 1, equal weights). Below 0; higher is better.

- Settings: `value` (the text alone), `instruction`, `demonstrations` (the instruction and solved examples).
- Directions: `source` (source -> response), `reference` (reference -> response), `both` (the mean of reference -> response and
  response -> reference). Of several references the best counts.
- Aspects of conversations are questions: the score is the log-probability of "Yes" behind conversation, reply and question.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import yaml

from trust import config as configs
from trust.ask import Ask
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import Sums
from trust.metrics.texts import AGAINST, NAMES, references_of, source_of, text_of

_KEY = "metrics.gptscore"
_SETTINGS = ("value", "instruction", "demonstrations")
_DIRECTIONS = ("source", "reference", "both")


@dataclass
class Aspect:
    """What makes a good response, as an instruction to write one.

    Attributes:
        instruction: stands before the text.
        connector: stands between text and response.
        direction: `source`, `reference` or `both`, see the module.
        shows: texts of the row that are the source, in order: question, docs, references, source, history, fact; empty is
            `context.source`, else the documents.
        question: of a conversation (`context.history`): yes or no about the response, in place of all the above.
    """

    instruction: str = ""
    connector: str = "Tl;dr"
    direction: str = "source"
    shows: list[str] = field(default_factory=list)
    question: str = ""

    def check(self, where: str) -> None:
        """Raises ConfigError where it cannot be asked."""
        if bool(self.instruction.strip()) == bool(self.question.strip()):
            raise ConfigError(f"{where}: give an instruction or a question, one of the two")
        configs.one_of(f"{where}.direction", self.direction, _DIRECTIONS)
        for text in self.shows:
            configs.one_of(f"{where}.shows", text, [name for name in NAMES if name != "output"])


@dataclass
class Demonstration:
    """A solved example.

    Attributes:
        text: the source.
        output: a good response.
    """

    text: str
    output: str


@dataclass
class GptscoreConfig:
    """Options of the metric.

    Attributes:
        aspects: which ready ones are scored.
        own: own aspects, name -> Aspect.
        setting: `value`, `instruction` or `demonstrations`.
        against: `references` of the row, or its gold `answers` (every alias is a reference).
        demonstrations: examples of setting `demonstrations`, each with text and output.
    """

    aspects: list[str] = field(default_factory=list)
    own: dict[str, Any] = field(default_factory=dict)
    setting: str = "instruction"
    against: str = "references"
    demonstrations: list[Any] = field(default_factory=list)


class Gptscore:
    """The metric (trust.metrics.Metric).

    Raises:
        ConfigError: no aspect, an unknown one, or one that cannot be asked in this setting.
    """

    name = "gptscore"
    asks = ("logprob",)

    def __init__(self, config: GptscoreConfig, compat: str) -> None:
        configs.one_of(f"{_KEY}.setting", config.setting, _SETTINGS)
        configs.one_of(f"{_KEY}.against", config.against, AGAINST)
        self._setting, self._against = config.setting, config.against
        self._aspects: dict[str, Aspect] = {}
        for name in config.aspects:
            configs.one_of(f"{_KEY}.aspects", name, ready())
            self._aspects[name] = configs.build(Aspect, ready()[name], f"{_KEY}.aspects.{name}")
        for name, values in config.own.items():
            if not str(name).isidentifier():
                raise ConfigError(f"{_KEY}.own: {name!r} is no name: letters, digits and _ only")
            self._aspects[name] = configs.build(Aspect, values, f"{_KEY}.own.{name}")
        if not self._aspects:
            raise ConfigError(f"{_KEY}.aspects is empty: choose from {', '.join(ready())}, or give {_KEY}.own")
        for name, aspect in self._aspects.items():
            aspect.check(f"{_KEY}.{name}")
            if aspect.question and config.setting != "instruction":
                raise ConfigError(f"{_KEY}.{name} is a question: that is setting=instruction, not {config.setting}")
        if bool(config.demonstrations) != (config.setting == "demonstrations"):
            raise ConfigError(f"{_KEY}: demonstrations belong to setting=demonstrations, and it needs some")
        self._demonstrations = [
            configs.build(Demonstration, values, f"{_KEY}.demonstrations.{number}")
            for number, values in enumerate(config.demonstrations)
        ]
        self.terms = tuple(f"{kind}_{name}" for name in self._aspects for kind in ("rows", "score"))

    def preflight(self) -> None:
        """Needs nothing but the model."""

    def notes(self) -> dict[str, str]:
        """In which setting scores were taken, for summaries."""
        return {"gptscore_setting": self._setting}

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response by each aspect; an aspect whose texts the row lacks does not apply.

        Raises:
            RowError: the model could not answer.
        """
        if not (row.get("output") or "").strip():
            return RowScore(status="na", reason="empty_output", detail="there is no response to score")
        found = await asyncio.gather(*(self._score(name, row, ask) for name in self._aspects))
        terms: dict[str, float] = {}
        values: dict[str, float] = {}
        for name, score in zip(self._aspects, found, strict=True):
            if score is not None:
                terms |= {f"rows_{name}": 1.0, f"score_{name}": score}
                values[f"gptscore_{name}"] = score
        if not values:
            return RowScore(
                status="na", reason="nothing_to_compare", detail="the row has none of the texts that are scored by"
            )
        reasons = [("neutral", f"{key.removeprefix('gptscore_')}: {value:.3f}.") for key, value in values.items()]
        return RowScore(terms=terms, values=values, trace={"reasons": reasons})

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`gptscore_ASPECT`: mean over rows of the mean log-probability of a token."""
        own = Sums(sums, "na")
        return {
            f"gptscore_{name}": Stat(
                own.percent(own[f"score_{name}"], own[f"rows_{name}"]) / 100, own.rows(f"rows_{name}"), None, None
            )
            for name in self._aspects
        }

    async def _score(self, name: str, row: Row, ask: Ask) -> float | None:
        """The score by one aspect; None where the row lacks its texts."""
        aspect, output = self._aspects[name], row["output"].strip()
        if aspect.question:
            history = text_of(row, "history")
            if not history:
                return None
            context = f"{history}\n{output}\n\nQuestion: {aspect.question}\nAnswer:"
            return (await ask.logprob(context, " Yes", role=name)).mean
        if aspect.direction == "source":
            texts = [text_of(row, shown) for shown in aspect.shows] or [source_of(row)]
            if not all(texts):
                return None
            return await self._likely(aspect, "\n\n".join(texts), output, name, ask)
        references = references_of(row, self._against)
        if not references:
            return None
        return max(
            await asyncio.gather(*(self._compare(aspect, text.strip(), output, name, ask) for text in references))
        )

    async def _compare(self, aspect: Aspect, reference: str, output: str, name: str, ask: Ask) -> float:
        ways = [(reference, output)] + ([(output, reference)] if aspect.direction == "both" else [])
        found = await asyncio.gather(*(self._likely(aspect, *way, name, ask) for way in ways))
        return sum(found) / len(found)

    async def _likely(self, aspect: Aspect, text: str, output: str, name: str, ask: Ask) -> float:
        """How likely `output` is as what the instruction makes of `text`."""
        solved = [f"{shown.text}\n{aspect.connector} {shown.output}" for shown in self._demonstrations]
        told = [aspect.instruction] if self._setting != "value" else []
        context = "\n\n".join([*told, *solved, f"{text}\n{aspect.connector}"])
        return (await ask.logprob(context, f" {output}", role=name)).mean


METRIC = Gptscore
CONFIG = GptscoreConfig


@cache
def ready() -> dict[str, dict[str, Any]]:
    """The ready aspects, name -> values of `Aspect`."""
    text = resources.files("trust.metrics").joinpath("gptscore_aspects.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
