"""G-Eval (Liu et al., EMNLP 2023, arXiv 2303.16634): a language model grades a response on a scale by criteria in words.

The prompt holds a task introduction, the criteria, evaluation steps and the texts; the model fills in a grade. The score is the
expected grade under the model's probabilities of the grades (eq. 1), `mode=probabilities`, or, where there are none, the mean of
`samples` grades drawn at temperature 1, `mode=samples`. The mode is a setting and recorded, never chosen in silence.

- Probabilities are those of the grades alone: what falls on other tokens is left out and the rest renormalised; where less than
  `least` falls on grades the row fails (`no_grade`), it is not given 0 (the released script averages 0 in).
- A grade is the first number of an answer. Samples without one are left out, and counted in `geval_ASPECT_unread`.
- Evaluation steps are those of the aspect (`steps=given`), or written by the model once a run (`steps=written`, the paper's
  automatic chain of thought), and then stand in the run's manifest.
- Ready criteria: coherence, consistency, fluency, relevance (of summaries), engagingness, naturalness, groundedness (of
  dialogue), factual_consistency (yes or no), with steps in our own wording. Own ones by `criteria`, with a scale.
"""

import asyncio
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import yaml

from trust import config as configs
from trust.ask import Ask, Completion, ask_hash
from trust.errors import ConfigError, RowError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import BIG, Sums, agreement
from trust.metrics.texts import NAMES, text_of

_KEY = "metrics.geval"
_MODES = ("probabilities", "samples")
_STEPS = ("given", "written")
_WRITTEN = {
    "type": "object",
    "properties": {"steps": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 8}},
    "required": ["steps"],
    "additionalProperties": False,
}
_NUMBER = re.compile(r"\s*[\W_]*(\d+)(?![\d.,]*\d)")
_TERMS = ("rows", "grade", "drawn", "unread", "paired", "agreement")
_LOGPROBS = 20  # the most that endpoints give
_NAMES = {
    "question": "Question",
    "docs": "Documents",
    "references": "Reference",
    "source": "Source",
    "history": "Conversation",
    "fact": "Fact",
    "output": "Response",
}


@dataclass
class Aspect:
    """What is graded, in words.

    Attributes:
        criteria: what a good response is like.
        steps: how to go about grading; one a line.
        low, high: the scale, whole numbers.
        shows: which texts of the row the model is shown, in order: question, docs, references, source, history, fact, output.
        task: what the response is, in one sentence.
    """

    criteria: str
    steps: list[str] = field(default_factory=list)
    low: int = 1
    high: int = 5
    shows: list[str] = field(default_factory=lambda: ["question", "docs", "output"])
    task: str = "You are given a response that a system wrote."

    def check(self, where: str) -> None:
        """Raises ConfigError where it cannot be asked."""
        if not self.criteria.strip():
            raise ConfigError(f"{where}.criteria is empty: say in words what is graded")
        if not 0 <= self.low < self.high <= 100:
            raise ConfigError(
                f"{where}: the scale goes from low={self.low} to high={self.high}; 0 <= low < high <= 100"
            )
        for text in self.shows:
            configs.one_of(f"{where}.shows", text, NAMES)
        if "output" not in self.shows:
            raise ConfigError(f"{where}.shows must hold output: it is what is graded")


@dataclass
class GevalConfig:
    """Options of the metric.

    Attributes:
        aspects: which ready ones are graded.
        criteria: own aspects, name -> Aspect.
        steps: `given` with the aspects, or `written` by the model, once a run.
        mode: `probabilities` or `samples`.
        samples: answers a response and aspect (mode `samples`).
        least: share of the first token's probability that must fall on grades (mode `probabilities`).
    """

    aspects: list[str] = field(default_factory=list)
    criteria: dict[str, Any] = field(default_factory=dict)
    steps: str = "given"
    mode: str = "probabilities"
    samples: int = 20
    least: float = 0.05


