"""Runs to compare: sixty questions, of which a run answers some wrongly."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.trust.report.helpers import response, unanswerable, write_run
from trust.compare import CompareConfig
from trust.runs import Run
from trust.storage import StorageConfig

RIGHT, WRONG = "The Angara flows out of Lake Baikal [1].", "The Murray does [2]."
REFUSAL = "I apologize, but I couldn't find an answer to your question in the search results."
QUESTIONS = 60


def rows(
    wrong: Collection[int] = (), questions: Collection[int] = range(QUESTIONS), **more: Any
) -> list[dict[str, Any]]:
    """One response a question; every third question is unanswerable, and a wrong response to it answers."""
    made = []
    for n in questions:
        common = {"language": "de" if n % 2 else "en", "meta": {"domain": f"d{n % 4}"}} | more
        if n % 3 == 0:
            made.append(unanswerable(n, WRONG if n in wrong else REFUSAL, **common))
        else:
            made.append(response(n, WRONG if n in wrong else RIGHT, **common))
    return made


def evaluated(root: Path, name: str, made: list[dict[str, Any]], **options: Any) -> Run:
    return write_run(root, made, name, **{"slices": ["language", "domain"], "replicates": 200} | options)


def config(root: Path, **options: Any) -> CompareConfig:
    return CompareConfig(**{"base": "base", "new": "new", "storage": StorageConfig(str(root))} | options)
