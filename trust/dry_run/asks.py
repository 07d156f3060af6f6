"""How many asks metrics make of a judge, counted before there is a judge.

What is asked may hang on earlier answers (a citation alone is asked about only where all cited documents together entail the
sentence), so the metrics are run with judges that answer without reading, each in one extreme way.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trust.ask import Completion, Embedding, Verdict, ask_hash
from trust.errors import RowError
from trust.metrics import Metric

ANSWERS: dict[str, Callable[[str], bool]] = {
    "no": lambda role: False,
    "yes": lambda role: True,
    "yes, but never for one citation alone": lambda role: role != "citation_precision",
}


@dataclass
class Asked:
    """What the metrics ask about one response.

    Attributes:
        pairs: hash -> `premise`, `hypothesis` and `role` of each different pair, over all judges of `ANSWERS`, in the order
            asked.
        least, most: different pairs under the judge that is asked least and most.
    """

    pairs: dict[str, dict[str, str]] = field(default_factory=dict)
    least: int = 0
    most: int = 0


class _Recorder:
    """Answers by the role of an ask alone, and writes down what was asked (`trust.ask.Ask`)."""

    def __init__(self, says: Callable[[str], bool]) -> None:
        self._says = says
        self.pairs: dict[str, dict[str, str]] = {}

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict:
        key = ask_hash("entails", {"premise": premise, "hypothesis": hypothesis})
        self.pairs.setdefault(key, {"premise": premise, "hypothesis": hypothesis, "role": role})
        says = self._says(role)
        return Verdict(int(says), float(says))

    async def complete(self, *_: Any, **__: Any) -> Completion:
        raise RuntimeError("a metric asks for text: a dry run counts only what it asks of a judge")

    async def embed(self, text: str) -> Embedding:
        raise RuntimeError("a metric asks for vectors: a dry run counts only what it asks of a judge")


def count(rows: Sequence[Mapping[str, Any]], metrics: Sequence[Metric]) -> list[Asked]:
    """What the metrics ask about each response (a row of the table responses)."""
    return asyncio.run(_count(rows, metrics))


async def _count(rows: Sequence[Mapping[str, Any]], metrics: Sequence[Metric]) -> list[Asked]:
    return [await _asked(row, metrics) for row in rows]


async def _asked(row: Mapping[str, Any], metrics: Sequence[Metric]) -> Asked:
    asked, sizes = Asked(), []
    for says in ANSWERS.values():
        recorder = _Recorder(says)
        for metric in metrics if row["status"] == "ok" else ():
            try:
                await metric.row(row, recorder)
            except RowError:  # it will be a failed row of the run too
                continue
        asked.pairs |= {key: pair for key, pair in recorder.pairs.items() if key not in asked.pairs}
        sizes.append(len(recorder.pairs))
    asked.least, asked.most = min(sizes), max(sizes)
    return asked
