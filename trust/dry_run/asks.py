"""How often metrics ask, counted before there is anybody who answers.

What a judge is asked may hang on its earlier answers (a citation alone is asked about only where all cited documents together
entail the sentence), so the metrics are run with judges that answer without reading, each in one extreme way. All other
asks get no answer here: of these asks only those count that hang on no earlier answer.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trust.ask import AskFailed, Completion, Embedding, Likelihood, Verdict, ask_hash
from trust.errors import RowError
from trust.metrics import Metric

ANSWERS: dict[str, Callable[[str], bool]] = {
    "no": lambda role: False,
    "yes": lambda role: True,
    "yes, but never for one citation alone": lambda role: role != "citation_precision",
}


@dataclass(frozen=True)
class Question:
    """One ask: what is put in (as `trust.ask.runner` hashes it), and what it is for."""

    inputs: dict[str, Any]
    role: str = ""


@dataclass
class Asked:
    """What the metrics ask of one kind about one response.

    Attributes:
        questions: hash -> each different ask, over all judges of `ANSWERS`, in the order asked.
        least, most: different asks under the judge with which there are least and most.
    """

    questions: dict[str, Question] = field(default_factory=dict)
    least: int = 0
    most: int = 0


class _Recorder:
    """Answers by the role of an ask alone, and writes down what was asked (`trust.ask.Ask`)."""

    def __init__(self, says: Callable[[str], bool]) -> None:
        self._says = says
        self.questions: dict[str, dict[str, Question]] = {}

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict:
        self._keep("entails", {"premise": premise, "hypothesis": hypothesis}, role)
        says = self._says(role)
        return Verdict(int(says), float(says))

    async def complete(
        self,
        messages: list[dict[str, str]] | str,
        sampling: dict[str, Any],
        schema: dict[str, Any] | None = None,
        *,
        role: str = "",
    ) -> Completion:
        self._keep(
            "complete", {"messages": messages, "sampling": sampling} | ({"schema": schema} if schema else {}), role
        )
        raise _unanswered()

    async def logprob(self, context: str, continuation: str, *, role: str = "") -> Likelihood:
        self._keep("logprob", {"context": context, "continuation": continuation}, role)
        raise _unanswered()

    async def embed(self, text: str) -> Embedding:
        self._keep("embed", {"text": text}, "")
        raise _unanswered()

    def _keep(self, ask: str, inputs: dict[str, Any], role: str) -> None:
        self.questions.setdefault(ask, {}).setdefault(ask_hash(ask, inputs), Question(inputs, role))


def _unanswered() -> AskFailed:
    return AskFailed("dry_run", "nobody is asked in a dry run")


def count(rows: Sequence[Mapping[str, Any]], metrics: Sequence[Metric]) -> list[dict[str, Asked]]:
    """What the metrics ask about each response (a row of the table responses), by the kind of ask."""
    return asyncio.run(_count(rows, [metric for metric in metrics if metric.asks]))


async def _count(rows: Sequence[Mapping[str, Any]], metrics: Sequence[Metric]) -> list[dict[str, Asked]]:
    return [await _asked(row, metrics) for row in rows]


async def _asked(row: Mapping[str, Any], metrics: Sequence[Metric]) -> dict[str, Asked]:
    recorders = [_Recorder(says) for says in ANSWERS.values()]
    for recorder in recorders:
        for metric in metrics if row["status"] == "ok" else ():
            try:
                await metric.row(row, recorder)
            except RowError:  # a failed row of the run too, or one whose further asks hang on an answer
                continue
    found = {}
    for ask in {ask for metric in metrics for ask in metric.asks}:
        asked = [recorder.questions.get(ask, {}) for recorder in recorders]
        sizes = [len(questions) for questions in asked]
        each = {key: question for questions in asked for key, question in questions.items()}
        found[ask] = Asked(each, min(sizes), max(sizes))
    return found
