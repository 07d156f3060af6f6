"""Sums that any sharding adds up to the last digit, and intervals from a bootstrap that needs no rows."""

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from trust.metrics import Stat

SCALE = 2.0**36
_EXACT = 2.0**53
_MIN_ROWS = 10
_MAX_NA = 0.1
_CLUSTERED = 1.25
_SAME = 1e-9
_LEVEL = 0.95


def question_weights(question_ids: Sequence[str], replicates: int) -> np.ndarray:
    """Poisson(1) bootstrap weights of rows by question.

    A weight depends on the question's id and the replicate's number alone. So all rows of a question count alike, any
    sharding gives the same weights, and two runs over the same questions are paired.

    Args:
        question_ids: one a row.
        replicates: how many resamples.

    Returns:
        Integers of shape (rows, replicates).
    """
    known: dict[str, np.ndarray] = {}
    for question in question_ids:
        if question not in known:
            seed = int.from_bytes(hashlib.sha256(question.encode()).digest()[:16], "big")
            raw = np.random.Philox(key=seed).random_raw(replicates)
            known[question] = np.searchsorted(_POISSON, raw, side="right")
    if not known:
        return np.zeros((0, replicates), dtype=np.int64)
    return np.stack([known[question] for question in question_ids]).astype(np.int64)


