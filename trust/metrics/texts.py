"""The texts of a row that metrics show to a model or compare a response with."""

from trust.metrics import Row

AGAINST = ("references", "answers")
NAMES = ("question", "docs", "references", "source", "history", "fact", "output")


def text_of(row: Row, name: str) -> str:
    """The text of `name` (NAMES); empty where the row has none. Documents are numbered, references follow one another."""
    if name == "docs":
        docs = [
            f"[{n}] {doc.get('title') or ''}\n{doc['text']}" for n, doc in enumerate(row.get("docs") or [], start=1)
        ]
        return "\n\n".join(docs)
    if name == "references":
        return "\n\n".join(references_of(row, "references"))
    if name in ("question", "output"):
        return row.get(name) or ""
    return (row.get("context") or {}).get(name) or ""


def references_of(row: Row, against: str) -> list[str]:
    """The row's `references`, or its gold `answers` (every alias is one), as far as they hold something."""
    if against == "references":
        found = row.get("references") or []
    else:
        found = [alias for aliases in row.get("answers") or [] for alias in aliases or []]
    return [text for text in found if text and text.strip()]


def source_of(row: Row) -> str:
    """What the response was written from: `context.source`, else the documents' texts, one under the other."""
    return text_of(row, "source") or "\n".join(doc["text"] for doc in row.get("docs") or [] if doc["text"])
