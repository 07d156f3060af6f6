"""Which of two responses a language model prefers, asked in both orders, since models favour a place (Zheng et al. 2023, arXiv
2306.05685, sec. 3.4: a win counts only where both orders agree).

The other response is the row's first reference, or a column of the user's own (`metrics.pairwise.other=meta.NAME`), where a file
holds the outputs of two systems side by side.

| verdicts in the two orders | score |
| --- | --- |
| the response both times | 1 |
| the other both times | 0 |
| a tie at least once, or each order another | 0.5 |
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trust import config as configs
from trust.ask import Ask
from trust.errors import ConfigError, RowError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import Sums
from trust.metrics.texts import text_of

_KEY = "metrics.pairwise"
_SHOWN = ("question", "docs", "source", "history", "fact")
_TITLES = {"question": "Question", "docs": "Documents", "source": "Source", "history": "Conversation", "fact": "Fact"}
_CHOICES = ("A", "B", "tie")
_SCHEMA = {
    "type": "object",
    "properties": {"better": {"type": "string", "enum": list(_CHOICES)}},
    "required": ["better"],
    "additionalProperties": False,
}
_META = "meta."


@dataclass
class PairwiseConfig:
    """Options of the metric.

    Attributes:
        criterion: what makes one the better response, in words.
        other: what the response is compared with: `references` (the row's first), or `meta.NAME`, an own column.
        max_tokens: length of the model's answer.
    """

    criterion: str = "It answers the question rightly and fully, and says nothing that the documents do not support."
    other: str = "references"
    max_tokens: int = 64


class Pairwise:
    """The metric (trust.metrics.Metric)."""

    name = "pairwise"
    asks = ("complete",)
    terms = ("rows", "score", "won", "lost", "consistent")

    def __init__(self, config: PairwiseConfig, compat: str) -> None:
        if not config.criterion.strip():
            raise ConfigError(f"{_KEY}.criterion is empty: say in words what makes one the better response")
        if config.max_tokens < 1:
            raise ConfigError(f"{_KEY}.max_tokens={config.max_tokens}: must be at least 1")
        if not config.other.removeprefix(_META) or not config.other.startswith(_META):
            configs.one_of(f"{_KEY}.other", config.other, ("references", "meta.NAME"))
        self._config = config

    def preflight(self) -> None:
        """Needs nothing but the model."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Compare one response with the other, in both orders. Equal texts are a tie, and nobody is asked.

        Raises:
            RowError: `judge_cut`, `judge_unreadable`; or the model could not answer.
        """
        output, other = (row.get("output") or "").strip(), self._other(row)
        if not output or not other:
            missing = "response" if not output else self._config.other
            return RowScore(status="na", reason="nothing_to_compare", detail=f"the row has no {missing}")
        if output == other:
            first = second = "tie"
        else:
            first, second = await asyncio.gather(self._ask(row, output, other, ask), self._ask(row, other, output, ask))
        places = {"A": 1, "B": -1, "tie": 0}
        for_it = (places[first], -places[second])
        won, lost = float(min(for_it) == 1), float(max(for_it) == -1)
        score = 1.0 if won else 0.0 if lost else 0.5
        consistent = float(for_it[0] == for_it[1])
        told = f"Shown first, the judge says {first}; shown second, {second}."
        return RowScore(
            terms={"rows": 1.0, "score": score, "won": won, "lost": lost, "consistent": consistent},
            values={"pairwise": score, "pairwise_consistent": consistent},
            trace={"reasons": [("neutral", told)]},
        )

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`pairwise_win_rate` (ties half), `pairwise_won`, `pairwise_lost`, and `pairwise_consistency`: rows in which both orders
        say the same, in percent."""
        own = Sums(sums, "na")
        return {
            "pairwise_win_rate": own.mean("score", "rows"),
            "pairwise_won": own.rate("won", "rows"),
            "pairwise_lost": own.rate("lost", "rows"),
            "pairwise_consistency": own.rate("consistent", "rows"),
        }

    def _other(self, row: Row) -> str:
        if self._config.other.startswith(_META):
            found = (row.get("meta") or {}).get(self._config.other.removeprefix(_META))
        else:
            found = next((text for text in row.get("references") or [] if text and text.strip()), None)
        return (found or "").strip()

    async def _ask(self, row: Row, first: str, second: str, ask: Ask) -> str:
        shown = [f"{_TITLES[name]}:\n{text}" for name in _SHOWN if (text := text_of(row, name))]
        prompt = "\n\n".join(
            [
                "Two systems responded to the same request. Say which response is the better one.",
                f"What makes a response better: {self._config.criterion.strip()}",
                *shown,
                f"Response A:\n{first}",
                f"Response B:\n{second}",
                'Length, style and order do not count. Reply with JSON: {"better": "A"}, {"better": "B"}, or {"better": "tie"} '
                "where neither is better.",
            ]
        )
        sampling = {"temperature": 0.0, "top_p": 1.0, "max_tokens": self._config.max_tokens, "seed": 0}
        answer = await ask.complete([{"role": "user", "content": prompt}], sampling, _SCHEMA, role="pairwise")
        if answer.finish_reason == "length":
            raise RowError("judge_cut", f"the answer has more tokens than {_KEY}.max_tokens={self._config.max_tokens}")
        try:
            found = json.loads(answer.text)
            better = found["better"]
        except (ValueError, TypeError, KeyError) as error:
            raise RowError("judge_unreadable", f"not the JSON that was asked for: {answer.text[:80]!r}") from error
        if better not in _CHOICES:
            raise RowError("judge_unreadable", f"neither A, B nor tie: {answer.text[:80]!r}")
        return str(better)


METRIC = Pairwise
CONFIG = PairwiseConfig
