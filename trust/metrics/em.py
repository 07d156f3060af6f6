"""Answer correctness by exact match (task em, ASQA): which gold answers stand in the response."""

from trust.compat import Choices
from trust.metrics import Stat, correctness
from trust.metrics.ratios import Sums
from trust.metrics.response import Reading

KEYS = (
    "regular_str_em",
    "answered_str_em",
    "calib_answered_str_em",
    "calib_answerable_str_em",
    "calib_str_em_f1",
    "parametric_str_em",
)


def found(reading: Reading, choices: Choices) -> list[bool]:
    """Per gold answer, whether one of its aliases stands in the response without its citations."""
    text = reading.normal(reading.plain, choices)
    return [
        any(reading.holds(text, reading.normal(alias, choices), choices) for alias in aliases)
        for aliases in reading.answers
    ]


def final(sums: Sums, choices: Choices) -> dict[str, Stat]:
    """The published statistics of task em."""
    return correctness.final(sums, choices, KEYS)
