"""Recall of documents, and the few that hold most gold answers together (facts B4)."""

from collections.abc import Iterable, Sequence

from trust.metrics.em5 import TOP


def rec_score(found: Iterable[int], task: str) -> float:
    """Recall of a document, or of a set of them, in percent: 100 found / all; for em5 both are counted up to 5 (facts B4).

    Args:
        found: 0 or 1 for each gold answer, at least one of them.
    """
    flags = list(found)
    return 100.0 * min(_top(task, len(flags)), sum(flags)) / _top(task, len(flags))


def oracle_set(labels: Sequence[Sequence[int]], task: str, size: int, way: str) -> list[int]:
    """Indexes of the documents that hold most gold answers together, found greedily (facts B4).

    The `size` documents with the highest recall, equal ones in their order, are the start. Then place by place the document
    outside by which the recall of all grows most is swapped in, of equal ones the first in that order. With
    `until_no_gain` and at most `size` answers nothing that any document holds is missed.

    Args:
        labels: `answers_found` of each document.
        way: `one_pass` over the places, or `until_no_gain`, where a document that went out may return.
    """
    masks = [sum(1 << index for index, found in enumerate(label) if found) for label in labels]
    top = _top(task, len(labels[0]))

    def value(mask: int) -> int:
        return min(top, mask.bit_count())

    order = sorted(range(len(labels)), key=lambda index: -value(masks[index]))
    rank = {index: place for place, index in enumerate(order)}
    chosen, rest = order[:size], order[size:]
    swapped = True
    while swapped:
        swapped = False
        for place in range(len(chosen)):
            others = _union(masks[index] for index in chosen[:place] + chosen[place + 1 :])
            best = max(rest, key=lambda index: value(others | masks[index]), default=None)
            if best is None or value(others | masks[best]) <= value(others | masks[chosen[place]]):
                continue
            rest.remove(best)
            if way == "until_no_gain":
                rest = sorted([*rest, chosen[place]], key=rank.__getitem__)
                swapped = True
            chosen[place] = best
    return chosen


def _union(masks: Iterable[int]) -> int:
    made = 0
    for mask in masks:
        made |= mask
    return made


def _top(task: str, answers: int) -> int:
    return min(TOP, answers) if task == "em5" else answers
