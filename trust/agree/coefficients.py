"""Coefficients of agreement, each over all rows and over bootstrap resamples of them.

`x` and `y` have one number a row. `weights`, shape (rows, replicates), says how often each resample holds a row
(`trust.stats.question_weights`); a weighted coefficient is that of the rows repeated so often. All return shape
(1 + replicates,): the coefficient over all rows, then its resamples; NaN where there is none, since one side is constant.
"""

import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np

_CELLS = 4_000_000  # numbers in memory at once
_MATRIX = 3000  # rows up to which pairs of rows are a matrix
_CONSTANT = 1e-12  # of the variance of all rows

Coefficient = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def pearson(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Pearson's r."""
    from scipy.stats import pearsonr

    resampled = [_pearson(x[:, None], y[:, None], part) for part in _parts(weights)]
    return _whole(pearsonr, x, y, resampled)


def spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman's rho; ties have their mean rank."""
    from scipy.stats import spearmanr

    resampled = [_pearson(_ranks(x, part), _ranks(y, part), part) for part in _parts(weights)]
    return _whole(spearmanr, x, y, resampled)


def kendall(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Kendall's tau-b."""
    from scipy.stats import kendalltau

    if len(x) <= _MATRIX:
        # Each resample by itself would cost a sort; all at once they are three products of matrices.
        signs = [np.sign(side[:, None] - side[None, :]).astype(np.float32) for side in (x, y)]
        terms = [signs[0] * signs[1], np.abs(signs[0]), np.abs(signs[1])]
        repeated = weights.astype(np.float32)
        both, first, second = ((repeated * (term @ repeated)).sum(axis=0, dtype=float) for term in terms)
        resampled = ratio(both, np.sqrt(first) * np.sqrt(second))
    else:
        rows = np.arange(len(x))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            resampled = np.array(
                [kendalltau(x[kept], y[kept]).statistic for kept in (np.repeat(rows, each) for each in weights.T)]
            )
    return _whole(kendalltau, x, y, [resampled])


CORRELATIONS: dict[str, Coefficient] = {"pearson": pearson, "spearman": spearman, "kendall_tau_b": kendall}


def auroc(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Chance that a row labelled 1 scores above one labelled 0; a tie counts half.

    Args:
        labels: 0 or 1.
    """
    order = np.argsort(scores, kind="stable")
    starts = np.unique(scores[order], return_index=True)[1]
    found = []
    for part in _parts(np.concatenate([np.ones((len(scores), 1), dtype=weights.dtype), weights], axis=1)):
        kept = part[order].astype(float)
        yes = np.add.reduceat(kept * labels[order][:, None], starts, axis=0)
        no = np.add.reduceat(kept * (1 - labels[order])[:, None], starts, axis=0)
        below = np.cumsum(no, axis=0) - no
        found.append(ratio((yes * (below + no / 2)).sum(axis=0), yes.sum(axis=0) * no.sum(axis=0)))
    return np.concatenate(found)


def alpha(ratings: list[list[float | None]], measurement: str, weights: np.ndarray) -> np.ndarray:
    """Krippendorff's alpha among annotators.

    Args:
        ratings: a row an item, with one number an annotator, None where one said nothing; rows need not be equally long.
        measurement: `nominal`, `ordinal` or `interval`.
    """
    from krippendorff import alpha as krippendorff_alpha

    domain = sorted({value for said in ratings for value in said if value is not None})
    place = {value: i for i, value in enumerate(domain)}
    counts = np.zeros((len(ratings), len(domain)), dtype=int)
    for row, said in zip(counts, ratings, strict=True):
        for value in said:
            if value is not None:
                row[place[value]] += 1
    paired = counts.sum(axis=1) > 1

    def measured(repeats: np.ndarray) -> float:
        kept = np.repeat(counts[paired], repeats[paired], axis=0)
        used = kept.sum(axis=0) > 0
        if used.sum() < 2:
            return math.nan
        return float(
            krippendorff_alpha(
                value_counts=kept[:, used],
                value_domain=np.array(domain, dtype=float)[used],
                level_of_measurement=measurement,  # type: ignore[arg-type]
            )
        )

    ones = np.ones(len(ratings), dtype=int)
    return np.array([measured(ones), *(measured(each) for each in weights.T)])


def columnwise(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The correlation between two arrays of shape (rows, columns), column by column; for few rows.

    Args:
        name: of CORRELATIONS.
    """
    ones = np.ones(x.shape)
    if name == "pearson":
        return _pearson(x, y, ones)
    signs = [np.sign(side[:, None] - side[None, :]) for side in (x, y)]
    if name == "spearman":
        return _pearson(signs[0].sum(axis=1), signs[1].sum(axis=1), ones)
    first, second = (np.abs(sign).sum(axis=(0, 1)) for sign in signs)
    return ratio((signs[0] * signs[1]).sum(axis=(0, 1)), np.sqrt(first * second))


def ratio(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """Quotients; NaN where there is nothing to divide by."""
    return np.divide(over, under, out=np.full(np.shape(over), math.nan), where=under > 0)


def _whole(scipys: Callable, x: np.ndarray, y: np.ndarray, resampled: list[np.ndarray]) -> np.ndarray:
    """Scipy's coefficient over all rows before the resamples'."""
    constant = np.ptp(x) == 0 or np.ptp(y) == 0
    return np.concatenate([[math.nan if constant else float(scipys(x, y).statistic)], *resampled])


def _pearson(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted r a column; `x` and `y` are of shape (rows, 1 or columns)."""
    total = weights.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = [side - (weights * side).sum(axis=0) / total for side in (x, y)]
    both, first, second = (
        (weights * one * other).sum(axis=0)
        for one, other in ((centred[0], centred[1]), (centred[0], centred[0]), (centred[1], centred[1]))
    )
    floors = [_CONSTANT * np.square(side).mean(axis=0) * total for side in centred]
    held = (first > floors[0]) & (second > floors[1])
    return np.where(held, ratio(both, np.sqrt(first) * np.sqrt(second)), math.nan)


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean ranks of the rows in each resample, up to a constant."""
    _, codes = np.unique(values, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    starts = np.unique(codes[order], return_index=True)[1]
    counts = np.add.reduceat(weights[order].astype(float), starts, axis=0)
    return (np.cumsum(counts, axis=0) - counts / 2)[codes]


def _parts(weights: np.ndarray) -> Iterator[np.ndarray]:
    """Some replicates at a time, so that what is in memory does not grow with rows times replicates."""
    width = max(1, _CELLS // max(1, len(weights)))
    for start in range(0, weights.shape[1], width):
        yield weights[:, start : start + width]
