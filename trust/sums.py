"""Sums of scores by group and slice: what crosses to the driver instead of rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from trust import stats
from trust.metrics import Metric

WHOLE = ("metric", "dataset", "task", "model", "prompt")
GROUP = (*WHOLE, "slice", "slice_value")  # the last two are empty for all rows of a group


def sum_scores(
    scores: Iterable[Mapping[str, Any]], metrics: Sequence[Metric], replicates: int
) -> dict[str, np.ndarray]:
    """Per group, and per slice of each: terms and outcome counts, weighted for every bootstrap replicate; exact in fixed
    point.

    Slices are not crossed: there are as many arrays as the slice columns have values, whatever the number of columns.

    Args:
        scores: rows of the table scores.
        replicates: see `trust.stats.question_weights`.

    Returns:
        Name (`group_of` reads it) -> int64 of shape (1 + replicates, terms), in the order of `term_names`.
    """
    by_name = {metric.name: metric for metric in metrics}
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for score in scores:
        groups.setdefault(tuple(score[key] for key in WHOLE), []).append(score)
    sums = {}
    for group, members in groups.items():
        matrix = _terms(members, by_name[group[0]])
        weights = stats.question_weights([score["sample_id"] for score in members], replicates)
        slices = {("", ""): [*range(len(members))]}
        for i, score in enumerate(members):
            for sliced in (score["slices"] or {}).items():
                slices.setdefault(sliced, []).append(i)
        for sliced, chosen in slices.items():
            sums[name_of((*group, *sliced))] = stats.sum_terms(matrix[chosen], weights[chosen])
    return sums


def term_names(metric: Metric) -> list[str]:
    """The order of a metric's summed vector: its own terms, then counts of outcomes, of rows in languages that the judge is
    not for, and of questions."""
    return [*metric.terms, "rows_scored", "rows_na", "rows_failed", "rows_outside", "questions"]


def by_term(metric: Metric, sums: np.ndarray) -> dict[str, np.ndarray]:
    """Summed vectors, in fixed point, as an array of floats a term, shape (1 + replicates,)."""
    return dict(zip(term_names(metric), stats.from_fixed(sums).T, strict=True))


def group_of(name: str) -> dict[str, str]:
    """The group that a name in a unit's sums stands for."""
    return dict(zip(GROUP, group_named(name), strict=True))


def name_of(group: Sequence[str]) -> str:
    """A group of rows as the name of its sums, which a file can have."""
    return quote(json.dumps(group), safe="")


def group_named(name: str) -> list[str]:
    """What `name_of` was given."""
    return list(json.loads(unquote(name)))


def _terms(scores: Sequence[Mapping[str, Any]], metric: Metric) -> np.ndarray:
    """A row a score, a column a term."""
    column = {name: i for i, name in enumerate(term_names(metric))}
    matrix = np.zeros((len(scores), len(column)))
    for i, score in enumerate(scores):
        extra = {f"rows_{score['status']}": 1.0, "questions": float(score["draw"] == 0)}
        extra["rows_outside"] = float(score["outside_judge_languages"])
        for name, value in ((score.get("terms") or {}) | extra).items():
            matrix[i, column[name]] = value
    return matrix
