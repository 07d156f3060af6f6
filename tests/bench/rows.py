"""Rows with real questions and documents, as many as wanted: every answer is composed anew from the documents, so that
hardly any two asks are the same."""

import json
import random
import re
from pathlib import Path
from typing import Any

_TASKS = {"asqa": "em", "eli5": "cm"}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_MANY, _FEW = 5, 2  # sentences of an answer


def make(golden: Path, count: int) -> list[dict[str, Any]]:
    """`count` rows in the published form; row `i` is the same whatever the count."""
    items = []
    for name, task in _TASKS.items():
        data = json.loads((golden / name / "input.json").read_text())["data"]
        items += [item | {"task": task} for item in data if len(item["docs"]) > _FEW and _matchable(item)]
    return [_row(items[i % len(items)], i) for i in range(count)]


def _row(item: dict[str, Any], number: int) -> dict[str, Any]:
    draw = random.Random(number)
    docs = draw.sample(item["docs"], draw.randint(_FEW + 1, len(item["docs"])))
    row = {key: item[key] for key in ("question", "answers", "task")}
    return row | {"id": f"bench-{number:06d}", "docs": docs, "language": "en", "output": _answer(docs, draw)}


def _matchable(item: dict[str, Any]) -> bool:
    """Whether no gold answer is a mere article, which the job would refuse the row for."""
    return all(len(alias) > len("the") for aliases in item["answers"] for alias in aliases)


def _answer(docs: list[dict[str, Any]], draw: random.Random) -> str:
    """Sentences of the documents, most cited rightly, some with a second document that does not say so."""
    sentences = [
        (text.rstrip(".!? "), number)
        for number, doc in enumerate(docs, 1)
        for text in _SENTENCE_END.split(doc["text"])
        if text.strip()
    ]
    chosen = draw.sample(sentences, min(len(sentences), draw.randint(_FEW, _MANY)))
    parts = []
    for text, number in chosen:
        cited = [number] if draw.random() < 0.8 else []
        if draw.random() < 0.3:
            cited.append(draw.randint(1, len(docs)))
        parts.append(text + "".join(f" [{n}]" for n in cited) + ".")
    return " ".join(parts)
