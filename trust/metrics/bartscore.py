"""BARTScore (Yuan et al., NeurIPS 2021, arXiv 2106.11520): how likely an encoder-decoder finds one text behind another, as the
mean log-probability of a token (eq. 2, equal weights). Below 0; higher is better.

| name | from | to | needs |
| --- | --- | --- | --- |
| `faithfulness` | source (`context.source`, else the documents) | response | a source |
| `precision` | reference | response | references |
| `recall` | response | reference | references |
| `f` | arithmetic mean of the last two | | references |

Of several references the mean is taken (as published for summaries) or the best (for text from data). A variant whose texts the
row lacks does not apply.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from trust import config as configs
from trust.ask import Ask
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import Sums
from trust.metrics.texts import AGAINST, references_of, source_of

VARIANTS = ("faithfulness", "precision", "recall", "f")
_OVER: dict[str, Callable[[list[float]], float]] = {"mean": fmean, "max": max}

_KEY = "metrics.bartscore"


@dataclass
class BartscoreConfig:
    """Options of the metric.

    Attributes:
        variants: which of those in the module's table.
        against: `references` of the row, or its gold `answers` (every alias is a reference).
        over: what is taken of several references, `mean` or `max`.
    """

    variants: list[str] = field(default_factory=lambda: ["faithfulness"])
    against: str = "references"
    over: str = "mean"


class Bartscore:
    """The metric (trust.metrics.Metric)."""

    name = "bartscore"
    asks = ("logprob",)

    def __init__(self, config: BartscoreConfig, compat: str) -> None:
        if not config.variants:
            raise ConfigError(f"{_KEY}.variants is empty: choose from {', '.join(VARIANTS)}")
        for variant in config.variants:
            configs.one_of(f"{_KEY}.variants", variant, VARIANTS)
        configs.one_of(f"{_KEY}.against", config.against, AGAINST)
        configs.one_of(f"{_KEY}.over", config.over, _OVER)
        self._variants = config.variants
        self._against, self._over = config.against, _OVER[config.over]
        self.terms = tuple(f"{kind}_{variant}" for variant in config.variants for kind in ("rows", "score"))

    def preflight(self) -> None:
        """Needs nothing but the model."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response.

        Raises:
            RowError: the model could not answer.
        """
        output = row.get("output") or ""
        if not output.strip():
            return RowScore(status="na", reason="empty_output", detail="there is no response to score")
        source, references = source_of(row), references_of(row, self._against)
        values: dict[str, float] = {}
        if "faithfulness" in self._variants and source:
            values["bartscore_faithfulness"] = (await ask.logprob(source, output, role="faithfulness")).mean
        values |= await self._by_references(output, references, ask)
        if not values:
            return RowScore(
                status="na", reason="nothing_to_compare", detail="the row has neither source nor references to score by"
            )
        terms: dict[str, float] = {}
        for key, value in values.items():
            variant = key.removeprefix("bartscore_")
            terms |= {f"rows_{variant}": 1.0, f"score_{variant}": value}
        reasons = [("neutral", f"{key.removeprefix('bartscore_')}: {value:.3f}.") for key, value in values.items()]
        return RowScore(terms=terms, values=values, trace={"reasons": reasons})

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`bartscore_VARIANT`: mean over rows of the mean log-probability of a token."""
        own = Sums(sums, "na")
        return {
            f"bartscore_{variant}": Stat(
                own.percent(own[f"score_{variant}"], own[f"rows_{variant}"]) / 100,
                own.rows(f"rows_{variant}"),
                None,
                None,
            )
            for variant in self._variants
        }

    async def _by_references(self, output: str, references: list[str], ask: Ask) -> dict[str, float]:
        """The variants that compare with references; F is that of each reference, before one is chosen."""
        wanted = [variant for variant in self._variants if variant != "faithfulness"]
        if not wanted or not references:
            return {}
        ways = {"precision": lambda text: (text, output), "recall": lambda text: (output, text)}
        needed = [way for way in ways if way in wanted or "f" in wanted]
        asked = [ask.logprob(*ways[way](text), role=way) for way in needed for text in references]
        found = [answer.mean for answer in await asyncio.gather(*asked)]
        each = {way: found[i * len(references) : (i + 1) * len(references)] for i, way in enumerate(needed)}
        if "f" in wanted:
            each["f"] = [sum(pair) / 2 for pair in zip(each["precision"], each["recall"], strict=True)]
        return {f"bartscore_{variant}": self._over(each[variant]) for variant in wanted}


METRIC = Bartscore
CONFIG = BartscoreConfig
