"""Outputs that people have rated, in the forms in which SummEval, Topical-Chat, QAGS and WikiEval were published.

Each becomes rows in this project's own form, with two columns more: `ratings`, dimension -> what people said, one number or a
list of one an annotator, and `metrics`, name -> a score that comes with the file. So the same file can be evaluated
(`jobs.evaluate data=summeval`) and compared with what people say of it (`jobs.agree data=summeval`).
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from trust.errors import RowError
from trust.prepare.fields import items, show, wrong_type

KINDS = ("unieval", "summeval", "wikieval")

# WikiEval: what is rated -> the better and the worse of two answers to the same question, as a model's name.
WIKIEVAL_PAIRS = {
    "faithfulness": ("answer", "ungrounded_answer"),
    "answer_relevance": ("answer", "poor_answer"),
    "context_relevance": ("answer", "context_v2"),
}
_WIKIEVAL = {"answer": "answer", "ungrounded_answer": "ungrounded_answer", "poor_answer": "poor_answer"}
_NO_QUESTION = "(the form has no question: what was given is in the context)"


def to_rows(raw: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The row in this project's form: one a system whose output it holds.

    Raises:
        RowError: names the field at fault.
    """
    if kind == "summeval":
        return [_summeval(raw)]
    return _wikieval(raw) if kind == "wikieval" else [_unieval(raw)]


def _unieval(raw: dict[str, Any]) -> dict[str, Any]:
    """UniEval's JSON: data to text, SummEval, QAGS, and Topical-Chat, in which `source` is the dialogue so far and `context` the
    fact that it rests on; there a row has no id of its own, so that one is made of the two."""
    source, fact = _needed(raw, "source"), raw.get("context")
    own = raw.get("doc_id")
    made = {
        "id": _digest(source, fact) if own is None else own,
        "question": _NO_QUESTION,
        "output": _needed(raw, "system_output"),
        "references": _references(raw.get("reference")),
        "docs": [],
        "ratings": _object(raw, "scores"),
        "metrics": _object(raw, "predict_scores"),
    }
    made |= {"source": source} if fact is None else {"history": source, "fact": fact}
    return made | _model(raw.get("system_id"))


def _summeval(raw: dict[str, Any]) -> dict[str, Any]:
    """SummEval's own JSON Lines: three experts and five turkers a summary; sixteen systems and eleven references a text."""
    made = {
        "id": _needed(raw, "id"),
        "question": _NO_QUESTION,
        "output": _needed(raw, "decoded"),
        "references": _references(raw.get("references", raw.get("reference"))),
        "docs": [],
        "ratings": _by_dimension(raw, "expert_annotations"),
        "turker_ratings": _by_dimension(raw, "turker_annotations"),
        "metrics": {
            name.removeprefix(f"{key}."): value
            for key, scores in raw.items()
            if key.startswith("metric_scores") and isinstance(scores, dict)
            for name, value in _flat(scores, key)
        },
    }
    text = raw.get("text") or raw.get("article")
    return made | ({} if text is None else {"source": text}) | _model(raw.get("model_id"))


def _wikieval(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """WikiEval: of each question a good answer, one without the context, an incomplete one, and the good one over a padded
    context. Who wrote them meant the first to be better than each of the others, and annotators agreed."""
    question = _needed(raw, "question")
    given = {name: _needed(raw, column) for name, column in _WIKIEVAL.items()}
    given["context_v2"] = given["answer"]
    scores = _object(raw, "metrics")
    rows = []
    for name, output in given.items():
        context = "context_v2" if name == "context_v2" else "context_v1"
        rated = {dimension: 1 - pair.index(name) for dimension, pair in WIKIEVAL_PAIRS.items() if name in pair}
        own = scores.get(name) or {}
        rows.append(
            {
                "id": _digest(question),
                "question": question,
                "output": output,
                "model": name,
                "docs": items(raw.get(context), context),
                "references": [],
                "ratings": rated,
                "metrics": own,
            }
        )
    return rows


def _by_dimension(raw: Mapping[str, Any], field: str) -> dict[str, list[Any]]:
    """A list of what each annotator said of all dimensions, turned into lists a dimension."""
    said = items(raw.get(field), field)
    if wrong := next((one for one in said if not isinstance(one, dict)), None):
        raise wrong_type(wrong, "an object, dimension to rating", field)
    names = dict.fromkeys(name for one in said for name in one)
    return {name: [one.get(name) for one in said] for name in names}


def _flat(scores: Mapping[str, Any], path: str) -> list[tuple[str, Any]]:
    """The numbers in nested objects, by dotted name."""
    found: list[tuple[str, Any]] = []
    for name, value in scores.items():
        where = f"{path}.{name}"
        if isinstance(value, dict):
            found += _flat(value, where)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((where, value))
    return found


def _needed(raw: Mapping[str, Any], field: str) -> Any:
    if raw.get(field) is None:
        raise RowError("missing_field", f"the row has no {field}", field)
    return raw[field]


def _object(raw: Mapping[str, Any], field: str) -> dict[str, Any]:
    found = raw.get(field)
    if found is not None and not isinstance(found, dict):
        raise RowError("invalid_type", f"{field} is {show(found)}; it must be an object", field)
    return found or {}


def _references(value: Any) -> list[Any]:
    return [] if value is None else [value] if isinstance(value, str) else items(value, "references")


def _model(name: Any) -> dict[str, str]:
    return {} if name is None else {"model": str(name)}


def _digest(*parts: Any) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