class Geval:
    """The metric (trust.metrics.Metric).

    Raises:
        ConfigError: no aspect, an unknown one, or one that cannot be asked.
    """

    name = "geval"
    asks = ("complete",)

    def __init__(self, config: GevalConfig, compat: str) -> None:
        configs.one_of(f"{_KEY}.steps", config.steps, _STEPS)
        configs.one_of(f"{_KEY}.mode", config.mode, _MODES)
        if config.samples < 1 or not 0 < config.least <= 1:
            raise ConfigError(f"{_KEY}: samples is at least 1, and least a share above 0")
        self._config = config
        self._aspects: dict[str, Aspect] = {}
        for name in config.aspects:
            configs.one_of(f"{_KEY}.aspects", name, ready())
            self._aspects[name] = configs.build(Aspect, ready()[name], f"{_KEY}.aspects.{name}")
        for name, values in config.criteria.items():
            if not str(name).isidentifier():
                raise ConfigError(f"{_KEY}.criteria: {name!r} is no name: letters, digits and _ only")
            self._aspects[name] = configs.build(Aspect, values, f"{_KEY}.criteria.{name}")
        if not self._aspects:
            raise ConfigError(f"{_KEY}.aspects is empty: choose from {', '.join(ready())}, or give {_KEY}.criteria")
        for name, aspect in self._aspects.items():
            aspect.check(f"{_KEY}.{name}")
        self.terms = tuple(f"{kind}_{name}" for name in self._aspects for kind in _TERMS)

    def preflight(self) -> None:
        """Needs nothing but the model."""

    def notes(self) -> dict[str, str]:
        """How grades were read, for summaries."""
        mode = self._config.mode
        return {
            "geval_mode": f"{self._config.samples} samples" if mode == "samples" else mode,
            "geval_steps": self._config.steps,
        }

    @property
    def wants_setup(self) -> bool:
        return self._config.steps == "written"

    async def setup(self, ask: Ask) -> dict[str, list[str]]:
        """Aspect -> evaluation steps that the model writes.

        Raises:
            RowError: `no_steps`: what it wrote is not of the schema; or it could not answer.
        """
        return dict(
            zip(self._aspects, await asyncio.gather(*(self._write(name, ask) for name in self._aspects)), strict=True)
        )

    def take(self, steps: Mapping[str, list[str]]) -> None:
        """Goes by these steps from now on."""
        for name, aspect in self._aspects.items():
            aspect.steps = list(steps[name])

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response; one ask an aspect, or `samples` of them. An aspect whose texts the row lacks does not apply.

        Raises:
            RowError: `no_grade`: an answer without a grade; or the model could not answer.
        """
        if not (row.get("output") or "").strip():
            return RowScore(status="na", reason="empty_output", detail="there is no response to grade")
        shown = {name: _prompt(aspect, row) for name, aspect in self._aspects.items()}
        wanted = {name: text for name, text in shown.items() if text is not None}
        if not wanted:
            return RowScore(
                status="na", reason="nothing_to_show", detail="the row has none of the texts that are graded by"
            )
        grades = await asyncio.gather(*(self._grade(name, text, ask) for name, text in wanted.items()))
        terms: dict[str, float] = {}
        values: dict[str, float] = {}
        reasons = []
        for name, (grade, drawn, unread, agreed) in zip(wanted, grades, strict=True):
            terms |= {
                f"rows_{name}": 1.0,
                f"grade_{name}": grade,
                f"drawn_{name}": drawn * BIG,
                f"unread_{name}": unread * BIG,
            }
            values[f"geval_{name}"] = grade
            if agreed is not None:
                terms |= {f"paired_{name}": 1.0, f"agreement_{name}": agreed}
                values[f"geval_{name}_agreement"] = agreed
            reasons.append(("neutral", f"{name}: {grade:.2f} of {self._aspects[name].high}."))
        return RowScore(terms=terms, values=values, trace={"reasons": reasons})

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`geval_ASPECT`: mean grade on its scale; in mode `samples`, `geval_ASPECT_unread`: answers without a grade, percent,
        and `geval_ASPECT_agreement`: 100 where all grades of a response are the same, 0 where they are at both ends."""
        own = Sums(sums, "na")
        stats: dict[str, Stat] = {}
        for name, aspect in self._aspects.items():
            mean = own.percent(own[f"grade_{name}"], own[f"rows_{name}"]) / 100
            stats[f"geval_{name}"] = Stat(mean, own.rows(f"rows_{name}"), None, (float(aspect.low), float(aspect.high)))
            if self._config.mode == "samples":
                share = own.percent(own[f"unread_{name}"], own[f"drawn_{name}"])
                stats[f"geval_{name}_unread"] = Stat(share, own.rows(f"rows_{name}"))
                stats[f"geval_{name}_agreement"] = own.mean(f"agreement_{name}", f"paired_{name}")
        return stats

    async def _write(self, name: str, ask: Ask) -> list[str]:
        aspect = self._aspects[name]
        text = "\n\n".join(
            [
                f"{aspect.task} It will be graded from {aspect.low} (worst) to {aspect.high} (best) by one criterion:",
                aspect.criteria.strip(),
                f"Whoever grades it sees: {', '.join(_NAMES[shown] for shown in aspect.shows)}.",
                "Write the steps that lead to a fair grade, in order, each in one sentence. "
                'Answer with a JSON object, {"steps": ["…", "…"]}.',
            ]
        )
        sampling = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 512, "seed": 0}
        answer = await ask.complete([{"role": "user", "content": text}], sampling, _WRITTEN, role=f"steps of {name}")
        try:
            steps = [" ".join(step.split()) for step in json.loads(answer.text)["steps"]]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RowError(
                "no_steps",
                f"{name}: what the model wrote ({answer.finish_reason}) is not the JSON that was asked for: "
                f"{answer.text[:80]!r}; give the steps yourself",
            ) from error
        if not any(steps):
            raise RowError("no_steps", f"{name}: the model wrote no step; give the steps yourself")
        return [step for step in steps if step]

    async def _grade(self, name: str, text: str, ask: Ask) -> tuple[float, int, int, float | None]:
        """The grade, how many answers were drawn, how many of them had none, and how far the others agree."""
        aspect = self._aspects[name]
        messages = [{"role": "user", "content": text}]
        if self._config.mode == "probabilities":
            sampling = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 5, "seed": 0, "logprobs": _LOGPROBS}
            return expected(await ask.complete(messages, sampling, role=name), aspect, self._config.least), 1, 0, None
        seed = int(ask_hash("geval", {"messages": text})[:7], 16)
        drawn = [
            {"temperature": 1.0, "top_p": 1.0, "max_tokens": 5, "seed": seed + number}
            for number in range(self._config.samples)
        ]
        answers = await asyncio.gather(*(ask.complete(messages, sampling, role=name) for sampling in drawn))
        grades = [grade for answer in answers if (grade := read(answer.text, aspect)) is not None]
        if not grades:
            raise RowError(
                "no_grade", f"{name}: none of {len(answers)} answers holds a grade: {answers[0].text[:80]!r}"
            )
        agreed = agreement([(grade - aspect.low) / (aspect.high - aspect.low) for grade in grades])
        return sum(grades) / len(grades), len(answers), len(answers) - len(grades), agreed


