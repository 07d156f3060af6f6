"""NoMIRACL (arXiv 2312.11361): does a model say that an answer is present where none is, or miss one that is there?

Each row has a `subset` (a column of the data): in `non_relevant` no passage answers the question and "Yes, answer is present"
is a hallucination; in `relevant` one does and "I don't know" is an error. A response that says neither is invalid.

Three denominators stand in print for the two rates, and all are given:

| name | part / whole | where |
| --- | --- | --- |
| `KEY_of_valid` | wrong / (wrong + right) | the paper's formulas, FP / (FP + TN) and FN / (FN + TP) |
| `KEY_of_all` | wrong / all | the released code |
| `KEY_invalid_wrong` | (wrong + invalid) / all | what the published averages fit: 100 - accuracy |

KEY is `hallucination_rate` or `error_rate`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
import yaml

from trust.ask import Ask
from trust.compat import choices
from trust.errors import RowError
from trust.metrics import Row, RowScore, Stat
from trust.metrics.ratios import Sums
from trust.text.languages import base_language
from trust.text.verdicts import Verdict, explicit_verdict, published_verdict

SUBSETS = ("relevant", "non_relevant")
SAID = ("answer_present", "i_dont_know", "invalid")
RATE = {"relevant": "error_rate", "non_relevant": "hallucination_rate"}
DENOMINATORS = ("of_valid", "of_all", "invalid_wrong")
_RIGHT = {"relevant": "answer_present", "non_relevant": "i_dont_know"}
_WRONG = {"relevant": "i_dont_know", "non_relevant": "answer_present"}

_LEAST_LANGUAGES = 4  # for a rank correlation to say anything


@dataclass
class NoMiraclConfig:
    """The metric has no options: the mode (`compat`) says how verdicts are read."""


class NoMiracl:
    """The metric (trust.metrics.Metric).

    Args:
        compat: `upstream` reads verdicts by the released rules; `strict` takes the last explicit one (see
            `trust.text.verdicts`). The rates are the same in both: the released code prints 0 for a model that is always
            wrong, which no mode does here.
    """

    name = "nomiracl"
    asks: tuple[str, ...] = ()
    terms = ("rows", *(f"{subset}_{said}" for subset in SUBSETS for said in ("rows", *SAID)))

    def __init__(self, config: NoMiraclConfig, compat: str) -> None:
        self.choices = choices(compat)

    def preflight(self) -> None:
        """Needs nothing."""

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response; asks nothing.

        Raises:
            RowError: `no_subset`: the row does not say whether its passages hold the answer.
        """
        subset = (row.get("meta") or {}).get("subset")
        if subset not in SUBSETS:
            raise RowError(
                "no_subset", f"the column `subset` is {subset!r}; it must be one of {', '.join(SUBSETS)}", "subset"
            )
        text = row.get("output") or ""
        strict = self.choices.refusals == "phrases"
        verdict = explicit_verdict(text, row.get("language") or "und") if strict else published_verdict(text)
        return RowScore(
            terms={"rows": 1.0, f"{subset}_rows": 1.0, f"{subset}_{verdict.said}": 1.0},
            values={
                "answerable": float(subset == "relevant"),
                "answered": float(verdict.said == "answer_present"),
                "refused": float(verdict.said == "i_dont_know"),
                "invalid": float(verdict.said == "invalid"),
            },
            trace={
                "subset": subset,
                "said": verdict.said,
                "phrase": verdict.phrase,
                "reasons": [_why(subset, verdict)],
            },
        )

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """The contingency table and all rates, as percentages; a subset without rows is not applicable."""
        own = Sums(sums, "na")
        stats: dict[str, Stat] = {}
        for subset in SUBSETS:
            stats |= {f"num_{subset}_{said}": own.count(f"{subset}_{said}") for said in SAID}
        for subset in SUBSETS:
            stats |= subset_rates(own, subset)
        return stats

    def over_languages(self, by_language: Mapping[str, Mapping[str, np.ndarray]]) -> dict[str, Stat]:
        """Means of the languages' rates, each language with the same weight (`macro_KEY`), and Spearman's rank correlation of
        each rate with the size of the language's Wikipedia in passages (`KEY_corpus_size_rho`), where four or more languages
        have both.

        Args:
            by_language: language code -> term -> sums, shape (1 + replicates,).
        """
        found: dict[str, dict[str, Stat]] = {}
        for language, sums in by_language.items():
            own = Sums(sums, "na")
            for subset in SUBSETS:
                if own.rows(f"{subset}_rows"):
                    for key, stat in subset_rates(own, subset).items():
                        found.setdefault(key, {})[language] = stat
        stats: dict[str, Stat] = {}
        for key, rates in found.items():
            values = np.stack([stat.value for stat in rates.values()])
            stats[f"macro_{key}"] = Stat(values.mean(axis=0), sum(stat.n for stat in rates.values()))
        sizes = corpus_sizes()
        for subset in SUBSETS:
            for key in (f"{RATE[subset]}_{of}" for of in DENOMINATORS):
                rates = {name: stat for name, stat in found.get(key, {}).items() if base_language(name) in sizes}
                if len(rates) >= _LEAST_LANGUAGES:
                    passages = np.array([sizes[base_language(name)] for name in rates])
                    rho = _spearman(passages, np.stack([stat.value for stat in rates.values()]))
                    stats[f"{key}_corpus_size_rho"] = Stat(rho, len(rates), None, (-1.0, 1.0))
        return stats


