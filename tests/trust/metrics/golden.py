"""Helpers: the published JSON form as rows of responses, a judge that replays answers, and sums over rows."""

import asyncio
import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from trust.ask import Verdict
from trust.metrics import RowScore, Stat
from trust.metrics.trust_score import TrustScore, TrustScoreConfig

Pair = tuple[str, str]
TASKS = {"asqa": "em", "qampari": "em5", "eli5": "cm"}


def to_row(item: dict[str, Any], task: str, language: str = "en") -> dict[str, Any]:
    """A row of the responses table from an item in the published form."""
    docs = item.get("docs")
    return {
        "sample_id": str(item.get("id", item.get("question"))),
        "task": task,
        "language": language,
        "question": item.get("question", "q"),
        "answers": item.get("answers"),
        "docs": None if docs is None else [_to_doc(doc) for doc in docs],
        "output": item.get("output"),
    }


def _to_doc(doc: dict[str, Any]) -> dict[str, Any]:
    labels = {"answers_found": doc.get("answers_found")}
    return {"title": doc.get("title"), "text": doc.get("sent", doc.get("text", ""))} | labels


class Replay:
    """Answers `entails` from a dict, or by a rule; a pair that it does not know is an error. Keeps what was asked."""

    def __init__(self, known: dict[Pair, int] | Callable[[str, str], int]) -> None:
        self._known = known
        self.asked: list[tuple[str, str, str]] = []
        self.where: list[tuple[str, int | None, int | None]] = []

    async def entails(
        self, premise: str, hypothesis: str, *, role: str = "", sentence: int | None = None, doc: int | None = None
    ) -> Verdict:
        self.asked.append((role, premise, hypothesis))
        self.where.append((role, sentence, doc))
        if callable(self._known):
            label = self._known(premise, hypothesis)
        else:
            assert (premise, hypothesis) in self._known, f"upstream never asked this: {premise!r} -> {hypothesis!r}"
            label = self._known[premise, hypothesis]
        return Verdict(label, float(label))

    async def complete(self, messages: Any, sampling: dict[str, Any]) -> Any:
        raise AssertionError("Trust-Score never asks for completions")


def all_words(premise: str, hypothesis: str) -> int:
    """1 if every word of the hypothesis stands in the premise."""
    words = {word.strip(".,") for word in premise.lower().split()}
    return int(all(word.strip(".,") in words for word in hypothesis.lower().split()))


def load(folder: Path) -> tuple[list[dict[str, Any]], dict[str, float], dict[str, dict[str, Any]], dict[Pair, int]]:
    """Items, expected result, expected per-item values and judge labels of a golden folder."""
    items = json.loads((folder / "input.json").read_text())["data"]
    expected = json.loads((folder / "expected.json").read_text())
    per_item = {entry["id"]: entry for entry in json.loads(gzip.decompress((folder / "items.json.gz").read_bytes()))}
    labels = json.loads(gzip.decompress((folder / "nli_labels.json.gz").read_bytes()))
    return items, expected, per_item, {(entry["premise"], entry["hypothesis"]): entry["label"] for entry in labels}


def run(metric: TrustScore, rows: Iterable[dict[str, Any]], ask: Replay) -> list[RowScore]:
    """Scores of rows, in order."""

    async def all_rows() -> list[RowScore]:
        return [await metric.row(row, ask) for row in rows]

    return asyncio.run(all_rows())


def one(output: str, compat: str = "strict", task: str = "none", ask: Any = all_words, **fields: Any) -> RowScore:
    """Score of one response to a made-up question."""
    config = fields.pop("config", TrustScoreConfig())
    row = {
        "sample_id": "s",
        "task": task,
        "language": fields.pop("language", "en"),
        "question": fields.pop("question", "q"),
        "answers": fields.pop("answers", None),
        "docs": fields.pop("docs", []),
        "output": output,
    }
    assert not fields, fields
    judge = ask if isinstance(ask, Replay) else Replay(ask)
    return run(TrustScore(config, compat), [row], judge)[0]


def total(metric: TrustScore, scores: Iterable[RowScore]) -> dict[str, np.ndarray]:
    """Sums of terms, as `final` wants them, without resamples."""
    scores = list(scores)
    for score in scores:
        assert not set(score.terms) - set(metric.terms)
    return {name: np.array([sum(score.terms.get(name, 0.0) for score in scores)]) for name in metric.terms}


def published(metric: TrustScore, scores: Iterable[RowScore], task: str) -> dict[str, float]:
    """Point estimates by published key; NaN is not applicable."""
    return {key: float(stat.value[0]) for key, stat in final(metric, scores, task).items()}


def final(metric: TrustScore, scores: Iterable[RowScore], task: str) -> dict[str, Stat]:
    return metric.final(total(metric, scores), task)
