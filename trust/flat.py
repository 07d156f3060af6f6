"""Statistics as the flat keys that summaries publish: each number with its interval and count, null where it has none."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from trust import stats
from trust.metrics import Metric, Stat
from trust.sums import by_term

_STATUSES = ("scored", "na", "failed")


def of_metric(metric: Metric, array: np.ndarray, task: str, max_failed: float, why: str) -> dict[str, Any]:
    """What a metric gives out of its summed vectors.

    Args:
        array: sums in fixed point, shape (1 + replicates, terms), as `trust.sums.sum_scores` makes them.
        why: why rates are withheld in any case, in words; empty where they are not.
    """
    sums = by_term(metric, array)
    flat: dict[str, Any] = {f"num_{status}": int(sums[f"rows_{status}"][0]) for status in _STATUSES}
    why = why or withheld(sums, max_failed)
    if why:
        flat["withheld"] = why
    found = metric.final({name: sums[name] for name in metric.terms}, task)
    return flat | numbers(found, int(sums["questions"][0]), why)


def numbers(statistics: Mapping[str, Stat], questions: int, why: str) -> dict[str, Any]:
    """`KEY`, `KEY_low`, `KEY_high` (95 %) and `KEY_n` of each statistic; null is not applicable, or withheld because of `why`.

    Args:
        questions: different questions behind them.
    """
    flat: dict[str, Any] = {}
    for key, stat in statistics.items():
        point = float(stat.value[0])
        known = not why and math.isfinite(point)
        interval = stats.interval(stat, questions) if known else None
        flat[key] = point if known else None
        flat[f"{key}_low"], flat[f"{key}_high"] = interval or (None, None)
        flat[f"{key}_n"] = stat.n
    return flat


def withheld(sums: Mapping[str, np.ndarray], max_failed: float) -> str:
    """Why no rate over these sums is given, in words; empty where they are."""
    rows = sum(int(sums[f"rows_{status}"][0]) for status in _STATUSES)
    failed = int(sums["rows_failed"][0])
    return f"{failed} of {rows} rows failed, more than max_failed={max_failed:g}" if failed > max_failed * rows else ""
