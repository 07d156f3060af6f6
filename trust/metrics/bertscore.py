"""BERTScore (Zhang et al., ICLR 2020, arXiv 1904.09675): how far the tokens of response and reference resemble one another, each
by its best match in the other text (eqs. 1-3), all tokens alike or weighted by idf.

A token's idf is log((M + 1) / (m + 1)) for M references in the run, m of them with the token (sec. 3). Counting them is a pass of
its own over all rows, before any is scored.

The tokens that a tokenizer adds weigh nothing, but may be a best match, as published. Of several references the best counts, for
precision, recall and F each. A response without a word has 0. With a `baseline` each of the three is rescaled by itself (sec. 3),
so F is no longer the harmonic mean.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trust import config as configs
from trust.ask import Ask, Embedding
from trust.errors import ConfigError, RowError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import Sums, harmonic
from trust.metrics.texts import AGAINST, references_of

_KEY = "metrics.bertscore"
_PARTS = ("precision", "recall", "f")


@dataclass
class BertscoreConfig:
    """Options of the metric.

    Attributes:
        against: `references` of the row, or its gold `answers` (every alias is a reference).
        baseline: what precision, recall and F of unrelated texts are for model and layer, below 1; null does not rescale.
        idf: whether rare tokens weigh more.
    """

    against: str = "references"
    baseline: list[float] | None = None
    idf: bool = False


class Bertscore:
    """The metric (trust.metrics.Metric; CountingMetric where `idf`)."""

    name = "bertscore"
    asks = ("embed",)
    terms = ("rows", *_PARTS)

    def __init__(self, config: BertscoreConfig, compat: str) -> None:
        if config.baseline is not None and (len(config.baseline) != len(_PARTS) or max(config.baseline) >= 1):
            raise ConfigError(f"{_KEY}.baseline={config.baseline}: three numbers below 1, for {', '.join(_PARTS)}")
        configs.one_of(f"{_KEY}.against", config.against, AGAINST)
        self._against, self._baseline = config.against, config.baseline
        self.wants_counts = config.idf
        self._idf: np.ndarray | None = None

    def preflight(self) -> None:
        """Needs nothing but the model."""

    def notes(self) -> dict[str, str]:
        """Whether numbers are rescaled, for summaries."""
        baseline = "none" if self._baseline is None else ", ".join(map(str, self._baseline))
        return {"bertscore_baseline": baseline, "bertscore_idf": "of the references" if self.wants_counts else "none"}

    def counted(self, row: Row) -> list[str]:
        """The row's texts in which tokens are counted."""
        return references_of(row, self._against)

    def take_counts(self, texts: int, holding: np.ndarray) -> None:
        """Weighs tokens by these counts from now on.

        Args:
            texts: how many there are.
            holding: of them hold a token, by its id, shape (vocabulary,).
        """
        self._idf = np.log((texts + 1) / (holding + 1))

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response.

        Raises:
            RowError: `no_token_vectors`; or the model could not answer.
        """
        references = references_of(row, self._against)
        if not references:
            return RowScore(status="na", reason="no_references", detail=f"the row has no {self._against}")
        response, *others = await asyncio.gather(*(ask.embed(text) for text in [row.get("output") or "", *references]))
        compared = [compare(response, other, self._idf) for other in others]
        known = [parts for parts in compared if parts is not None]
        if not known:
            return RowScore(
                status="na", reason="no_weight", detail="every token stands in all references, so none weighs"
            )
        found = np.max(known, axis=0)
        if self._baseline is not None:
            base = np.array(self._baseline)
            found = (found - base) / (1 - base)
        values = {f"bertscore_{part}": float(value) for part, value in zip(_PARTS, found, strict=True)}
        told = ", ".join(f"{part} {value:.3f}" for part, value in zip(_PARTS, found, strict=True))
        cut = (
            " The text was too long for the model and was cut." if any(e.truncated for e in (response, *others)) else ""
        )
        return RowScore(
            terms={"rows": 1.0} | dict(zip(_PARTS, map(float, found), strict=True)),
            values=values,
            trace={"reasons": [("neutral", f"{told}.{cut}")]},
        )

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`bertscore_precision`, `bertscore_recall`, `bertscore_f`: means over rows, as percentages."""
        own = Sums(sums, "na")
        bounds = (-100.0, 100.0) if self._baseline is None else None
        return {f"bertscore_{part}": own.mean(part, "rows", bounds) for part in _PARTS}


METRIC = Bertscore
CONFIG = BertscoreConfig


def compare(
    response: Embedding, reference: Embedding, idf: np.ndarray | None = None
) -> tuple[float, float, float] | None:
    """Precision, recall and F (eqs. 1-3); zeros where one of the texts has no token of its own, None where none of one's weighs.

    Args:
        idf: weight of a token by its id, shape (vocabulary,); None weighs all alike.

    Raises:
        RowError: `no_token_vectors`: the backend gives vectors of whole texts alone.
    """
    vectors = []
    weights = []
    for text in (response, reference):
        if text.tokens is None or text.special is None or text.ids is None:
            raise RowError(
                "no_token_vectors", "bertscore compares tokens; take a backend that gives their vectors", "judge/embed"
            )
        vectors.append(text.tokens)
        own = ~text.special
        if not own.any():
            return 0.0, 0.0, 0.0
        weights.append(own * (1.0 if idf is None else idf[text.ids]))
    if not all(weight.sum() > 0 for weight in weights):
        return None
    likeness = vectors[0] @ vectors[1].T  # shape (tokens of the response, tokens of the reference)
    precision = float(np.average(likeness.max(axis=1), weights=weights[0]))
    recall = float(np.average(likeness.max(axis=0), weights=weights[1]))
    return precision, recall, harmonic(precision, recall)
