"""Ids made from content, the same on any sharding and in any order of files."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from trust.prepare.fields import text, wrong_type

SOURCE_IDS = ("id", "sample_id", "qid", "question_id")


def source_id(value: Any, field: str) -> str | None:
    """A source's own id as text: text or a whole number; null and blank mean that there is none."""
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise wrong_type(value, "text or a whole number", field)
    return text(value, field).strip() or None


def sample_id(
    dataset: str, source: str | None, question: str, texts: Sequence[str], answers: Sequence[Sequence[str]]
) -> str:
    """`{dataset}:{source id}` where the source has an id, else one made from content.

    Outputs, labels, scores, files and positions have no part in it, so that the same question over the same documents
    keeps its id whoever answers it.

    Args:
        texts: the documents' texts in their order, all of them.
    """
    if source is not None:
        return f"{dataset}:{source}"
    content = json.dumps([dataset, question, list(texts), [list(a) for a in answers]], ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:16]
