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
from trust.metrics.ratios import Sums, agreement

_KEY = "metrics.ragas"


@dataclass
class RagasConfig:
    """Options of the metric.

    Attributes:
        measures: which of those in the module's table.
        questions: how many are made of a response (`answer_relevance`).
        max_tokens: length of one answer of the language model.
        samples: how often the model is asked all that a measure needs, at temperature 0.3 where that is more than once; the
            score is their mean, and how far they agree is given too.
    """

    measures: list[str] = field(default_factory=lambda: ["faithfulness", "context_relevance"])
    questions: int = 3
    max_tokens: int = 1024
    samples: int = 1


class Ragas:
    """The metric (trust.metrics.Metric)."""

    name = "ragas"

    def __init__(self, config: RagasConfig, compat: str) -> None:
        if not config.measures:
            raise ConfigError(f"{_KEY}.measures is empty: choose from {', '.join(MEASURES)}")
        for measure in config.measures:
            configs.one_of(f"{_KEY}.measures", measure, MEASURES)
        if min(config.questions, config.max_tokens, config.samples) < 1:
            raise ConfigError(f"{_KEY}: questions, max_tokens and samples are at least 1")
        self._config = config
        needs = {ask for measure in config.measures for ask in MEASURES[measure].asks}
        self.asks = tuple(sorted(needs))
        kinds = ("rows", "score") if config.samples == 1 else ("rows", "score", "paired", "agreement")
        self.terms = tuple(f"{kind}_{measure}" for measure in config.measures for kind in kinds)

    def preflight(self) -> None:
        """Needs nothing but the models."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response by each measure.

        Raises:
            RowError: `judge_cut`, `judge_unreadable`, `judge_incomplete`; or a model could not answer.
        """
        found = await asyncio.gather(*(self._score(row, ask, measure) for measure in self._config.measures))
        terms: dict[str, float] = {}
        values: dict[str, float] = {}
        reasons = []
        for measure, (scores, told) in zip(self._config.measures, found, strict=True):
            score = sum(scores) / len(scores) if scores else None
            if score is not None:
                terms |= {f"rows_{measure}": 1.0, f"score_{measure}": score}
                values[measure] = score
            if (agreed := agreement(scores)) is not None:
                terms |= {f"paired_{measure}": 1.0, f"agreement_{measure}": agreed}
                values[f"{measure}_agreement"] = agreed
            shown = "not applicable" if score is None else f"{score:.2f}"
            reasons.append(("neutral", f"{measure.replace('_', ' ')}: {shown} ({told})."))
        if not any(scores for scores, _ in found):
            return RowScore(status="na", reason="not_applicable", detail="; ".join(told for _, told in found))
        return RowScore(terms=terms, values=values, trace={"reasons": reasons})

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`ragas_MEASURE`: mean over rows, as a percentage; with several samples, `ragas_MEASURE_agreement` too: 100 where
        all of them come to the same."""
        own = Sums(sums, "na")
        stats: dict[str, Stat] = {}
        for measure in self._config.measures:
            stats[f"ragas_{measure}"] = own.mean(f"score_{measure}", f"rows_{measure}", MEASURES[measure].bounds)
            if self._config.samples > 1:
                stats[f"ragas_{measure}_agreement"] = own.mean(f"agreement_{measure}", f"paired_{measure}")
        return stats

    async def _score(self, row: Row, ask: Ask, measure: str) -> tuple[list[float], str]:
        """The scores of the samples in which a measure applies, and what was counted, in words."""
        config = self._config
        draws = [None] if config.samples == 1 else [*range(config.samples)]
        talks = [Talk(row, ask, config.questions, config.max_tokens, draw) for draw in draws]
        found = await asyncio.gather(*(MEASURES[measure].score(talk) for talk in talks))
        told = list(dict.fromkeys(words for _, words in found))
        return [score for score, _ in found if score is not None], "; ".join(told)


METRIC = Ragas
CONFIG = RagasConfig
