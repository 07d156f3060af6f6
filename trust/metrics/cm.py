"""Answer correctness by claim match (task cm, ELI5, ExpertQA): which gold claims the response entails."""

import asyncio

from trust.ask import Ask
from trust.compat import Choices
from trust.metrics import Stat, correctness
from trust.metrics.ratios import Sums
from trust.metrics.response import Reading
from trust.text.normalize import has_content

KEYS = (
    "regular_claims_nli",
    "answered_claims_nli",
    "calib_answered_claims_nli",
    "calib_answerable_claims_nli",
    "calib_claims_nli_f1",
    "parametric_answered_claims_nli",
)
_ORDER = (0, 1, 2, 3, 5, 4)


async def found(reading: Reading, ask: Ask, choices: Choices) -> list[bool]:
    """Per gold claim, whether the whole response without its citations entails it.

    One ask a claim: role `claim`, `sentence` is the claim's index. A refusal or an empty response entails nothing, and
    nobody is asked about it in strict mode.
    """
    if choices.empty_asks == "skipped" and reading.response != "answered":
        return [False] * len(reading.answers)
    return list(await asyncio.gather(*(_entails(reading, i, ask, choices) for i in range(len(reading.answers)))))


async def _entails(reading: Reading, index: int, ask: Ask, choices: Choices) -> bool:
    claim = reading.answers[index][0] if reading.answers[index] else ""
    if choices.empty_asks == "skipped" and not has_content(claim):
        return False
    return bool((await ask.entails(reading.plain, claim, role="claim", sentence=index)).label)


def final(sums: Sums, choices: Choices) -> dict[str, Stat]:
    """The published statistics of task cm."""
    made = correctness.final(sums, choices, KEYS)
    return {KEYS[i]: made[KEYS[i]] for i in _ORDER}
