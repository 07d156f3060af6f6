"""The chosen rows as the page embeds them: plain JSON, cut to size, with all that explains a score."""

import json
import math
from typing import Any

from trust import tables
from trust.report.explain import Verdicts, explain
from trust.report.sample import Choice, Group, Key, badness, stream
from trust.storage import Storage

MAX_ROWS = 400
MAX_BYTES = 10_000_000
_LONG = 20_000  # characters of an output or question
_DOC = 4_000  # characters of a document
_DOCS = 20  # documents shown that are neither cited nor hold an answer
_MANY = 300  # sentences of a response, citations of a sentence, gold answers
_STATES = ("answerable", "answered", "refused", "empty")  # said by the decision already

Parts = list[dict[str, Any]]


def gather(
    storage: Storage,
    scores: Parts,
    responses: Parts,
    choices: dict[Group, Choice],
    verdicts: Verdicts,
    max_bytes: int = MAX_BYTES,
) -> tuple[list[dict[str, Any]], dict[Group, list[str]]]:
    """The chosen rows with their scores, and per data set why each of them is shown.

    Rows are taken in turn from the data sets until `max_bytes` of JSON are full; what no longer fits is left out.
    """
    wanted = {key for choice in choices.values() for key in choice.keys}
    found: dict[Key, list[dict[str, Any]]] = {}
    for row in _chosen(storage, scores, wanted):
        found.setdefault(tables.row_key(row), []).append(row)
    shaped = {}
    for row in _chosen(storage, responses, wanted):
        if tables.row_key(row) in found:
            shaped[tables.row_key(row)] = shape(row, found[tables.row_key(row)], verdicts)
    index = {group: at for at, group in enumerate(choices)}
    reasons: dict[Group, list[str]] = {group: [] for group in choices}
    kept: list[dict[str, Any]] = []
    size = 0
    for group, key, why in _in_turn(choices):
        if key not in shaped:
            continue
        row = shaped[key] | {"group": index[group], "why_shown": why}
        size += len(json.dumps(row, ensure_ascii=False).encode())
        if size > max_bytes and kept:
            break
        kept.append(row)
        reasons[group].append(why)
    return kept, reasons


def shape(row: dict[str, Any], scores: list[dict[str, Any]], verdicts: Verdicts) -> dict[str, Any]:
    """One response with its scores, as the page shows it (keys are read by `report.js`)."""
    traces = [json.loads(score["trace"]) for score in scores if score.get("trace")]
    told = [trace for trace in traces if trace.get("sentences") is not None]
    any_trace: dict[str, Any] = next(iter(traces), {})
    trace: dict[str, Any] = next((trace for trace in told if not trace.get("judged")), next(iter(told), any_trace))
    others = [
        reason for other in traces if other is not trace and "reasons" in other for reason in explain(other, {}, {})
    ]
    values = {name: value for score in scores for name, value in (score["values"] or {}).items()}
    answers = row["answers"] or []
    gold = [{"answer": (aliases or [""])[0], "aliases": aliases or []} for aliases in answers]
    sentences = [_sentence(sentence, row) for sentence in (trace.get("sentences") or [])[:_MANY]]
    cited = {citation["doc"] for sentence in sentences for citation in sentence["citations"]}
    docs, left = _docs(row["docs"] or [], answers, cited)
    status, reason, detail = _outcome(row, scores)
    return {
        "id": row["sample_id"],
        "draw": row["draw"],
        "dataset": row["dataset"],
        "task": row["task"],
        "language": row["language"],
        "language_rules": trace.get("language", "supported"),
        "model": row["model"],
        "prompt": row["prompt"],
        "question": _clip(row["question"], _LONG),
        "output": None if row["output"] is None else _clip(row["output"], _LONG),
        "finish": row["finish_reason"],
        "tokens": row["output_tokens"],
        "status": status,
        "reason": reason,
        "detail": detail,
        "response": trace.get("response"),
        "answerable": trace.get("answerable"),
        "badness": _number(badness(values)),
        "docs": docs,
        "docs_left": left,
        "answers": [_answer(answer) for answer in (trace.get("answers") or gold)[:_MANY]],
        "items": [
            {"text": _clip(item.get("text") or "", _DOC), "correct": bool(item.get("correct"))}
            for item in (trace.get("predictions") or [])[:_MANY]
        ],
        "sentences": sentences,
        "why": explain(trace, values, verdicts) + others,
        "values": {name.replace("_", " "): _number(values[name]) for name in sorted(values) if name not in _STATES},
    }


