"""A row of a corpus as a passage.

The forms: DPR's Wikipedia (TSV with the header `id text title`), Sphere (JSON Lines with `id url title sha raw`), and what
others call the same: BEIR (`_id title text`), MIRACL (`docid title text`), Pyserini (`id contents`).
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from trust.errors import RowError
from trust.prepare.fields import text, wrong_type

NAMES = {
    "id": ("id", "_id", "doc_id", "docid", "passage_id"),
    "title": ("title",),
    "text": ("text", "raw", "contents", "passage"),
}


def passage(row: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """`doc_id`, `title` and `text` of a row, and whether the row has an id of its own.

    A row without one is called by its content: the first 16 hex digits of a sha256 over title and text.

    Args:
        columns: ours -> theirs, where they are not called by one of `NAMES`.

    Raises:
        RowError: it has no text, or what it has is none.
    """
    body = _column(row, "text", columns)
    if body is None:
        looked = columns.get("text") or ", ".join(NAMES["text"])
        raise RowError(
            "no_text", f"the passage has no text (looked for {looked}; corpus.columns.text names it)", "text"
        )
    body, title = text(body, "text"), text(_column(row, "title", columns) or "", "title")
    if not body.strip():
        raise RowError("no_text", "the passage's text is empty", "text")
    own = _column(row, "id", columns)
    if isinstance(own, bool) or not isinstance(own, str | int | None):
        raise wrong_type(own, "a text or a whole number", "id")
    name = text(str(own), "id").strip() if own is not None else ""
    content = hashlib.sha256(f"{title}\n{body}".encode()).hexdigest()[:16]
    return {"doc_id": name or content, "title": title, "text": body}, bool(name)


def whole(title: str, body: str) -> str:
    """The text of a passage as every retriever reads it: its title, then its text (facts B4: as ALCE's index has it)."""
    return f"{title}\n{body}" if title else body


def _column(row: Mapping[str, Any], name: str, columns: Mapping[str, str]) -> Any:
    if name in columns:
        return row.get(columns[name])
    return next((row[key] for key in NAMES[name] if row.get(key) is not None), None)