METRIC = Geval
CONFIG = GevalConfig


def expected(answer: Completion, aspect: Aspect, least: float) -> float:
    """The expected grade under the first token's probabilities of the grades (arXiv 2303.16634, eq. 1), renormalised.

    Raises:
        RowError: `no_logprobs`, or `no_grade` where less than `least` falls on grades.
    """
    if not answer.first_tokens:
        raise RowError(
            "no_logprobs", f"no log-probabilities came with the answer; set {_KEY}.mode=samples", "judge.complete"
        )
    mass: dict[int, float] = {}
    for token, logprob in answer.first_tokens:
        word = token.strip(" \n\t▁Ġ\"'*.,:()[]")
        if word.isascii() and word.isdigit() and aspect.low <= int(word) <= aspect.high:
            mass[int(word)] = mass.get(int(word), 0.0) + math.exp(logprob)
    total = sum(mass.values())
    if total < least:
        raise RowError(
            "no_grade",
            f"the first word is no grade from {aspect.low} to {aspect.high} ({total:.1%}): {answer.text[:80]!r}",
        )
    return sum(grade * share for grade, share in mass.items()) / total


def read(text: str, aspect: Aspect) -> int | None:
    """The grade that an answer begins with; None where that is no whole number of the scale."""
    match = _NUMBER.match(text)
    return int(match[1]) if match and aspect.low <= int(match[1]) <= aspect.high else None


@cache
def ready() -> dict[str, dict[str, Any]]:
    """The ready aspects, name -> values of `Aspect`."""
    text = resources.files("trust.metrics").joinpath("geval_aspects.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def _prompt(aspect: Aspect, row: Row) -> str | None:
    """The whole prompt; None where the row lacks a text that is to be shown."""
    texts = {name: text_of(row, name) for name in aspect.shows}
    if not all(texts.values()):
        return None
    steps = "".join(f"{number}. {step}\n" for number, step in enumerate(aspect.steps, start=1))
    parts = [
        f"{aspect.task} Grade it by one criterion.",
        f"Criterion ({aspect.low} is worst, {aspect.high} is best):\n{aspect.criteria.strip()}",
        *([f"Steps:\n{steps.strip()}"] if steps else []),
        *(f"{_NAMES[name]}:\n{text}" for name, text in texts.items()),
        f"Answer with the grade alone, a whole number from {aspect.low} to {aspect.high}.\nGrade:",
    ]
    return "\n\n".join(parts)
