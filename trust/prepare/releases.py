"""Question sets as their authors released them, for building: ASQA, QAMPARI, ELI5 and ExpertQA.

The published evaluation files are later forms of the same data, with documents (kind `trust`). Here a row has none yet:
`jobs.retrieve` finds them. Where a release says of which split a row is, by its key, a column or the file's name, it is kept
in `meta.split`, and no building job takes a row that models are measured on.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from trust.errors import RowError
from trust.prepare.fields import items, number, show, text, texts, wrong_type
from trust.text.normalize import normalize

SUB_QUESTIONS = "sub_questions"  # in context: a JSON list, one for each answer, null where a pair has none
_CITED = re.compile(r"\s*\[\d+\]")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_LINK = re.compile(r"\[\[|\]\]")
_SPLIT = re.compile(r"(?<![a-z])(train|validation|valid|val|dev|test)\d*(?![a-z])")
_SPLITS = {"valid": "validation", "val": "validation"}


def to_row(raw: dict[str, Any], kind: str) -> dict[str, Any]:
    """A row of a release in this project's own form (`trust.prepare.trust_format`).

    Raises:
        RowError: names the field at fault.
    """
    return _READERS[kind](raw)


def split_of(path: str) -> str | None:
    """The split that a file's name tells (`train_data.jsonl`, `validation1.parquet`); None where it tells none, or two."""
    found = {_SPLITS.get(name, name) for name in _SPLIT.findall(path.rsplit("/", 1)[-1].lower())}
    return found.pop() if len(found) == 1 else None


def _asqa(raw: dict[str, Any]) -> dict[str, Any]:
    """ASQA: an ambiguous question, a short answer for each of its readings (`qa_pairs`), and long answers that cover them."""
    pairs = items(_needed(raw, "qa_pairs"), "qa_pairs")
    asked = [pair.get("question") if isinstance(pair, dict) else None for pair in pairs]
    notes = items(raw.get("annotations"), "annotations")
    long = [note.get("long_answer") for note in notes if isinstance(note, dict)]
    rest = _without(raw, "ambiguous_question", "wikipages", "annotations")
    return rest | {
        "question": raw.get("ambiguous_question") or _needed(raw, "question"),
        "references": [answer for answer in long if answer],
        "context": {SUB_QUESTIONS: json.dumps(asked, ensure_ascii=False)},
    }


def _qampari(raw: dict[str, Any]) -> dict[str, Any]:
    """QAMPARI: a question with a list of answers, each with aliases, and what the source's wiki markup left in them."""
    answers: dict[str, list[str]] = {}
    for index, item in enumerate(items(_needed(raw, "answer_list"), "answer_list")):
        field = f"answer_list[{index}]"
        if not isinstance(item, dict):
            raise wrong_type(item, "an object", field)
        given = [
            text(_needed(item, "answer_text"), f"{field}.answer_text"),
            *texts(item.get("aliases"), f"{field}.aliases"),
        ]
        names = list(dict.fromkeys(name for alias in given for name in _unmarked(alias)))
        if not names:
            raise RowError("empty_answer", f"{field} is {show(given)}: nothing is left of it without its markup", field)
        answers.setdefault(normalize(names[0], "en") or names[0], names)
    rest = _without(raw, "question_text", "answer_list", "entities", "decompositions", "qid")
    return rest | {
        "id": _needed(raw, "qid"),
        "question": _needed(raw, "question_text"),
        "answers": list(answers.values()),
    }


def _eli5(raw: dict[str, Any]) -> dict[str, Any]:
    """ELI5: a post's title is the question, its best-scored answer the reference; claims are written of it later
    (`jobs.label`)."""
    given = raw.get("answers")
    if isinstance(given, Mapping):  # Arrow's form: a list a field
        given = [dict(zip(given, values, strict=False)) for values in zip(*given.values(), strict=False)]
    found = []
    for index, item in enumerate(items(given, "answers")):
        if not isinstance(item, dict):
            raise wrong_type(item, "an object", f"answers[{index}]")
        said = text(item.get("text") or "", f"answers[{index}].text").strip()
        score = number(item.get("score"), f"answers[{index}].score")
        if said and score:
            found.append((score, said))
    if not found:
        raise RowError("no_reference", "no answer has both words and a score", "answers")
    score, best = max(found, key=lambda pair: (pair[0], pair[1]))
    kept = {name: raw[name] for name in ("category", "subreddit", "split") if raw.get(name) is not None}
    return kept | {
        "id": raw.get("q_id"),
        "question": _needed(raw, "title"),
        "references": [best],
        "answer_score": score,
    }


def _expertqa(raw: dict[str, Any]) -> dict[str, Any]:
    """ExpertQA: a question and the answer as its expert revised it, which is the reference."""
    answers = _needed(raw, "answers")
    if not isinstance(answers, dict):
        raise wrong_type(answers, "an object, model to answer", "answers")
    revised = [item.get("revised_answer_string") for item in answers.values() if isinstance(item, dict)]
    found = [" ".join(_CITED.sub("", answer).split()) for answer in revised if isinstance(answer, str)]
    if not any(found):
        raise RowError("no_reference", "no answer was revised by the expert", "answers")
    about = raw.get("metadata")
    kept = {key: value for key, value in about.items() if value} if isinstance(about, dict) else {}
    if raw.get("split") is not None:
        kept["split"] = raw["split"]
    return kept | {"question": _needed(raw, "question"), "references": [answer for answer in found if answer]}


_READERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "asqa": _asqa,
    "qampari": _qampari,
    "eli5": _eli5,
    "expertqa": _expertqa,
}
KINDS = tuple(_READERS)


def _unmarked(alias: str) -> list[str]:
    """The names that an alias holds: `[[Paris|the capital]]` are two, and templates and quotes are none."""
    bare = _LINK.sub("", _TEMPLATE.sub("", alias)).replace('"', "")
    return [" ".join(name.split()) for name in bare.split("|") if name.strip()]


def _needed(raw: Mapping[str, Any], field: str) -> Any:
    if raw.get(field) in (None, ""):
        raise RowError("missing_field", f"the row has no {field}", field)
    return raw[field]


def _without(raw: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in names}