def _chosen(storage: Storage, parts: Parts, wanted: set[Key]) -> Any:
    ids = {key[0] for key in wanted}
    for part in parts:
        for row in stream(storage, part["path"], sample_ids=ids):
            if tables.row_key(row) in wanted:
                yield row


def _in_turn(choices: dict[Group, Choice]) -> list[tuple[Group, Key, str]]:
    """One row of each data set after the other."""
    deepest = max((len(choice.keys) for choice in choices.values()), default=0)
    listed = {group: list(choice.keys.items()) for group, choice in choices.items()}
    return [(group, *listed[group][at]) for at in range(deepest) for group in choices if at < len(listed[group])]


def _outcome(row: dict[str, Any], scores: list[dict[str, Any]]) -> tuple[str, str | None, str | None]:
    """The outcome that says most: a response that failed, then scores that failed, were made, do not apply."""
    by_status = {score["status"]: score for score in reversed(scores)}
    statuses = ("failed", "scored", "na")
    found = row if row["status"] == "failed" else next(by_status[s] for s in statuses if s in by_status)
    return found["status"], found["reason"], None if found["detail"] is None else _clip(found["detail"], _DOC)


def _sentence(sentence: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    text = sentence.get("text") or ""
    if row["task"] == "em5":  # an item of a list is judged behind its question, which the page shows anyway
        text = text.removeprefix(f"{row['question']} ")
    citations = sentence.get("citations") or []
    return {
        "text": _clip(text, _LONG),
        "recall": sentence.get("recall"),
        "p_yes": _number(sentence.get("p_yes")),
        "citations": [
            {"doc": citation.get("doc"), "verdict": citation.get("verdict"), "p_yes": _number(citation.get("p_yes"))}
            for citation in citations[:_MANY]
        ],
        "citations_left": max(0, len(citations) - _MANY),
    }


def _docs(docs: list[dict[str, Any]], answers: list[list[str]], cited: set[Any]) -> tuple[list[dict[str, Any]], int]:
    shown = []
    for number, doc in enumerate(docs, start=1):
        labels = doc.get("answers_found") or []
        holds = [at for at, label in enumerate(labels) if label]
        if number > _DOCS and number not in cited and not holds:
            continue
        names = [(answers[at] or [""])[0] if at < len(answers) else f"answer {at + 1}" for at in holds]
        shown.append(
            {
                "n": number,
                "title": _clip(doc.get("title") or "", _DOC),
                "text": _clip(doc.get("text") or "", _DOC),
                "holds": [_clip(name, 200) for name in names[:_MANY]],
                "labelled": doc.get("answers_found") is not None,
            }
        )
    return shown, len(docs) - len(shown)


def _answer(answer: dict[str, Any]) -> dict[str, Any]:
    aliases = [_clip(alias or "", _DOC) for alias in (answer.get("aliases") or [])[:_MANY]]
    text = _clip(answer.get("answer") or "", _DOC)
    return {
        "text": text,
        "aliases": [alias for alias in aliases if alias != text],
        "supported": answer.get("supported"),
        "found": answer.get("found"),
    }


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […{len(text) - limit:,} more characters]"


def _number(value: float | None) -> float | None:
    return round(float(value), 4) if value is not None and math.isfinite(value) else None
