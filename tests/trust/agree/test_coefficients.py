"""Coefficients by hand, and their resamples against the packages on rows repeated as often."""

import math

import numpy as np
import pytest
from scipy import stats as scipys

from trust.agree import coefficients
from trust.agree.coefficients import CORRELATIONS
from trust.stats import question_weights

NONE = np.zeros((5, 0), dtype=int)
X = np.array([1.0, 2, 3, 4, 5])
Y = np.array([2.0, 1, 4, 3, 3])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # deviations -2..2 and -.6 -1.6 1.4 .4 .4: 4 / sqrt(10 * 5.2)
        ("pearson", 4 / math.sqrt(52)),
        # ranks 2 1 5 3.5 3.5: 5.5 / sqrt(10 * 9.5)
        ("spearman", 5.5 / math.sqrt(95)),
        # of 10 pairs 6 agree, 3 do not, 1 is tied: 3 / sqrt(10 * 9)
        ("kendall_tau_b", 3 / math.sqrt(90)),
    ],
)
def test_by_hand(name: str, expected: float) -> None:
    assert CORRELATIONS[name](X, Y, NONE) == pytest.approx([expected])
    assert coefficients.columnwise(name, X[:, None], Y[:, None]) == pytest.approx([expected])


@pytest.mark.parametrize("matrix", [3000, 10])
@pytest.mark.parametrize(
    ("name", "scipys_own"),
    [("pearson", scipys.pearsonr), ("spearman", scipys.spearmanr), ("kendall_tau_b", scipys.kendalltau)],
)
def test_resamples_are_those_of_repeated_rows(
    name: str, scipys_own: object, matrix: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coefficients, "_MATRIX", matrix)
    monkeypatch.setattr(coefficients, "_CELLS", 100)  # some replicates at a time
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 40).astype(float)
    y = x + rng.integers(0, 6, 40)
    weights = question_weights([f"q{n // 2}" for n in range(40)], 20)
    found = CORRELATIONS[name](x, y, weights)
    rows = np.arange(40)
    expected = [scipys_own(x[kept], y[kept]).statistic for kept in (rows, *(np.repeat(rows, w) for w in weights.T))]  # type: ignore[operator]
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_a_constant_side_has_none(name: str) -> None:
    weights = np.array([[1, 3], [1, 0], [1, 0], [1, 0], [1, 0]])
    assert np.isnan(CORRELATIONS[name](X, np.full(5, 0.1), weights)).all()
    found = CORRELATIONS[name](X, Y, weights)
    assert found[0] == pytest.approx(found[1])
    assert math.isnan(found[2])  # one row three times


def test_auroc_by_hand() -> None:
    labels = np.array([0.0, 0, 1, 1, 1])
    scores = np.array([0.1, 0.5, 0.5, 0.9, 0.05])
    # of 6 pairs: .5 beats .1 and ties .5, .9 beats both, .05 beats none
    assert coefficients.auroc(labels, scores, NONE) == pytest.approx([3.5 / 6])
    weights = np.array([[1, 0], [0, 1], [2, 1], [0, 0], [1, 0]])
    assert coefficients.auroc(labels, scores, weights)[1:] == pytest.approx([2 / 3, 0.5])
    assert np.isnan(coefficients.auroc(np.ones(5), scores, weights)).all()


RATINGS = [[1, 1, None, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4], [4, 4, 4, 4],
           [1, 1, 2, 1], [2, 2, 2, 2], [None, 5, 5, 5], [None, None, 1, 1], [None, None, 3, None]]  # fmt: skip


@pytest.mark.parametrize(
    ("measurement", "expected"),
    # Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, the example of four observers
    [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)],
)
def test_alpha_as_krippendorff_prints_it(measurement: str, expected: float) -> None:
    ratings = [[None if value is None else float(value) for value in said] for said in RATINGS]
    weights = np.array([[1, 1, 0]] * 11 + [[1, 1, 0]])
    found = coefficients.alpha(ratings, measurement, weights)
    assert found[:3] == pytest.approx([expected] * 3, abs=5e-4)
    assert math.isnan(found[3])


def test_alpha_of_a_resample_repeats_items() -> None:
    ratings: list[list[float | None]] = [[1, 2], [2, 2], [3, 3]]
    repeated = coefficients.alpha([*ratings, ratings[0]], "interval", np.zeros((4, 0), dtype=int))
    assert coefficients.alpha(ratings, "interval", np.array([[2], [1], [1]]))[1] == pytest.approx(repeated[0])
