"""Prediction-powered inference: a judge's mean over all rows, corrected by what people say of a random sample of them.

Angelopoulos et al. 2023 (Science 382, arXiv 2301.09633), with the power tuning of PPI++ (arXiv 2311.01453): with `f` the
judge's value and `y` people's,

    theta = lambda * mean of f over all rows + mean of (y - lambda * f) over the labelled ones

where lambda is the slope of y on f, so that a judge that says nothing about y is not used (lambda 0). All rows include the
labelled ones; with k the share of rows without a label that is the published estimator with lambda * k, and its variance

    (Var(y) - R) / n + R / N,   R = Cov(y, f)^2 / Var(f)

for n labels among N rows. Nothing here knows where values come from.
"""

import math
from dataclasses import dataclass

import numpy as np

LEAST = 10  # labels

_LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class Corrected:
    """A mean corrected for the judge's errors.

    Attributes:
        judge: the judge's mean over all rows.
        bias: the judge's mean minus people's, over the labelled rows.
        corrected: the estimate of what people would say on average.
        alone: the same from the labels alone.
        tuning: lambda.
        labels, rows: how many have a label, and how many there are.
        needed, needed_alone: labels for an interval of the wanted width, with the judge and without; None where not even a label
            for every row would give it.
    """

    judge: float
    bias: float
    corrected: Interval
    alone: Interval
    tuning: float
    labels: int
    rows: int
    needed: int | None
    needed_alone: int | None


def corrected_mean(
    judge: np.ndarray, people: np.ndarray, clusters: np.ndarray | None = None, width: float = 0.1
) -> Corrected:
    """The mean that people would give all rows, from the judge's values of all and people's of a random sample.

    Where people's values are all 0 or 1 it is a rate: its interval is Wilson's, with as many rows as would have the estimate's
    variance, and moments are taken with four rows more, of half a row each, in which judge and people say every combination
    (else a sample without an error of the judge would show none possible). Other means have Student's t.

    Args:
        judge: shape (N,).
        people: shape (N,), NaN where there is no label.
        clusters: shape (N,), equal for rows that go together (of one question); None where each stands alone.
        width: of an interval, high minus low, for which the labels are counted.

    Raises:
        ValueError: fewer than LEAST rows have a label, or a value of the judge is not finite.
    """
    judge, people = np.asarray(judge, dtype=float), np.asarray(people, dtype=float)
    labelled = ~np.isnan(people)
    n, rows = int(labelled.sum()), len(judge)
    if n < LEAST:
        raise ValueError(f"{n} labels; {LEAST} are needed")
    if not np.isfinite(judge).all():
        raise ValueError("a value of the judge is not finite")
    y, f = people[labelled], judge[labelled]
    is_rate = bool(np.isin(y, (0.0, 1.0)).all())
    moments = _Moments.of(y, f, judge) if is_rate else _Moments.unsmoothed(y, f)
    slope = moments.slope if n < rows else 0.0
    theta = float(slope * judge.mean() + (y - slope * f).mean())
    explained = moments.explained if n < rows else 0.0
    variance = (moments.variance - explained) / n + explained / rows
    alone, t = moments.variance / n, _t(n - 1) if not is_rate else _t(math.inf)
    effects = _effects(judge, people, labelled, slope, clusters)
    make = _wilson if is_rate else _student
    return Corrected(
        judge=float(judge.mean()),
        bias=float((f - y).mean()),
        corrected=make(theta, variance * effects[0], moments.mean, t if is_rate else _t(n - 2)),
        alone=make(float(y.mean()), alone * effects[1], moments.mean, t),
        tuning=slope,
        labels=n,
        rows=rows,
        needed=_needed(moments.variance - moments.explained, moments.explained / rows, effects[0], width, rows),
        needed_alone=_needed(moments.variance, 0.0, effects[1], width, rows),
    )


