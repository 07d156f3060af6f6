"""The questions that two runs have in common, found by merging their scores, and the sums over these alone.

Parts of the table scores are sorted by question, so both runs are read side by side: what is held is one question of each
run, a batch of its scores and the sums.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from trust import metrics
from trust.compare.differences import Key
from trust.compare.runs import Evaluation, Group, Pair
from trust.report.sample import stream
from trust.runs import halves, joined
from trust.sums import WHOLE, group_of, sum_scores

_COLUMNS = ["sample_id", "draw", *WHOLE, "slices", "terms", "status", "outside_judge_languages"]
_BATCH = 256
_SHOWN = 3

Question = tuple[str, list[dict[str, Any]]]  # sample_id and its scores


@dataclass
class Overlap:
    """How the questions of two groups overlap: how many, and the first few of those that one run alone has."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: {"base": [], "new": []})

    def add(self, where: str, question: str) -> None:
        self.counts[where] += 1
        if where in self.examples and len(self.examples[where]) < _SHOWN:
            self.examples[where].append(question)

    def __str__(self) -> str:
        alone = [
            f"{self.counts[where]:,} only in {where} ({', '.join(found)}{', …' if self.counts[where] > len(found) else ''})"
            for where, found in self.examples.items()
            if found
        ]
        return "; ".join([f"{self.counts['both']:,} questions are in both", *alone])


def overlap(base: Evaluation, new: Evaluation, pair: Pair) -> Overlap:
    """How the questions of two groups overlap."""
    found = Overlap()
    for old, now in _joined(base, new, pair, ["sample_id", *WHOLE]):
        found.add("both" if old and now else "base" if old else "new", (old or now or ("", []))[0])
    return found


def shared_sums(
    base: Evaluation, new: Evaluation, pair: Pair, by: Iterable[str]
) -> tuple[dict[Key, np.ndarray], dict[Key, np.ndarray]]:
    """Sums of either run over the questions that both have, as `trust.runs.Run.each_sum` gives them."""
    sides = (_Adding(base, by), _Adding(new, by))
    for old, now in _joined(base, new, pair, _COLUMNS):
        if old and now:
            for side, (_, scores) in zip(sides, (old, now), strict=True):
                side.add(scores)
    return sides[0].sums(), sides[1].sums()


class _Adding:
    """Sums that scores are added to."""

    def __init__(self, evaluation: Evaluation, by: Iterable[str]) -> None:
        config = evaluation.config
        self._metrics = metrics.build(config.metrics, config.compat)
        self._replicates = config.replicates
        self._by = set(by)
        self._open: list[dict[str, Any]] = []
        self._halves: dict[Key, np.ndarray] = {}

    def add(self, scores: list[dict[str, Any]]) -> None:
        for score in scores:
            kept = {name: value for name, value in score["slices"].items() if name in self._by}
            self._open.append(score | {"slices": kept})
        if len(self._open) >= _BATCH:
            self._close()

    def sums(self) -> dict[Key, np.ndarray]:
        self._close()
        return {key: joined(kept) for key, kept in self._halves.items()}

    def _close(self) -> None:
        for name, array in sum_scores(self._open, self._metrics, self._replicates).items():
            group = group_of(name)
            key = Key(group["metric"], (group["slice"], group["slice_value"]))
            self._halves[key] = self._halves.get(key, 0) + halves(array)
        self._open = []


def _joined(
    base: Evaluation, new: Evaluation, pair: Pair, columns: list[str]
) -> Iterator[tuple[Question | None, Question | None]]:
    """The questions of both groups in the order of their ids; None for the run that has no such question."""
    olds, news = _questions(base, pair.base, columns), _questions(new, pair.new, columns)
    old, now = next(olds, None), next(news, None)
    while old or now:
        if now is None or (old and old[0] < now[0]):
            yield old, None
            old = next(olds, None)
        elif old is None or now[0] < old[0]:
            yield None, now
            now = next(news, None)
        else:
            yield old, now
            old, now = next(olds, None), next(news, None)


def _questions(evaluation: Evaluation, group: Group, columns: list[str]) -> Iterator[Question]:
    storage = evaluation.run.storage
    parts = [stream(storage, part["path"], columns) for part in evaluation.run.parts("scores")]
    merged = heapq.merge(*parts, key=lambda row: row["sample_id"])
    for question, rows in groupby(merged, key=lambda row: row["sample_id"]):
        mine = [row for row in rows if all(row[name] == getattr(group, name) for name in Group._fields)]
        if mine:
            yield question, mine
