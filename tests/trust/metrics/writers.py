"""A language model for tests: answers `complete` by a rule, and keeps what it was asked."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from trust.ask import Completion, Embedding
from trust.metrics import RowScore

Answer = str | Completion


class Writer:
    """Answers by `rule(messages as text, sampling)`; embeds by `vectors`."""

    def __init__(
        self, rule: Callable[[str, dict[str, Any]], Answer], vectors: Callable[[str], Any] | None = None
    ) -> None:
        self._rule, self._vectors = rule, vectors
        self.asked: list[tuple[str, dict[str, Any], Any]] = []

    async def complete(
        self, messages: Any, sampling: dict[str, Any], schema: dict[str, Any] | None = None, *, role: str = ""
    ) -> Completion:
        text = messages if isinstance(messages, str) else "\n".join(message["content"] for message in messages)
        self.asked.append((text, sampling, schema))
        answer = self._rule(text, sampling)
        return answer if isinstance(answer, Completion) else Completion(answer, "stop", 1, 1)

    async def embed(self, text: str) -> Any:
        assert self._vectors is not None
        return Embedding(self._vectors(text))

    async def entails(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is to be judged here")


def run(metric: Any, rows: Iterable[dict[str, Any]], ask: Any) -> list[RowScore]:
    """Scores of rows, in order."""

    async def score() -> list[RowScore]:
        return [await metric.row(row, ask) for row in rows]

    return asyncio.run(score())