@dataclass(frozen=True)
class _Moments:
    """Of labelled rows.

    Attributes:
        mean, variance: of people's values.
        slope: of people's values on the judge's.
        explained: how much of the variance the judge's values explain.
    """

    mean: float
    variance: float
    slope: float
    explained: float

    @classmethod
    def of(cls, y: np.ndarray, f: np.ndarray, judge: np.ndarray) -> "_Moments":
        """With half a row for each combination of people's and the judge's extreme values."""
        low, high = float(judge.min()), float(judge.max())
        extra = np.array([(0, low), (0, high), (1, low), (1, high)])
        weights = np.concatenate([np.ones(len(y)), np.full(4, 0.5)])
        return cls._weighted(np.concatenate([y, extra[:, 0]]), np.concatenate([f, extra[:, 1]]), weights, 0)

    @classmethod
    def unsmoothed(cls, y: np.ndarray, f: np.ndarray) -> "_Moments":
        return cls._weighted(y, f, np.ones(len(y)), 1)

    @classmethod
    def _weighted(cls, y: np.ndarray, f: np.ndarray, weights: np.ndarray, freedom: int) -> "_Moments":
        total = weights.sum()
        mean, middle = (weights * y).sum() / total, (weights * f).sum() / total
        variance = (weights * (y - mean) ** 2).sum() / (total - freedom)
        spread = (weights * (f - middle) ** 2).sum() / (total - freedom)
        if spread <= 1e-12 * max(1.0, middle**2):
            return cls(float(mean), float(variance), 0.0, 0.0)
        both = (weights * (y - mean) * (f - middle)).sum() / (total - freedom)
        explained = both**2 / spread
        if freedom:  # the slope is estimated from the same rows
            left = (variance - explained) * (total - 1) / (total - 2)
            explained = max(0.0, variance - left)
        return cls(float(mean), float(variance), float(both / spread), float(explained))


def _effects(
    judge: np.ndarray, people: np.ndarray, labelled: np.ndarray, slope: float, clusters: np.ndarray | None
) -> tuple[float, float]:
    """How much more the estimate, and that of the labels alone, vary since rows of a cluster go together."""
    if clusters is None:
        return 1.0, 1.0
    _, codes = np.unique(clusters, return_inverse=True)
    n, rows = int(labelled.sum()), len(judge)
    y = people[labelled]
    alone = np.zeros(rows)
    alone[labelled] = (y - y.mean()) / n
    part = slope * (judge - judge.mean()) / rows
    residuals = y - slope * judge[labelled]
    part[labelled] += (residuals - residuals.mean()) / n
    sizes = np.bincount(codes[labelled])
    most = float((sizes**2).sum() / n)  # where rows of a cluster are all alike
    return _effect(part, codes, most), _effect(alone, codes, most)


def _effect(influence: np.ndarray, codes: np.ndarray, most: float) -> float:
    """Takes the worst where rows that all agree do not tell."""
    together, apart = (np.bincount(codes, influence) ** 2).sum(), (influence**2).sum()
    return max(1.0, float(together / apart)) if apart > 0 else most


def _student(value: float, variance: float, _: float, t: float) -> Interval:
    half = t * math.sqrt(variance)
    return Interval(value, value - half, value + half)


def _wilson(value: float, variance: float, mean: float, z: float) -> Interval:
    """Wilson's interval of a share of as many rows as have this variance."""
    share = min(max(value, 0.0), 1.0)
    n = mean * (1 - mean) / variance
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share)))


def _needed(by_label: float, by_row: float, effect: float, width: float, rows: int) -> int | None:
    """Labels that make `(by_label / labels + by_row) * effect` the variance of an interval of that width."""
    room = (width / (2 * _t(math.inf))) ** 2 / effect - by_row
    if room <= 0:
        return None
    needed = max(LEAST, math.ceil(by_label / room))
    return needed if needed <= rows else None


def _t(freedom: float) -> float:
    from scipy.special import ndtri, stdtrit

    level = 0.5 + _LEVEL / 2
    return float(ndtri(level)) if math.isinf(freedom) else float(stdtrit(freedom, level))
