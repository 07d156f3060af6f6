"""Published statistics out of sums: rates, harmonic means, and what becomes of a rate over nothing."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trust.metrics import Stat

# Terms that may be large (words, sentences, citations) are summed in units of 1024: exact in binary fixed point, and
# sums over hundreds of millions of rows stay within 64 bits.
BIG = 1.0 / 1024.0


@dataclass(frozen=True)
class Sums:
    """Sums of terms, with the rule for rates over nothing.

    Attributes:
        terms: name -> array of shape (1 + replicates,).
        undefined: `zero` or `na`, see `trust.compat.Choices`.
    """

    terms: Mapping[str, np.ndarray]
    undefined: str

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self.terms[name], dtype=float)

    def rows(self, name: str) -> int:
        """A count of rows."""
        return round(float(self[name][0]))

    def percent(self, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """100 * part / whole; where there is no whole, 0 or NaN (not applicable)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(whole > 0, 100.0 * part / whole, 0.0 if self.undefined == "zero" else np.nan)

    def f1(self, precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
        """Harmonic mean. If one is 0 it is 0, also where the other is not applicable: F1 = 2TP / (2TP + FP + FN)."""
        total = precision + recall
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(total > 0, 2.0 * precision * recall / total, 0.0)
        if self.undefined == "zero":
            return mean
        zero = (precision == 0) | (recall == 0)
        return np.where(np.isnan(total) & ~zero, np.nan, mean)

    def mean(self, part: str, whole: str, bounds: tuple[float, float] | None = (0.0, 100.0)) -> Stat:
        """Mean over rows of a value from 0 to 1, as a percentage."""
        return Stat(self.percent(self[part], self[whole]), self.rows(whole), None, bounds)

    def mean_or_na(self, part: str, whole: str) -> Stat:
        """The same, for means that upstream, too, has no number for where there is nothing to average."""
        return replace(self, undefined="na").mean(part, whole)

    def rate(self, part: str, whole: str) -> Stat:
        """Plain proportion of rows, as a percentage."""
        return Stat(self.percent(self[part], self[whole]), self.rows(whole), self.rows(part))

    def count(self, name: str) -> Stat:
        """A number of rows: of these rows, and so without an interval."""
        value = np.full_like(self[name], np.nan)
        value[0] = self[name][0]
        return Stat(value, self.rows("rows"), None, None)

    def size(self, part: str, whole: str) -> Stat:
        """Mean of a count over rows (words, predictions)."""
        return Stat(self.percent(self[part], self[whole]) / (100.0 * BIG), self.rows(whole), None, None)


def harmonic(first: float, second: float) -> float:
    """Harmonic mean of two numbers; 0 where one is."""
    return 2.0 * first * second / (first + second) if first + second > 0 else 0.0


def agreement(scores: Sequence[float]) -> float | None:
    """How far repeated scores of one thing agree: 1 less their mean distance over all pairs, for scores between 0 and 1; None
    where there are not two."""
    pairs = [abs(one - other) for one, other in itertools.combinations(scores, 2)]
    return max(0.0, 1.0 - sum(pairs) / len(pairs)) if pairs else None
