"""What follows from counts alone, computed by the metric's own code: whether a printed row can be right, and the scores of a
model that always answers or always refuses."""

from collections.abc import Mapping

import numpy as np

from trust import metrics
from trust.compat import choices
from trust.metrics import basic
from trust.metrics.ratios import Sums
from trust.metrics.trust_score import F1_AC, TrustScore, TrustScoreConfig
from trust.reproduce.published import Dataset

REFUSE, ANSWER = "always_refuse", "always_answer"

_HALF = 0.005 + 1e-6  # of the last printed digit


def keys(task: str) -> dict[str, str]:
    """Column of a table -> published key of the summary, for a task."""
    return {
        "answered_ratio": "answered_ratio",
        "f1_ac": F1_AC[task],
        "f1_gr": "macro_f1",
        "f1_gc": "answered_citation_f1",
        "trust_score": "trust_score",
    }


def always(how: str, data: Dataset, compat: str) -> dict[str, float | None]:
    """The scores of a model that always refuses, or always answers, from the counts of a data set.

    Args:
        how: `always_refuse` or `always_answer`.

    Returns:
        Column -> score (0-100), None where it is not applicable, or depends on what is answered.
    """
    counted = _counted(data)
    answered = counted[1] if how == ANSWER else 0
    overlap = counted[0] if how == ANSWER else 0
    terms = {name: np.zeros(1) for name in TrustScore.terms}
    terms |= _terms(answered, np.array([overlap]), counted)
    # A refusal earns nothing by its content, so all of its terms are known.
    terms |= {"ac_answerable_rows": np.array([float(counted[0])]), "ac_rows": np.array([float(counted[1])])}
    stats = TrustScore(TrustScoreConfig(), compat).final(terms, data.task)
    unknown = {"f1_ac", "f1_gc", "trust_score"} if how == ANSWER else set()
    return {column: None if column in unknown else _number(stats[key]) for column, key in keys(data.task).items()}


def overlaps(answered_ratio: float, f1_gr: float, data: Dataset) -> list[tuple[int, int]]:
    """The (answered, answered and answerable) counts that give both printed numbers to their last digit; empty where there are
    none."""
    answerable, questions = _counted(data)
    found = []
    for answered in range(questions + 1):
        if abs(100.0 * answered / questions - answered_ratio) > _HALF:
            continue
        both = np.arange(max(0, answered - (questions - answerable)), min(answered, answerable) + 1)
        sums = Sums(_terms(answered, both, (answerable, questions)), choices("upstream").undefined)
        scores = basic.final(sums, choices("upstream"))["macro_f1"].value
        found += [(answered, int(n)) for n in both[np.abs(scores - f1_gr) <= _HALF]]
    return found


def problem(printed: Mapping[str, float | None], data: Dataset) -> str:
    """Why a printed row cannot be right, in words; empty where its arithmetic holds, or too little is printed to tell."""
    found = []
    parts = [printed[column] for column in ("f1_ac", "f1_gr", "f1_gc")]
    known = [part for part in parts if part is not None]
    total = printed["trust_score"]
    if total is not None and len(known) == len(parts):
        mean = sum(known) / len(known)
        if abs(mean - total) > 2 * _HALF:
            found.append(f"TRUST is {total:.2f}, the mean of its parts {mean:.2f}")
    ratio, refusals = printed["answered_ratio"], printed["f1_gr"]
    if data.questions and ratio is not None and refusals is not None and not overlaps(ratio, refusals, data):
        found.append(f"no number of right answers gives F1_GR {refusals:.2f} at AR {ratio:.2f}")
    return "; ".join(found)


def _counted(data: Dataset) -> tuple[int, int]:
    if data.answerable is None or data.questions is None:
        raise ValueError("the counts of this data set are not known")
    return data.answerable, data.questions


def _terms(answered: int, both: np.ndarray, counted: tuple[int, int]) -> dict[str, np.ndarray]:
    """The terms of `trust.metrics.basic`, for each number of questions that are answered and answerable."""
    answerable, questions = counted
    values = {
        "rows": questions,
        "known": questions,
        "answered": answered,
        "known_answered": answered,
        "known_refused": questions - answered,
        "answerable": answerable,
        "unanswerable": questions - answerable,
        "answered_answerable": both,
        "refused_unanswerable": questions - answerable - (answered - both),
    }
    return {name: np.full(both.shape, values.get(name, 0), dtype=float) for name in basic.TERMS}


def _number(stat: metrics.Stat) -> float | None:
    value = float(stat.value[0])
    return value if np.isfinite(value) else None
