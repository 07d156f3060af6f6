"""Which of a question's supporting documents are put together, so that every support pattern occurs (facts B5 items 3-4).

A pattern says which gold answers a set of documents supports: a bit each, the first answer's the highest, so that the order
of numbers is the lexicographic one of patterns.
"""

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trust.errors import ConfigError

Subset = tuple[int, ...]  # indexes of supporting documents; what is missing to the size is filled with irrelevant ones

_MOST_SUBSETS = 200_000


@dataclass(frozen=True)
class Chosen:
    """A subset that becomes a variant."""

    pattern: int
    documents: Subset


def mask(found: Sequence[int]) -> int:
    """`answers_found` as a pattern."""
    made = 0
    for one in found:
        made = 2 * made + bool(one)
    return made


def union(masks: Iterable[int]) -> int:
    """What documents support together."""
    made = 0
    for each in masks:
        made |= each
    return made


def check_number(documents: int, size: int) -> None:
    """Raises ConfigError where that many documents have too many subsets to look at each."""
    number = sum(math.comb(documents, width) for width in range(1, size + 1))
    if number > _MOST_SUBSETS:
        raise ConfigError(
            f"variants.supporting={documents} and variants.docs={size}: {number:,} subsets a question are too many (at most "
            f"{_MOST_SUBSETS:,}); set a smaller one"
        )


def by_pattern(masks: Mapping[int, int], size: int, fillers: int) -> dict[int, list[Subset]]:
    """Pattern -> the subsets of supporting documents that have it, for all of at most `size` documents that at most `fillers`
    irrelevant ones fill up.

    Args:
        masks: index of a supporting document -> its pattern, none of them 0.
    """
    found: dict[int, list[Subset]] = {}
    for width in range(max(1, size - fillers), min(size, len(masks)) + 1):
        for subset in itertools.combinations(masks, width):
            found.setdefault(union(masks[index] for index in subset), []).append(subset)
    return found


def choose(
    found: Mapping[int, Sequence[Subset]],
    most: int,
    size: int,
    fillers: int,
    kept_back: int,
    first: bool,
    draw: random.Random,
) -> list[Chosen]:
    """At most `most` subsets: one of each pattern, then more of patterns drawn at random, without repeating one.

    Of a pattern's subsets one with more documents is likelier, in proportion. Irrelevant documents are kept back for the
    patterns that are still to come and for `kept_back`, which are short only where they cannot but be; what goes beyond one of
    each pattern takes no more than are left then.

    Args:
        found: see `by_pattern`.
        fillers: irrelevant documents there are.
        kept_back: how many of them are wanted for something else.
        first: of too many patterns the lexicographically first are taken, as published; else they are drawn.
    """
    patterns = sorted(found)
    if len(patterns) > most:
        patterns = patterns[:most] if first else sorted(draw.sample(patterns, most))
    open_ = {pattern: list(found[pattern]) for pattern in patterns}
    least = {pattern: min(size - len(subset) for subset in open_[pattern]) for pattern in patterns}
    chosen: list[Chosen] = []
    left, later = fillers - kept_back, sum(least.values())
    for pattern in patterns:
        later -= least[pattern]
        left -= _take(pattern, open_[pattern], max(left - later, least[pattern]), size, chosen, draw)
    while len(chosen) < most:
        left = max(0, left)
        fitting = [p for p in patterns if any(size - len(subset) <= left for subset in open_[p])]
        if not fitting:
            break
        pattern = draw.choice(fitting)
        left -= _take(pattern, open_[pattern], left, size, chosen, draw)
    return chosen


def thinned(masks: Mapping[int, int], most: int, covering: bool, draw: random.Random) -> dict[int, int]:
    """At most `most` supporting documents: drawn, or drawn so that, while there is room, first no answer is lost and then no
    pattern that a document has.

    Args:
        masks: index of a document -> its pattern.
    """
    if len(masks) <= most:
        return dict(masks)
    if not covering:
        return {index: masks[index] for index in sorted(draw.sample(sorted(masks), most))}
    order = sorted(masks)
    draw.shuffle(order)
    seen: set[int] = set()
    covered = 0
    rank = {}
    for index in order:
        rank[index] = 0 if masks[index] & ~covered else 1 if masks[index] not in seen else 2
        covered |= masks[index]
        seen.add(masks[index])
    kept = sorted(order, key=rank.__getitem__)[:most]
    return {index: masks[index] for index in sorted(kept)}


def _take(pattern: int, subsets: list[Subset], room: int, size: int, chosen: list[Chosen], draw: random.Random) -> int:
    """Moves one of the subsets that need at most `room` irrelevant documents to `chosen`; how many it needs."""
    fitting = [subset for subset in subsets if size - len(subset) <= room]
    subset = draw.choices(fitting, weights=[len(each) for each in fitting])[0]
    subsets.remove(subset)
    chosen.append(Chosen(pattern, subset))
    return size - len(subset)
