"""NoMIRACL's rows in the published form (`trust.prepare.trust_format`), which validates them as all others.

A row is one of
- a released result: `query_id`, `docids`, `prompt` (with question and passages), `template`, `results` (model -> output);
- a query with its passages: `query_id`, `query`, `positive_passages`, `negative_passages`;
- the same with `passages` in an order that is to be kept, as `trust.prepare.pools` makes it.

Language and subset come from the row, else from its file's name: `relevant.en.*`, `en.test.non_relevant.*`, or a folder that is
called so (`non-relevant/en.test.*`).
"""

import hashlib
import posixpath
import re
from typing import Any

from trust.errors import RowError
from trust.metrics.nomiracl import SUBSETS
from trust.prepare.config import DataConfig
from trust.prepare.fields import show

_QUESTION = re.compile(r"QUESTION:\s*(.*?)\s*CONTEXTS:\s*(.*?)\s*(?:\n\s*OUTPUT:\s*)?\Z", re.DOTALL)
_PASSAGE = re.compile(r"^\[(\d+)\] ", re.MULTILINE)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_NAMES = {
    "arabic": "ar",
    "bengali": "bn",
    "german": "de",
    "english": "en",
    "spanish": "es",
    "persian": "fa",
    "finnish": "fi",
    "french": "fr",
    "hindi": "hi",
    "indonesian": "id",
    "japanese": "ja",
    "korean": "ko",
    "russian": "ru",
    "swahili": "sw",
    "telugu": "te",
    "thai": "th",
    "yoruba": "yo",
    "chinese": "zh",
}
_NO_LANGUAGE = {"dev", "test", "train"}


def to_rows(raw: dict[str, Any], data: DataConfig, file: str) -> list[dict[str, Any]]:
    """The row in the published form: one a model of a released result (one without output where outputs are ignored), else
    one.

    Args:
        file: where it stands.

    Raises:
        RowError: names the field at fault.
    """
    where, subset = place(file)
    language = raw.get("language") or data.language or where
    subset = raw.get("subset") or subset
    query = raw.get("query_id")
    if not isinstance(query, str | int) or isinstance(query, bool) or query == "":
        raise RowError("missing_field", "the row has no query_id", "query_id")
    if not language:
        raise RowError("missing_field", "neither the row nor its file's name says the language", "language")
    if subset not in SUBSETS:
        raise RowError("missing_field", f"neither the row nor its file's name says the subset {SUBSETS}", "subset")
    known: dict[str, Any] = {
        "id": f"{language}.{subset}.{query}",
        "language": language,
        "subset": subset,
        "task": "none",
        "answers": [],
    }
    if "results" in raw:
        return _released(raw, known, data)
    if "passages" in raw:
        kept = {key: value for key, value in raw.items() if key not in ("query_id", "query", "passages")}
        return [kept | known | {"question": raw["query"], "docs": raw["passages"]}]
    if "positive_passages" in raw or "negative_passages" in raw:
        return [known | _pooled(raw, str(query))]
    raise RowError(
        "missing_field", "the row has neither results nor positive_passages and negative_passages", "results"
    )


def place(file: str) -> tuple[str | None, str | None]:
    """Language and subset as a path tells them; None where it does not."""
    folder, name = posixpath.split(file)
    parts = [part.lower() for part in (*name.split("."), *reversed(folder.split("/")))]
    subset = next((found for part in parts if (found := _subset(part))), None)
    stem = name.lower().split(".")[:-1]
    codes = [part for part in stem if _LANGUAGE.fullmatch(part) and part not in _NO_LANGUAGE]
    return next(iter(codes), None) or language_named(folder), subset


def language_named(folder: str) -> str | None:
    """The language that a folder is called by: `english`, `en` or `nomiracl-v1.0-en`."""
    last = posixpath.basename(folder.rstrip("/")).lower()
    if last in _NAMES:
        return _NAMES[last]
    code = last.rpartition("-")[2]
    return code if code in _NAMES.values() else None


def _subset(part: str) -> str | None:
    plain = part.replace("-", "_")
    if plain.startswith("non_relevant"):
        return "non_relevant"
    return "relevant" if plain.startswith("relevant") else None


def _released(raw: dict[str, Any], known: dict[str, Any], data: DataConfig) -> list[dict[str, Any]]:
    results = raw["results"]
    if not isinstance(results, dict) or not results:
        raise RowError("missing_output", f"results is {show(results)}; it must give an output a model", "results")
    question, docs = _read_prompt(raw.get("prompt"), raw.get("docids"))
    row = known | {
        "question": question or f"(query {raw['query_id']}; its prompt is not in the file)",
        "docs": docs,
    }
    if data.outputs == "ignore":
        return [row]
    template = raw.get("template")
    prompt = template if isinstance(template, str) and template else data.prompt
    return [row | {"model": model, "prompt": prompt, "output": output} for model, output in results.items()]


def _read_prompt(prompt: Any, docids: Any) -> tuple[str, list[dict[str, Any]]]:
    """Question and passages of a released prompt; nothing where it is null or of another form."""
    match = _QUESTION.search(prompt) if isinstance(prompt, str) else None
    if not match:
        return "", []
    pieces = _PASSAGE.split(match[2])[2::2]
    ids = docids if isinstance(docids, list) and len(docids) == len(pieces) else [None] * len(pieces)
    docs = []
    for piece, docid in zip(pieces, ids, strict=True):
        title, colon, text = piece.strip().partition(": ")
        docs.append({"id": docid, "title": title if colon else "", "text": text if colon else piece.strip()})
    return match[1], docs


def _pooled(raw: dict[str, Any], query: str) -> dict[str, Any]:
    """Passages in an order by lot, the same every time: in the file those that answer come first."""
    passages: list[tuple[str, dict[str, Any]]] = []
    for field, relevant in (("positive_passages", 1), ("negative_passages", 0)):
        listed = raw.get(field) or []
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise RowError("wrong_type", f"{field} must be a list of passages", field)
        for item in listed:
            lot = hashlib.sha256(f"{query}\0{item.get('docid')}".encode()).hexdigest()
            doc = {"id": item.get("docid"), "title": item.get("title"), "text": item.get("text")}
            passages.append((lot, doc | {"relevant": relevant}))
    docs = [doc for _, doc in sorted(passages, key=lambda one: one[0])]
    return {
        "question": raw.get("query"),
        "docs": [{name: doc[name] for name in ("id", "title", "text")} for doc in docs],
        "relevant_passages": [doc["id"] for doc in docs if doc["relevant"]],
    }
