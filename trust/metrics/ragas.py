"""RAGAS (Es et al. 2023, arXiv 2309.15217) and the measures that are known under its name today, by a language model that is held
to JSON schemas.

| name | what it is | needs |
| --- | --- | --- |
| `faithfulness` | share of the response's statements that the documents support (sec. 3) | `complete` |
| `answer_relevance` | mean cosine of the question and questions made of the response (sec. 3) | `complete`, `embed` |
| `context_relevance` | share of the documents' sentences that are needed for the answer (sec. 3) | `complete` |
| `context_precision` | average precision of the documents' order, by their use for the reference | `complete`, references |
| `context_recall` | share of the reference's statements that the documents support | `complete`, references |
| `answer_correctness` | 0.75 F1 of the response's and reference's statements, 0.25 cosine of both | the same, `embed` |

An answer that is cut, is not of its schema, or judges fewer statements than it was given fails the row: missing verdicts would
otherwise count for the response. A response without statements, or a row without what a measure needs, is not applicable. Prompts
are this project's own; they ask for text in the row's language.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from trust import config as configs
from trust.ask import Ask
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ragas_measures import MEASURES, Talk
from trust.metrics.ratios import Sums

_KEY = "metrics.ragas"


@dataclass
class RagasConfig:
    """Options of the metric.

    Attributes:
        measures: which of those in the module's table.
        questions: how many are made of a response (`answer_relevance`).
        max_tokens: length of one answer of the language model.
    """

    measures: list[str] = field(default_factory=lambda: ["faithfulness", "context_relevance"])
    questions: int = 3
    max_tokens: int = 1024


class Ragas:
    """The metric (trust.metrics.Metric)."""

    name = "ragas"

    def __init__(self, config: RagasConfig, compat: str) -> None:
        if not config.measures:
            raise ConfigError(f"{_KEY}.measures is empty: choose from {', '.join(MEASURES)}")
        for measure in config.measures:
            configs.one_of(f"{_KEY}.measures", measure, MEASURES)
        if config.questions < 1 or config.max_tokens < 1:
            raise ConfigError(f"{_KEY}: questions and max_tokens are at least 1")
        self._config = config
        needs = {ask for measure in config.measures for ask in MEASURES[measure].asks}
        self.asks = tuple(sorted(needs))
        self.terms = tuple(f"{kind}_{measure}" for measure in config.measures for kind in ("rows", "score"))

    def preflight(self) -> None:
        """Needs nothing but the models."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response by each measure.

        Raises:
            RowError: `judge_cut`, `judge_unreadable`, `judge_incomplete`; or a model could not answer.
        """
        talk = Talk(row, ask, self._config.questions, self._config.max_tokens)
        found = await asyncio.gather(*(MEASURES[measure].score(talk) for measure in self._config.measures))
        terms: dict[str, float] = {}
        values: dict[str, float] = {}
        reasons = []
        for measure, (score, told) in zip(self._config.measures, found, strict=True):
            if score is not None:
                terms |= {f"rows_{measure}": 1.0, f"score_{measure}": score}
                values[measure] = score
            shown = "not applicable" if score is None else f"{score:.2f}"
            reasons.append(("neutral", f"{measure.replace('_', ' ')}: {shown} ({told})."))
        if not values:
            return RowScore(status="na", reason="not_applicable", detail="; ".join(told for _, told in found))
        return RowScore(terms=terms, values=values, trace={"reasons": reasons})

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`ragas_MEASURE`: mean over rows, as a percentage."""
        own = Sums(sums, "na")
        return {
            f"ragas_{measure}": own.mean(f"score_{measure}", f"rows_{measure}", MEASURES[measure].bounds)
            for measure in self._config.measures
        }


METRIC = Ragas
CONFIG = RagasConfig
