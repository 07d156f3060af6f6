"""Documents of a row, and which gold answers each holds."""

from typing import Any

from trust.errors import RowError
from trust.prepare.config import DataConfig
from trust.prepare.fields import has, items, number, optional_text, show, take, text, wrong_type

_PATHS = {
    "doc_id": ("doc_id", "id", "docid"),
    "doc_title": ("title",),
    "doc_text": ("sent", "text"),  # where there is a shortened text, it is what models and judges are shown
    "doc_score": ("score",),
    "answers_found": ("answers_found",),
    "rec_score": ("rec_score",),
}


def read_docs(value: Any, data: DataConfig, answers: int | None) -> list[dict[str, Any]]:
    """The documents of a row, as structs of the samples table.

    Args:
        value: list of objects (`text` is needed) or of plain texts; null gives an empty list.
        answers: how many gold answers the row has; null where it does not say, so that lengths cannot be compared.

    Raises:
        RowError: names document and field.
    """
    docs = [_read(doc, f"docs[{i}]", data) for i, doc in enumerate(items(value, "docs"))]
    _check_found(docs, answers)
    return docs


def _read(doc: Any, field: str, data: DataConfig) -> dict[str, Any]:
    if isinstance(doc, str):
        doc = {data.columns.get("doc_text") or "text": doc}
    if not isinstance(doc, dict):
        raise wrong_type(doc, "an object or text", field)
    body = _look_up(doc, "doc_text", data)
    if body is None:
        looked = data.columns.get("doc_text") or "text"
        raise RowError("missing_field", f"{field} has no text (looked for `{looked}`)", f"{field}.text")
    labels = data.columns.get("answers_found")
    if labels and not has(doc, labels):
        raise RowError(
            "missing_field", f"data.columns.answers_found={labels}, but {field} has no such field", f"{field}.{labels}"
        )
    title = _look_up(doc, "doc_title", data)
    return {
        "doc_id": _doc_id(_look_up(doc, "doc_id", data), f"{field}.id"),
        "title": "" if title is None else text(title, f"{field}.title"),
        "text": text(body, f"{field}.text"),
        "score": number(_look_up(doc, "doc_score", data), f"{field}.score"),
        "answers_found": _found(_look_up(doc, "answers_found", data), f"{field}.answers_found"),
        "rec_score": number(_look_up(doc, "rec_score", data), f"{field}.rec_score"),
    }


def _look_up(doc: dict[str, Any], name: str, data: DataConfig) -> Any:
    mapped = data.columns.get(name)
    paths = _PATHS[name] if mapped is None else (mapped,) if mapped else ()
    return next((value for path in paths if (value := take(doc, path)[0]) is not None), None)


def _doc_id(value: Any, field: str) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return optional_text(value, field)


def _found(value: Any, field: str) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise wrong_type(value, "a list of 0 and 1", field)
    for i, mark in enumerate(value):
        if not isinstance(mark, bool | int | float) or mark not in (0, 1):
            raise RowError("invalid_label", f"{field}[{i}] is {show(mark)}; it must be 0 or 1", f"{field}[{i}]")
    return [int(mark) for mark in value]


def _check_found(docs: list[dict[str, Any]], answers: int | None) -> None:
    labelled = [i for i, doc in enumerate(docs) if doc["answers_found"] is not None]
    if labelled and len(labelled) < len(docs):
        missing = next(i for i, doc in enumerate(docs) if doc["answers_found"] is None)
        raise RowError(
            "missing_field",
            f"docs[{missing}] has no answers_found, though {len(labelled)} of the {len(docs)} documents have it",
            f"docs[{missing}].answers_found",
        )
    wanted = len(docs[0]["answers_found"]) if labelled and answers is None else answers
    for i in labelled:
        length = len(docs[i]["answers_found"])
        if length != wanted:
            what = f"the row has {wanted} answers" if answers is not None else f"docs[0] has {wanted}"
            raise RowError(
                "length_mismatch",
                f"docs[{i}].answers_found has {length} entries, but {what}",
                f"docs[{i}].answers_found",
            )
