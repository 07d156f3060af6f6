"""Rates by language: the table `rates` of NoMIRACL, and what metrics say over all languages of a run."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from trust import flat, metrics, slices
from trust.evaluate import EvaluateConfig
from trust.metrics import nomiracl
from trust.metrics.ratios import Sums
from trust.runs import Run
from trust.sums import by_term, group_of
from trust.tables import RATES_KEY
from trust.text.languages import base_language

GROUP = ("dataset", "task", "model", "prompt")

_STATUSES = ("rows_scored", "rows_na", "rows_failed")

Group = tuple[str, ...]
Terms = dict[str, np.ndarray]


def over_languages(run: Run, config: EvaluateConfig, why: str) -> dict[Group, dict[str, Any]]:
    """Dataset, task, model and prompt -> the flat numbers of every metric that has some over languages.

    Args:
        why: why rates are withheld in any case, in words.
    """
    found: dict[Group, dict[str, Any]] = {}
    for metric in metrics.build(config.metrics, config.compat):
        if not hasattr(metric, "over_languages"):
            continue
        for group, by_language in _by_language(run, metric).items():
            questions = sum(int(sums["questions"][0]) for sums in by_language.values())
            together = {name: np.sum([sums[name] for sums in by_language.values()], axis=0) for name in _STATUSES}
            lost = why or flat.withheld(together, config.max_failed)
            terms = {language: {name: sums[name] for name in metric.terms} for language, sums in by_language.items()}
            numbers = flat.numbers(metric.over_languages(terms), questions, lost)
            found[group] = found.get(group, {}) | numbers
    return found


def rates(run: Run, config: EvaluateConfig, why: str = "") -> list[dict[str, Any]]:
    """The contingency table and the rates of NoMIRACL: a row a data set, prompt, language, subset and model; none where that
    metric was not asked for.

    `n` counts scored rows, `n_missing` those that another model has in the same place and this one has not, `n_failed` failed
    rows of the language (of both subsets: a failed row does not say which). `hallucination_rate_*` belong to the subset
    non_relevant and `error_rate_*` to relevant (null in the other); each with its denominator's name, see
    `trust.metrics.nomiracl`. `corpus_passages` is the size of the language's Wikipedia; null where it is not known.

    Args:
        why: why rates are withheld in any case, in words.
    """
    made = [metric for metric in metrics.build(config.metrics, config.compat) if metric.name == nomiracl.METRIC.name]
    if not made:
        return []
    rows: list[dict[str, Any]] = []
    for group, by_language in _by_language(run, made[0]).items():
        dataset, _, model, prompt = group
        for language, sums in by_language.items():
            for subset in nomiracl.SUBSETS:
                key = {"dataset": dataset, "prompt": prompt, "language": language, "subset": subset, "model": model}
                rows.append(key | _row(sums, subset, config.max_failed, why))
    return list(_with_missing(rows))


def _row(sums: Terms, subset: str, max_failed: float, why: str) -> dict[str, Any]:
    own = Sums({name: sums[name] for name in nomiracl.METRIC.terms}, "na")
    lost = why or flat.withheld(sums, max_failed)
    counts = {f"n_{said}": own.rows(f"{subset}_{said}") for said in nomiracl.SAID}
    counts |= {"n_failed": int(sums["rows_failed"][0])}
    found = flat.numbers(nomiracl.subset_rates(own, subset), int(sums["questions"][0]), lost)
    told = {key.removeprefix(f"{subset}_"): value for key, value in found.items() if not key.endswith("_n")}
    return {"n": own.rows(f"{subset}_rows")} | counts | told | ({"withheld": lost} if lost else {})


def _with_missing(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows, and one for each model without any in a place where others have some."""
    most: dict[Group, int] = defaultdict(int)
    models: dict[Group, set[str]] = defaultdict(set)
    by_key = {tuple(row[name] for name in RATES_KEY): row for row in rows}
    for row in rows:
        place = tuple(row[name] for name in RATES_KEY[:-1])
        most[place] = max(most[place], row["n"])
        models[place[:2]].add(row["model"])
    sizes, unverified = nomiracl.corpus_sizes(), nomiracl.unverified_sizes()
    for place, n in most.items():
        language = base_language(place[2])
        for model in sorted(models[place[:2]]) if n else ():
            row = by_key.get((*place, model), {"n": 0, **{f"n_{said}": 0 for said in nomiracl.SAID}, "n_failed": 0})
            known = {
                "n_missing": n - row["n"],
                "corpus_passages": sizes.get(language),
                "corpus_passages_verified": language not in unverified if language in sizes else None,
            }
            key = dict(zip(RATES_KEY, (*place, model), strict=True))
            yield key | row | known


def _by_language(run: Run, metric: metrics.Metric) -> dict[Group, dict[str, Terms]]:
    """Group -> language -> the metric's terms and counts."""
    found: dict[Group, dict[str, Terms]] = defaultdict(dict)
    for name, array in run.each_sum("evaluate", lambda name: group_of(name)["slice"] == slices.LANGUAGE):
        group = group_of(name)
        if group["metric"] == metric.name:
            found[tuple(group[key] for key in GROUP)][group["slice_value"]] = by_term(metric, array)
    return found
