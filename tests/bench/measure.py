"""Sides of a comparison that take turns in one run, and what is said of them."""

import os
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Pair = dict[str, Any]  # premise, hypothesis and, where known, label


@dataclass(frozen=True)
class Answers:
    """Labels in the order of the pairs, and the seconds they took with the model loaded."""

    labels: list[int]
    seconds: float

    @property
    def rate(self) -> float:
        return len(self.labels) / self.seconds


Side = Callable[[Sequence[Pair]], Answers]


@dataclass(frozen=True)
class Ratio:
    """A ratio of rates: median, lowest and highest of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> "Ratio":
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))

    def against(self, bar: float) -> str:
        """The ratio in words, with what it has to reach."""
        met = "met" if self.median >= bar else "NOT met"
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f}); at least {bar:.2f}: {met}"


def spread(pairs: Sequence[Pair], count: int | None) -> list[Pair]:
    """`count` pairs from the shortest to the longest, evenly; None is all."""
    ordered = sorted(pairs, key=lambda pair: len(pair["premise"]) + len(pair["hypothesis"]))
    count = min(count or len(ordered), len(ordered))
    return [ordered[i * len(ordered) // count] for i in range(count)]


def parts(pairs: Sequence[Pair], count: int) -> list[list[Pair]]:
    """`count` parts of the pairs that hold short and long ones alike, together all of them."""
    ordered = spread(pairs, None)
    return [ordered[start::count] for start in range(min(count, len(ordered)))]


def take_turns(sides: dict[str, Side], rounds: Sequence[Sequence[Pair]]) -> dict[str, list[Answers]]:
    """Every side on every round's pairs; who begins changes, so that a slow spell hits all alike."""
    found: dict[str, list[Answers]] = {name: [] for name in sides}
    for number, pairs in enumerate(rounds):
        order = list(sides) if number % 2 == 0 else list(reversed(sides))
        for name in order:
            found[name].append(sides[name](pairs))
        rates = ", ".join(f"{name} {found[name][-1].rate:.2f}" for name in sides)
        print(f"  round {number + 1} of {len(rounds)}, {len(pairs)} pairs: {rates} pairs/s", flush=True)
    return found


def rate(answers: Sequence[Answers]) -> float:
    """Median of the rounds, pairs a second."""
    return statistics.median(answer.rate for answer in answers)


def unequal(answers: Sequence[Answers], rounds: Sequence[Sequence[Pair]], to: Sequence[Answers] | None = None) -> int:
    """Labels that differ from those of the other side, or from the known ones."""
    known = [a.labels for a in to] if to else [[pair["label"] for pair in pairs] for pairs in rounds]
    return sum(
        a != b for mine, theirs in zip(answers, known, strict=True) for a, b in zip(mine.labels, theirs, strict=True)
    )


def machine() -> str:
    """This machine in one line."""
    from trust.ask import bf16

    processor = platform.processor() or platform.machine()
    with_bf16 = "without" if bf16.without_instructions() else "with"
    return f"{os.cpu_count()} CPUs ({processor}), {with_bf16} bfloat16 instructions, load {os.getloadavg()[0]:.1f}"
