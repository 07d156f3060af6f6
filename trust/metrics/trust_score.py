"""Trust-Score: grounded refusals (F1_GR), answer correctness (F1_AC), grounded citations (F1_GC), and their mean.

Source: arXiv 2409.11242, sec. 3 and App. D; the published evaluator's reading of it is the mode `upstream`.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trust.ask import Ask
from trust.compat import Choices, choices
from trust.errors import ConfigError
from trust.metrics import Row, RowScore, Stat, basic, citations, cm, correctness, em, em5
from trust.metrics.ratios import Sums
from trust.metrics.response import Reading, Rules, read
from trust.text.citations import DEFAULT_STYLES, STYLES
from trust.text.own_phrases import by_language, load
from trust.text.refusals import FLAG, THRESHOLD, Detector
from trust.text.sentences import preflight

_OWN = "refusal_phrases"
_FINAL = {"em": em.final, "em5": em5.final, "cm": cm.final}
F1_AC = {"em": "calib_str_em_f1", "em5": "calib_qampari_em_f1", "cm": "calib_claims_nli_f1"}


@dataclass
class TrustScoreConfig:
    """Options of the metric.

    Attributes:
        at_most_citations: citations a sentence that count, 1 or more; null for all.
        refusal_phrases: your own ways to refuse, beside those of `trust/text/refusals.yaml` (strict): a list for all
            languages, language code -> list, or a YAML file of either (read once, by the job; see `resolve`).
        citation_styles: brackets that hold citations: `square` [1], `lenticular` 【1】, `round` (1) (strict).
        refusal_flag: the sentence that responses are compared with (upstream); null for the published one.
        refusal_threshold: fuzzy ratio above which a response is a refusal, 0 to 100 (upstream); null for 85.
    """

    at_most_citations: int | None = 3
    refusal_phrases: list[str] | dict[str, list[str]] | str | None = None
    citation_styles: list[str] = field(default_factory=lambda: list(DEFAULT_STYLES))
    refusal_flag: str | None = None
    refusal_threshold: int | None = None


class TrustScore:
    """The metric (trust.metrics.Metric) for the tasks em, em5 and cm; a row of task none has no correctness.

    Args:
        config: options.
        compat: `strict` or `upstream`.

    Raises:
        ConfigError: an option is out of range, or does nothing in this mode.
    """

    name = "trust_score"
    asks = ("entails",)
    terms = (*basic.TERMS, *correctness.TERMS, *em5.TERMS, *citations.TERMS)

    def __init__(self, config: TrustScoreConfig, compat: str) -> None:
        self.choices = choices(compat)
        self._rules = rules(config, compat, self.name)

    def preflight(self) -> None:
        """Raises PreflightError where the sentence splitter's data is missing."""
        preflight(self.choices.sentences)

    async def row(self, row: Row, ask: Ask) -> RowScore:
        """Score one response; roles of its asks: `citation_recall`, `citation_precision`, `citation_rest`, `claim`.

        Raises:
            RowError: the row cannot be read, or a judge could not answer.
        """
        reading = read(row, self._rules)
        statements = citations.read(reading, self._rules)
        correct, _ = await asyncio.gather(
            correctness_of(reading, ask, self._rules), citations.judge(reading, statements, ask, self._rules)
        )
        terms, values = basic.score(reading, self.choices)
        cited_terms, cited_values = citations.score(reading, statements, self._rules)
        return RowScore(
            terms=terms | correct.terms | cited_terms,
            values=values | correct.values | cited_values,
            trace=_trace(reading, correct, statements, self.choices),
        )

    def final(self, sums: Mapping[str, np.ndarray], task: str) -> dict[str, Stat]:
        """The published statistics of a task, in the published order; then, in strict mode, what upstream lacks."""
        own = Sums(sums, self.choices.undefined)
        stats = basic.final(own, self.choices)
        if task in _FINAL:
            stats |= _FINAL[task](own, self.choices)
        stats |= citations.final(own, self.choices)
        if task in F1_AC:
            parts = [stats[key].value for key in ("macro_f1", F1_AC[task], "answered_citation_f1")]
            stats["trust_score"] = Stat(np.mean(parts, axis=0), own.rows("rows"))
        if self.choices.empty == "empty":
            stats |= {"empty_num": own.count("empty")} | citations.final_pooled(own)
        return stats


METRIC = TrustScore
CONFIG = TrustScoreConfig