METRIC = NoMiracl
CONFIG = NoMiraclConfig


def _why(subset: str, verdict: Verdict) -> tuple[str, str]:
    """How the row was read, graded, for the report."""
    held = "A passage holds the answer" if subset == "relevant" else "No passage holds the answer"
    words = f" (“{verdict.phrase}”)" if verdict.phrase else ""
    if verdict.said == "invalid":
        return "neutral", f"{held}; what the response says of it cannot be read{words}."
    right = verdict.said == _RIGHT[subset]
    told = "that the answer is present" if verdict.said == "answer_present" else "that it does not know"
    return "good" if right else "bad", f"{held}, {'and' if right else 'but'} the response says {told}{words}."


def subset_rates(own: Sums, subset: str) -> dict[str, Stat]:
    """The rates of one subset."""
    rows, right, wrong, invalid = (
        own[f"{subset}_{name}"] for name in ("rows", _RIGHT[subset], _WRONG[subset], "invalid")
    )
    key, counts = RATE[subset], {name: own.rows(f"{subset}_{name}") for name in ("rows", *SAID)}
    n, bad, none = counts["rows"], counts[_WRONG[subset]], counts["invalid"]

    def rate(part: np.ndarray, whole: np.ndarray, successes: int, of: int) -> Stat:
        return Stat(own.percent(part, whole), of, successes)

    return {
        f"{key}_of_valid": rate(wrong, wrong + right, bad, n - none),
        f"{key}_of_all": rate(wrong, rows, bad, n),
        f"{key}_invalid_wrong": rate(wrong + invalid, rows, bad + none, n),
        f"{subset}_accuracy": rate(right, rows, n - bad - none, n),
        f"{subset}_invalid_rate": rate(invalid, rows, none, n),
    }


@cache
def corpus_sizes() -> dict[str, int]:
    """Language code -> passages of its Wikipedia in MIRACL; languages whose size is unverified too."""
    return {language: size for sizes in _corpus().values() for language, size in sizes.items()}


def unverified_sizes() -> list[str]:
    """Those of the languages whose size has no source at hand."""
    return sorted(_corpus()["unverified_passages"])


@cache
def _corpus() -> dict[str, dict[str, int]]:
    text = resources.files("trust.metrics").joinpath("nomiracl_corpus.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def _spearman(sizes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Spearman's rho of sizes (L,) with each column of values (L, 1 + replicates); NaN where a column is constant."""
    from scipy.stats import rankdata

    x = rankdata(sizes)
    y = rankdata(values, axis=0, nan_policy="propagate")
    x, y = x - x.mean(), y - y.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (x @ y) / np.sqrt((x @ x) * (y * y).sum(axis=0))
