"""Rows of the table `agreement`: every metric against every dimension, at each level.

Rank statistics need the rows themselves: of each output its ids, and two numbers at a time, are in the memory of this one
process.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from trust import stats
from trust.agree import coefficients
from trust.agree.coefficients import CORRELATIONS, ratio
from trust.agree.items import Item, Rated, dimensions, metric_names
from trust.metrics import Stat

LEAST = 3  # rows of a correlation

_SAME = 12  # decimals up to which means of systems are told apart
_CORRELATION, _SHARE = (-1.0, 1.0), (0.0, 1.0)


@dataclass
class Row:
    """One coefficient of agreement.

    Attributes:
        metric: empty between annotators.
        level: `sample` over all outputs; `summary` over the systems of each group, then the mean over groups; `system` over
            means a system; `pairs` of one group's outputs; `labels` where ratings take two values; `annotators`.
        value: None where it is not applicable; `reason` and `detail` then say why.
        low, high: 95 % interval over questions (groups) drawn at random; None with fewer than ten.
        n: outputs, groups, systems or pairs that it rests on, by level.
        questions: what is drawn at random: different questions, documents or groups.
        skipped: groups left out since they hold fewer than two outputs or one side is constant; pairs that people rate alike.
        ties: pairs that the metric scores alike; they count half.
    """

    dimension: str
    metric: str
    level: str
    statistic: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    questions: int = 0
    skipped: int = 0
    ties: int | None = None
    status: str = "scored"
    reason: str | None = None
    detail: str | None = None


def measure(rated: Rated, alpha: str, replicates: int) -> list[Row]:
    """All coefficients; see `Row`.

    Args:
        alpha: how ratings are measured, for Krippendorff's alpha.
        replicates: bootstrap resamples.
    """
    rows: list[Row] = []
    names = metric_names(rated.items)
    for dimension in dimensions(rated.items):
        for metric in names:
            rows += _Compared(dimension, metric, rated, replicates).rows()
        if not rated.preferences:
            rows += _annotators(dimension, rated.items, alpha, replicates)
    return rows


@dataclass
class _Compared:
    """One metric against one dimension."""

    dimension: str
    metric: str
    rated: Rated
    replicates: int
    items: list[Item] = field(init=False)

    def __post_init__(self) -> None:
        self.items = [
            item for item in self.rated.items if self.metric in item.metrics and item.rating(self.dimension) is not None
        ]
        self.people = np.array([item.rating(self.dimension) for item in self.items], dtype=float)
        self.scores = np.array([item.metrics[self.metric] for item in self.items], dtype=float)
        self.clusters = [item.cluster for item in self.items]
        self.questions = [*dict.fromkeys(self.clusters)]
        self.by_question = stats.question_weights(self.questions, self.replicates)
        index = {question: i for i, question in enumerate(self.questions)}
        self.question = np.array([index[cluster] for cluster in self.clusters], dtype=int)

    def rows(self) -> Iterator[Row]:
        if self.rated.preferences:
            yield self._pairs()
            return
        yield from self._sample()
        yield from self._summary()
        yield from self._system()
        yield self._pairs()
        yield from self._labels()

    def _sample(self) -> Iterator[Row]:
        why = self._unfit(self.people, self.scores)
        for name, coefficient in CORRELATIONS.items():
            row = self._row("sample", name, len(self.items))
            if why:
                yield _na(row, *why)
            else:
                values = coefficient(self.people, self.scores, self.by_question[self.question])
                yield _scored(row, values, len(self.items), _CORRELATION)

    def _summary(self) -> Iterator[Row]:
        groups = self._groups()
        fit = [rows for rows in groups if not self._unfit(self.people[rows], self.scores[rows], least=2)]
        skipped = len(groups) - len(fit)
        for name, coefficient in CORRELATIONS.items():
            row = self._row("summary", name, len(fit), skipped=skipped)
            if not fit:
                single = all(len(rows) < 2 for rows in groups)
                yield _na(
                    row,
                    "no_groups" if single else "constant",
                    "no group holds outputs of two systems" if single else "in every group one side is constant",
                )
                continue
            each = np.array([coefficient(self.people[rows], self.scores[rows], _none(rows))[0] for rows in fit])
            weights = self.by_question[[self.question[rows[0]] for rows in fit]]
            yield _scored(row, _weighted_mean(each, weights), len(fit), _CORRELATION)

    def _system(self) -> Iterator[Row]:
        systems = [*dict.fromkeys(item.model for item in self.items)]
        place = {system: i for i, system in enumerate(systems)}
        own = np.array([place[item.model] for item in self.items], dtype=int)
        for name in CORRELATIONS:
            row = self._row("system", name, len(systems))
            if len(systems) < LEAST:
                yield _na(row, "too_few", f"{len(systems)} system(s); a correlation needs {LEAST}")
                continue
            people, scores = (self._means(side, own, len(systems)) for side in (self.people, self.scores))
            if why := self._unfit(people[:, 0], scores[:, 0]):
                yield _na(row, *why)
                continue
            # Systems are those there are; what another draw would change is the questions.
            yield _scored(row, coefficients.columnwise(name, people, scores), len(self.questions), _CORRELATION)

    def _means(self, side: np.ndarray, own: np.ndarray, systems: int) -> np.ndarray:
        """Mean of each system, over all outputs and in each resample; shape (systems, 1 + replicates)."""
        weights = np.concatenate([np.ones((len(side), 1)), self.by_question[self.question]], axis=1)
        sums = np.zeros((systems, weights.shape[1]))
        counts = np.zeros_like(sums)
        np.add.at(sums, own, weights * side[:, None])
        np.add.at(counts, own, weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.round(sums / counts, _SAME)

    def _pairs(self) -> Row:
        right, pairs, ties, alike = 0.0, 0, 0, 0
        over = np.zeros(len(self.questions))
        under = np.zeros(len(self.questions))
        for rows in self._groups():
            one, other = (rows[side] for side in np.triu_indices(len(rows), 1))
            said, scored = (np.sign(side[one] - side[other]) for side in (self.people, self.scores))
            shares = np.where(scored == 0, 0.5, said == scored)[said != 0]
            alike += int((said == 0).sum())
            pairs += len(shares)
            ties += int((scored[said != 0] == 0).sum())
            right += shares.sum()
            over[self.question[rows[0]]] += shares.sum()
            under[self.question[rows[0]]] += len(shares)
        skipped = alike + (self.rated.ties if self.rated.preferences else 0)
        row = self._row("pairs", "pairwise_accuracy", pairs, skipped=skipped, ties=ties)
        if pairs < LEAST:
            none = (
                "no group holds two outputs that people tell apart"
                if not pairs
                else f"{pairs} pair(s); {LEAST} are needed"
            )
            return _na(row, "too_few", none)
        resampled = ratio(over @ self.by_question, under @ self.by_question)
        return _scored(row, np.concatenate([[right / pairs], resampled]), int((under > 0).sum()), _SHARE)

    def _labels(self) -> Iterator[Row]:
        """Of ratings that take two values only, such as yes and no."""
        values = np.unique(self.people)
        if len(values) != 2:
            return
        row = self._row("labels", "auroc", len(self.items))
        if why := self._unfit(self.people, None):
            yield _na(row, *why)
            return
        labels = (self.people == values[1]).astype(float)
        found = coefficients.auroc(labels, self.scores, self.by_question[self.question])
        yield _scored(row, found, len(self.items), _SHARE)

    def _groups(self) -> list[np.ndarray]:
        found: dict[str, list[int]] = defaultdict(list)
        for i, item in enumerate(self.items):
            found[item.group].append(i)
        return [np.array(rows) for rows in found.values()]

    def _row(self, level: str, statistic: str, n: int, skipped: int = 0, ties: int | None = None) -> Row:
        return Row(
            self.dimension,
            self.metric,
            level,
            statistic,
            n=n,
            questions=len(self.questions),
            skipped=skipped,
            ties=ties,
        )

    def _unfit(self, people: np.ndarray, scores: np.ndarray | None, least: int = LEAST) -> tuple[str, str] | None:
        """Why there is no coefficient over these, as a code and in words."""
        if len(people) < least:
            return "too_few", f"{len(people)} with both a rating and a score; {least} are needed"
        if np.ptp(people) == 0:
            return "constant", f"people give all of them {people[0]:g}"
        if scores is not None and np.ptp(scores) == 0:
            return "constant", f"the metric gives all of them {scores[0]:g}"
        return None


def _annotators(dimension: str, items: Sequence[Item], alpha: str, replicates: int) -> Iterator[Row]:
    """Agreement between annotators; nothing where no output has two."""
    said = [item for item in items if sum(value is not None for value in item.ratings.get(dimension, ())) > 1]
    if not said:
        return
    clusters = [item.cluster for item in said]
    row = Row(dimension, "", "annotators", "krippendorff_alpha", n=len(said), questions=len(set(clusters)))
    ratings = [item.ratings[dimension] for item in said]
    if len({value for each in ratings for value in each if value is not None}) < 2:
        yield _na(row, "constant", "all annotators give all outputs the same rating")
        return
    values = coefficients.alpha(ratings, alpha, stats.question_weights(clusters, replicates))
    yield _scored(row, values, len(said), _CORRELATION)


def _scored(row: Row, values: np.ndarray, n: int, bounds: tuple[float, float]) -> Row:
    """The row with value and interval.

    Args:
        n: independent units behind it at most.
    """
    if not math.isfinite(values[0]):
        return _na(row, "constant", "one side is constant")
    row.value = float(values[0])
    found = stats.interval(Stat(values, n, bounds=bounds), row.questions)
    row.low, row.high = found or (None, None)
    return row


def _na(row: Row, reason: str, detail: str) -> Row:
    row.status, row.reason, row.detail = "na", reason, detail
    return row


def _weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The mean, and the mean in each resample."""
    return np.concatenate([[values.mean()], ratio(values @ weights, weights.sum(axis=0).astype(float))])


def _none(rows: np.ndarray) -> np.ndarray:
    """No resamples of these rows."""
    return np.zeros((len(rows), 0), dtype=int)