def resolve(options: Mapping[str, Any], read: Callable[[str], bytes], path: str) -> dict[str, Any]:
    """The options with a file of refusal phrases read: what it holds is what the fingerprint and the actors see.

    Raises:
        ConfigError: the file cannot be read, or does not hold phrases.
    """
    phrases = options.get(_OWN)
    return {**options, _OWN: load(phrases, f"{path}.{_OWN}", read)} if isinstance(phrases, str) else dict(options)


@dataclass(frozen=True)
class Correct:
    """How correct a response is.

    Attributes:
        terms, values: as in RowScore.
        found: per gold answer, whether the response holds it; None where that is not known.
        predictions: items of a list answer, for the trace.
    """

    terms: dict[str, float]
    values: dict[str, float]
    found: list[bool] | None
    predictions: list[dict[str, Any]] | None = None


async def correctness_of(reading: Reading, ask: Ask, rules: Rules) -> Correct:
    """Answer correctness by the row's task; of task none nothing is known."""
    choices = rules.choices
    if reading.task == "em5":
        listed = em5.read_list(reading, em5.read_items(reading, rules), choices)
        terms, values = em5.score(reading, listed, choices)
        gold = {reading.normal(alias, choices) for aliases in reading.answers for alias in aliases}
        shown = [{"text": t, "correct": f in gold} for t, f in zip(listed.texts, listed.forms, strict=True)]
        return Correct(terms, values, listed.found, shown)
    if reading.task == "em":
        found = em.found(reading, choices)
    elif reading.task == "cm":
        found = await cm.found(reading, ask, choices)
    else:
        return Correct({}, {}, None)
    return Correct(*correctness.share(reading, found), found)


def _trace(
    reading: Reading, correct: Correct, statements: list[citations.Statement], choices: Choices
) -> dict[str, Any]:
    answers = []
    for index, aliases in enumerate(reading.answers):
        supported = reading.supported[index] if reading.supported is not None else None
        found = bool(correct.found[index]) if correct.found is not None else None
        answers.append({"answer": (aliases or [""])[0], "aliases": aliases, "supported": supported, "found": found})
    trace = reading.traced(choices) | {
        "answers": answers,
        "sentences": [citations.traced(statement) for statement in statements],
    }
    if correct.predictions is not None:
        trace["predictions"] = correct.predictions
    return trace


def rules(config: TrustScoreConfig, compat: str, metric: str) -> Rules:
    """How a metric with these options reads rows.

    Raises:
        ConfigError: an option is out of range, or does nothing in this mode.
    """
    path = f"metrics.{metric}"
    _check(config, compat, path)
    return Rules(
        choices=choices(compat),
        detector=Detector(_own(config.refusal_phrases, path)),
        styles=tuple(config.citation_styles),
        flag=config.refusal_flag or FLAG,
        threshold=THRESHOLD if config.refusal_threshold is None else config.refusal_threshold,
        cap=config.at_most_citations,
    )


def _own(phrases: list[str] | dict[str, list[str]] | str | None, path: str) -> dict[str, list[str]]:
    """Own phrases by language; a file that `resolve` has not read yet holds none."""
    return {} if isinstance(phrases, str) else by_language(phrases, f"{path}.{_OWN}")


def _check(config: TrustScoreConfig, compat: str, path: str) -> None:
    if config.at_most_citations is not None and config.at_most_citations < 1:
        raise ConfigError(f"{path}.at_most_citations={config.at_most_citations}: must be 1 or more, or null")
    if config.refusal_threshold is not None and not 0 <= config.refusal_threshold <= 100:
        raise ConfigError(f"{path}.refusal_threshold={config.refusal_threshold}: must be from 0 to 100")
    if unknown := [style for style in config.citation_styles if style not in STYLES]:
        raise ConfigError(f"{path}.citation_styles={unknown}: known are {', '.join(STYLES)}")
    if not config.citation_styles:
        raise ConfigError(f"{path}.citation_styles is empty: choose from {', '.join(STYLES)}")
    _own(config.refusal_phrases, path)
    default = TrustScoreConfig()
    idle = ("refusal_flag", "refusal_threshold") if compat == "strict" else ("refusal_phrases", "citation_styles")
    if changed := [name for name in idle if getattr(config, name) != getattr(default, name)]:
        other = "upstream" if compat == "strict" else "strict"
        raise ConfigError(f"{path}.{changed[0]} does something only in compat={other}; this is compat={compat}")
