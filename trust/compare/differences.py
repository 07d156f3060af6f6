"""From the sums of two runs to paired differences, a row a number and slice."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trust.flat import withheld
from trust.metrics import Metric, Stat
from trust.slices import NONE
from trust.stats import paired_interval
from trust.sums import by_term

Slice = tuple[str, str]  # column and value; both empty for all rows
ALL: Slice = ("", "")


class Key(NamedTuple):
    """What sums are of, within one group of rows."""

    metric: str
    slice: Slice


@dataclass(frozen=True)
class Difference:
    """One number of two runs.

    Attributes:
        slice: column and value; empty for all rows.
        key: the published name.
        base, new: the number in either run; None is not applicable.
        difference: new minus base; None where one of them is missing.
        low, high: its 95 % interval; None where there is none.
        base_n, new_n: rows in the denominator.
        unchanged: whether no question's part in it differs.
        note: why there is no difference, in words.
    """

    slice: Slice
    key: str
    base: float | None
    new: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    base_n: int | None = None
    new_n: int | None = None
    unchanged: bool = False
    note: str = ""


@dataclass(frozen=True)
class Side:
    """One run's group.

    Attributes:
        label: `base` or `new`.
        sums: fixed point, shape (1 + replicates, terms).
        max_failed: share of rows that may fail before rates are withheld.
        why: why all rates are withheld, in words; empty where they are not.
    """

    label: str
    sums: Mapping[Key, np.ndarray]
    max_failed: float
    why: str = ""


def same_questions(base: Side, new: Side) -> bool:
    """Whether both are over the same questions.

    The weights of a question's replicates come from its id, so their sums over a set of questions are the set's mark.
    """
    return all(_marks_agree(key, base, new) for key in base.sums if key.slice == ALL)


def differences(base: Side, new: Side, metrics: Sequence[Metric], task: str) -> Iterator[Difference]:
    """All published numbers, first of all rows, then slice by slice."""
    by_name = {metric.name: metric for metric in metrics}
    keys = sorted(
        {*base.sums, *new.sums}, key=lambda key: (key.slice[0], key.slice[1] == NONE, key.slice[1], key.metric)
    )
    told: set[tuple[Slice, str]] = set()  # two metrics may publish the same number
    for key in keys:
        for made in _of_sums(key, (base, new), by_name[key.metric], task):
            if (made.slice, made.key) not in told:
                told.add((made.slice, made.key))
                yield made


@dataclass(frozen=True)
class _Known:
    """What one run says of a slice."""

    questions: int
    stats: dict[str, Stat]
    why: str


def _of_sums(key: Key, sides: tuple[Side, Side], metric: Metric, task: str) -> Iterator[Difference]:
    old, new = (_known(side, key, metric, task) for side in sides)
    notes = [note for note in (old.why, new.why) if note]
    if not notes and not _marks_agree(key, *sides):
        notes.append(f"other questions in the two runs ({old.questions} in base, {new.questions} in new)")
    for name in dict.fromkeys([*old.stats, *new.stats]):
        yield _difference(key.slice, name, old, new, "; ".join(notes))


def _known(side: Side, key: Key, metric: Metric, task: str) -> _Known:
    if key not in side.sums:
        return _Known(0, {}, f"no such row in {side.label}")
    terms = by_term(metric, side.sums[key])
    found = metric.final({name: terms[name] for name in metric.terms}, task)
    why = side.why or withheld(terms, side.max_failed)
    if why:
        found = {name: stat._replace(value=np.full_like(stat.value, np.nan)) for name, stat in found.items()}
        why = f"withheld in {side.label}: {why}"
    return _Known(int(terms["questions"][0]), found, why)


def _difference(of: Slice, name: str, base: _Known, new: _Known, note: str) -> Difference:
    old, now = base.stats.get(name), new.stats.get(name)
    made = Difference(
        slice=of,
        key=name,
        base=_point(old),
        new=_point(now),
        base_n=old.n if old else None,
        new_n=now.n if now else None,
        note=note,
    )
    if not note and (missing := [label for label, value in (("base", made.base), ("new", made.new)) if value is None]):
        made = replace(made, note=f"not applicable in {' and '.join(missing)}")
    if made.note or not old or not now or made.base is None or made.new is None:
        return made
    low, high = paired_interval(old, now, min(base.questions, new.questions)) or (None, None)
    same = bool(np.array_equal(old.value, now.value, equal_nan=True))
    return replace(made, difference=made.new - made.base, low=low, high=high, unchanged=same)


def _point(stat: Stat | None) -> float | None:
    return float(stat.value[0]) if stat and math.isfinite(stat.value[0]) else None


def _marks_agree(key: Key, base: Side, new: Side) -> bool:
    """Whether the sums of the questions' weights, the last of all terms (`trust.sums.term_names`), are the same."""
    return key in new.sums and np.array_equal(base.sums[key][:, -1], new.sums[key][:, -1])
