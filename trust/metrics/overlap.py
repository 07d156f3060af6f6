"""Words and characters that a response shares with references: BLEU and chrF by sacrebleu, ROUGE by rouge-score.

- **BLEU** (Papineni et al. 2002) and **chrF** (Popović 2015) are of the whole corpus: their counts are summed, and the score is
  made of the sums, so that it does not depend on sharding. BLEU's tokenizer goes by the row's language, since the default one
  makes one word of a Chinese sentence.
- **ROUGE-1, -2, -L, -Lsum** (Lin 2004) are means over rows of precision, recall and F; of several references the one with the
  best F counts. Words are those of rouge-score in English, and runs of letters or digits elsewhere (characters in scripts
  without spaces).

An empty response shares nothing. A row without references is not applicable.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trust import config as configs
from trust.ask import Ask
from trust.ask.lexical import words
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import BIG, Sums
from trust.metrics.texts import AGAINST, references_of
from trust.text.languages import UNDETERMINED, base_language

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
MEASURES = ("bleu", "chrf", *ROUGE)
_TOKENIZERS = ("13a", "intl", "zh", "char", "none")
_BY_LANGUAGE = {"zh": "zh", "ja": "char", "th": "char"} | dict.fromkeys(
    ("ar", "bn", "fa", "hi", "ko", "ru", "te"), "intl"
)
_DEFAULT = "13a"
_ORDERS = 4
_BLEU = (
    *(f"bleu_{kind}{n}" for kind in ("correct", "total") for n in range(1, _ORDERS + 1)),
    "bleu_words",
    "bleu_reference",
)
_CHRF = tuple(
    f"chrf_{n}" for n in range(18)
)  # per order 1 to 6: n-grams of the response, of the reference, common ones


@dataclass
class OverlapConfig:
    """Options of the metric.

    Attributes:
        measures: which of `bleu`, `chrf`, `rouge1`, `rouge2`, `rougeL`, `rougeLsum`.
        against: `references` of the row, or its gold `answers` (every alias is a reference).
        tokenizer: of BLEU (sacrebleu's `13a`, `intl`, `zh`, `char`, `none`); null goes by the row's language.
        stem: whether ROUGE takes the stem of English words (Porter).
    """

    measures: list[str] = field(default_factory=lambda: list(MEASURES))
    against: str = "references"
    tokenizer: str | None = None
    stem: bool = False


class Overlap:
    """The metric (trust.metrics.Metric)."""

    name = "overlap"
    asks: tuple[str, ...] = ()

    def __init__(self, config: OverlapConfig, compat: str) -> None:
        if not config.measures:
            raise ConfigError(f"metrics.overlap.measures is empty: choose from {', '.join(MEASURES)}")
        for measure in config.measures:
            configs.one_of("metrics.overlap.measures", measure, MEASURES)
        configs.one_of("metrics.overlap.against", config.against, AGAINST)
        if config.tokenizer is not None:
            configs.one_of("metrics.overlap.tokenizer", config.tokenizer, _TOKENIZERS)
        self._config = config
        self._rouge = [measure for measure in ROUGE if measure in config.measures]
        self._scorers: dict[Any, Any] = {}
        self.terms = (
            "rows",
            *(_BLEU if "bleu" in config.measures else ()),
            *(_CHRF if "chrf" in config.measures else ()),
            *(f"{measure}_{part}" for measure in self._rouge for part in ("precision", "recall", "f")),
        )

    def preflight(self) -> None:
        """Needs nothing."""

    def notes(self) -> dict[str, str]:
        """sacrebleu's signatures, for summaries."""
        found = {}
        if "bleu" in self._config.measures:
            by_language = ",".join(f"{tokenizer}:{language}" for language, tokenizer in sorted(_BY_LANGUAGE.items()))
            tokenizer = self._config.tokenizer or f"{_DEFAULT}({by_language})"
            found["bleu_signature"] = _signature(self._bleu(_DEFAULT), tokenizer)
        if "chrf" in self._config.measures:
            found["chrf_signature"] = _signature(self._chrf)
        return found

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response; asks nothing."""
        references = references_of(row, self._config.against)
        if not references:
            return RowScore(status="na", reason="no_references", detail=f"the row has no {self._config.against}")
        language = base_language(row.get("language") or UNDETERMINED)
        return await asyncio.to_thread(self._score, row.get("output") or "", references, language)

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """`bleu` and `chrf` of the corpus (0 to 100), `rouge*` as mean F with `_precision` and `_recall` (0 to 100)."""
        own = Sums(sums, "na")
        stats: dict[str, Stat] = {}
        if "bleu" in self._config.measures:
            stats["bleu"] = Stat(self._corpus(own, _BLEU, self._bleu_of), own.rows("rows"))
        if "chrf" in self._config.measures:
            stats["chrf"] = Stat(self._corpus(own, _CHRF, self._chrf_of), own.rows("rows"))
        for measure in self._rouge:
            stats[measure] = own.mean(f"{measure}_f", "rows")
            stats |= {f"{measure}_{part}": own.mean(f"{measure}_{part}", "rows") for part in ("precision", "recall")}
        return stats

    def _score(self, output: str, references: list[str], language: str) -> RowScore:
        terms: dict[str, float] = {"rows": 1.0}
        values: dict[str, float] = {}
        if "bleu" in self._config.measures:
            tokenizer = self._config.tokenizer or _BY_LANGUAGE.get(language, _DEFAULT)
            found = self._bleu(tokenizer).corpus_score([output], [[text] for text in references])
            numbers = (*found.counts, *found.totals, found.sys_len, found.ref_len)
            terms |= {name: number * BIG for name, number in zip(_BLEU, numbers, strict=True)}
            values["bleu"] = self._bleu_of(numbers, effective_order=True) / 100
        if "chrf" in self._config.measures:
            (counts,) = self._chrf._extract_corpus_statistics([output], [[text] for text in references])
            terms |= {name: number * BIG for name, number in zip(_CHRF, counts, strict=True)}
            values["chrf"] = self._chrf_of(counts) / 100
        if self._rouge:
            for measure, score in self._rouge_scorer(language == "en").score_multi(references, output).items():
                parts = {"precision": score.precision, "recall": score.recall, "f": score.fmeasure}
                terms |= {f"{measure}_{part}": float(number) for part, number in parts.items()}
                values[measure] = float(score.fmeasure)
        return RowScore(terms=terms, values=values)

    @staticmethod
    def _corpus(own: Sums, names: Sequence[str], score: Any) -> np.ndarray:
        """The score of each replicate's summed counts; NaN where it has no row."""
        counts = np.rint(np.stack([own[name] for name in names]) / BIG).astype(np.int64).T
        rows = own["rows"]
        return np.array([score(each.tolist()) if n > 0 else np.nan for each, n in zip(counts, rows, strict=True)])

    @staticmethod
    def _bleu_of(counts: Sequence[int], effective_order: bool = False) -> float:
        from sacrebleu.metrics import BLEU

        return BLEU.compute_bleu(
            correct=list(counts[:_ORDERS]),
            total=list(counts[_ORDERS : 2 * _ORDERS]),
            sys_len=counts[-2],
            ref_len=counts[-1],
            smooth_method="exp",
            effective_order=effective_order,
        ).score

    def _chrf_of(self, counts: Sequence[int]) -> float:
        return float(self._chrf._compute_f_score(list(counts)))

    def _bleu(self, tokenizer: str) -> Any:
        from sacrebleu.metrics import BLEU

        if tokenizer not in self._scorers:
            self._scorers[tokenizer] = BLEU(tokenize=tokenizer)
        return self._scorers[tokenizer]

    @cached_property
    def _chrf(self) -> Any:
        from sacrebleu.metrics import CHRF

        return CHRF()

    def _rouge_scorer(self, english: bool) -> Any:
        from rouge_score.rouge_scorer import RougeScorer

        key = ("rouge", english)
        if key not in self._scorers:
            own = {} if english else {"tokenizer": _Words()}
            self._scorers[key] = RougeScorer(self._rouge, use_stemmer=self._config.stem and english, **own)
        return self._scorers[key]


METRIC = Overlap
CONFIG = OverlapConfig


class _Words:
    """rouge-score's own tokenizer drops everything but a to z and digits."""

    def tokenize(self, text: str) -> list[str]:
        return words(text)


def _signature(metric: Any, tokenizer: str | None = None) -> str:
    """sacrebleu's signature, with any number of references, and the tokenizer by language."""
    metric.num_refs = -1
    parts = [part for part in str(metric.get_signature()).split("|") if not part.startswith("nrefs")]
    return "|".join(["nrefs:var", *(f"tok:{tokenizer}" if part.startswith("tok:") else part for part in parts)])