def sum_terms(terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted sums of terms in fixed point: adding them over units in any grouping gives the same integers.

    Args:
        terms: shape (rows, T), rounded here to multiples of 2^-36; a mean of them is exact to about 1e-11.
        weights: from `question_weights`, shape (rows, replicates).

    Returns:
        int64 of shape (1 + replicates, T); row 0 has weight one for every row. They hold sums up to 2^27.

    Raises:
        ValueError: a term is not finite, or the sum is too large for 64 bits.
    """
    terms = np.asarray(terms, dtype=float)
    if not np.isfinite(terms).all():
        raise ValueError("a term is not finite: a metric must leave out what is not applicable")
    fixed = np.rint(terms * SCALE)
    ones = np.ones((len(terms), 1), dtype=np.int64)
    all_weights = np.concatenate([ones, weights], axis=1)
    largest = float((np.abs(fixed).sum(axis=0) * max(1, int(all_weights.max(initial=1)))).max(initial=0.0))
    if largest >= 2.0**63:
        raise ValueError("the sum of a term over these rows is too large for fixed point; make units smaller")
    if largest < _EXACT:  # every partial sum is an integer that a float holds exactly, and floats multiply faster
        return (all_weights.T.astype(float) @ fixed).astype(np.int64)
    return all_weights.T @ fixed.astype(np.int64)


def from_fixed(sums: np.ndarray) -> np.ndarray:
    """Sums in fixed point, also as Python integers, as floats."""
    return np.asarray(np.asarray(sums) / SCALE, dtype=float)


def interval(stat: Stat, questions: int) -> tuple[float, float] | None:
    """95 % interval of a statistic over questions drawn at random.

    A plain proportion gets Wilson's interval; where rows of the same question go together (several draws), its `n` is
    divided by how much the bootstrap says that widens it. Everything else gets the expanded percentile bootstrap
    (Hesterberg 2015, The American Statistician 69(4), sec. 4.4: percentiles moved outward by sqrt(n / (n - 1)) and
    Student's t). Where all resamples agree, at 0 or 100 say, the bootstrap says nothing and Wilson's bound on a share
    of the statistic's range stands in.

    Args:
        stat: value with its resamples, rows in its denominator.
        questions: different questions in the run.

    Returns:
        (low, high) within the statistic's bounds; None with fewer than 10 rows or questions, without resamples, or
        where more than a tenth of the resamples are not applicable.
    """
    value = float(stat.value[0])
    finite = _resamples(stat.value, stat.n, questions)
    if finite is None:
        return None
    if stat.successes is not None:
        share = stat.successes / stat.n
        low, high = _wilson(share, stat.n / _design_effect(share, stat.n, finite / 100.0))
        return 100.0 * low, 100.0 * high
    size = min(stat.n, questions)
    if _agree(finite, value):
        return _of_range(value, size, stat.bounds)
    low, high = _percentiles(finite, value, size)
    if stat.bounds is not None:
        low, high = max(low, stat.bounds[0]), min(high, stat.bounds[1])
    return low, high


def paired_interval(base: Stat, new: Stat, questions: int) -> tuple[float, float] | None:
    """95 % interval of `new` minus `base`, over the same questions drawn at random.

    Both were resampled with the same weights, so that what a question does to both cancels: the expanded percentile
    bootstrap (see `interval`) of the replicates' differences. Where all of them agree (no question's score differs, or all
    do alike), Wilson's bound on the share of the statistic's range stands in: with n questions that all stayed the same,
    about 4 / n of the range to either side.

    Args:
        base, new: the same statistic of two runs over the same questions.
        questions: how many there are.

    Returns:
        (low, high); None where one of them would have no interval (see `interval`).
    """
    difference = new.value - base.value
    size = min(base.n, new.n, questions)
    finite = _resamples(difference, size, questions)
    if finite is None:
        return None
    value = float(difference[0])
    width = None if base.bounds is None else base.bounds[1] - base.bounds[0]
    if not _agree(finite, value):
        low, high = _percentiles(finite, value, size)
        return (low, high) if width is None else (max(low, -width), min(high, width))
    if width is None:
        return None
    below, above = (width * share for share in _wilson(min(1.0, abs(value) / width), size))
    return (-above, above) if abs(value) <= _SAME else (below, above) if value > 0 else (-above, -below)


def _resamples(values: np.ndarray, n: int, questions: int) -> np.ndarray | None:
    """The resamples that are applicable; None where they are too few, or the rows are, for an interval."""
    resamples = np.asarray(values[1:], dtype=float)
    if n < _MIN_ROWS or questions < _MIN_ROWS or not math.isfinite(values[0]) or len(resamples) == 0:
        return None
    finite = resamples[np.isfinite(resamples)]
    return finite if len(finite) >= (1.0 - _MAX_NA) * len(resamples) else None


def _agree(resamples: np.ndarray, value: float) -> bool:
    return bool(np.ptp(resamples) <= _SAME * max(1.0, abs(value)))


def _percentiles(resamples: np.ndarray, value: float, n: int) -> tuple[float, float]:
    tail = _expanded_tail(n)
    low, high = (float(q) for q in np.quantile(resamples, [tail, 1.0 - tail]))
    return min(low, value), max(high, value)


def _poisson_thresholds() -> np.ndarray:
    """Upper ends of P(X <= k) of Poisson(1) on the range of 64-bit integers, as far as they differ."""
    total, term, thresholds = 0.0, math.exp(-1.0), []
    for k in range(1, 20):
        total += term
        term /= k
        thresholds.append(min(int(total * 2.0**64), 2**64 - 1))
    return np.array(thresholds, dtype=np.uint64)


_POISSON = _poisson_thresholds()


def _wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share (0 to 1) of n rows."""
    from scipy.special import ndtri

    z2 = float(ndtri(0.5 + _LEVEL / 2.0)) ** 2
    middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n)
    half = math.sqrt(z2) / (1.0 + z2 / n) * math.sqrt(share * (1.0 - share) / n + z2 / (4.0 * n * n))
    # A share of exactly 0 or 1 is its own bound; rounding must not push the bound past it.
    return min(max(0.0, middle - half), share), max(min(1.0, middle + half), share)


def _design_effect(share: float, n: int, resamples: np.ndarray) -> float:
    """How much more the proportion varies than one of independent rows; 1 where the difference may be noise."""
    independent = share * (1.0 - share) / n
    effect = float(np.var(resamples)) / independent if independent > 0 else 1.0
    return effect if effect > _CLUSTERED else 1.0


def _expanded_tail(n: int) -> float:
    """Share of resamples outside each end."""
    from scipy.special import ndtr, stdtrit

    t = float(stdtrit(n - 1, 0.5 + _LEVEL / 2.0))
    return float(ndtr(-t * math.sqrt(n / (n - 1))))


def _of_range(value: float, n: int, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    low, high = bounds
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    below, above = _wilson(share, n)
    return low + below * (high - low), low + above * (high - low)
