"""Gold answers in their published forms, as one list of alias lists."""

import json
from typing import Any, NamedTuple

from trust.errors import RowError
from trust.prepare.fields import items, text, texts, wrong_type
from trust.text.normalize import normalize

# Other forms of gold answers, looked at in this order where there are no `answers`.
FORMS = ("qa_pairs", "claims", "answer_list")


class Gold(NamedTuple):
    """Gold answers: for each answer its aliases, and the column they come from (null: the row has none)."""

    answers: list[list[str]]
    column: str | None


def read_answers(value: Any, row: dict[str, Any], field: str = "answers") -> Gold:
    """The gold answers of a row.

    Args:
        value: of the column of answers: a list of alias lists, a list of strings (each an answer of its own, so that a
            claim is never taken for a list of letters), one string, or null.
        row: where `value` is null, one of its ALCE columns is read instead: `qa_pairs` (ASQA: one answer a pair, its
            `short_answers` the aliases), `claims` (ELI5: one answer a claim) or `answer_list` (QAMPARI: `answer_text`
            and `aliases`).

    Raises:
        RowError: names the element that is not as it should be.
    """
    if value is not None:
        return Gold(_lists(value, field), "answers")
    for column in FORMS:
        if row.get(column) is not None:
            return Gold([_form(item, f"{column}[{i}]") for i, item in enumerate(items(row[column], column))], column)
    return Gold([], None)


def drop_empty(answers: list[list[str]], language: str, column: str) -> tuple[list[list[str]], list[str]]:
    """The answers without aliases that normalise to nothing, and those aliases.

    Such an alias (`The`, `!`) would be found in every text. Where it is the only one its answer cannot be judged.

    Raises:
        RowError: an answer has no alias left.
    """
    kept, dropped = [], []
    for i, aliases in enumerate(answers):
        good = [alias for alias in aliases if normalize(alias, "en" if language == "und" else language)]
        if not good:
            raise RowError(
                "empty_answer",
                f"{column}[{i}] is {json.dumps(aliases, ensure_ascii=False)[:80]}: nothing is left of it once articles "
                "and punctuation are dropped, so it would match every text",
                f"{column}[{i}]",
            )
        kept.append(good)
        dropped += [alias for alias in aliases if alias not in good]
    return kept, dropped


def long_answers(row: dict[str, Any], column: str | None) -> list[str]:
    """ALCE's long answers, which are references: those of `annotations` (ASQA), else the row's `answer`.

    Only a row with one of ALCE's forms of gold is read so: elsewhere `answer` may be anything, even a model's output.
    """
    if column not in FORMS:
        return []
    notes = row.get("annotations")
    if isinstance(notes, list):
        found = [note["long_answer"] for note in notes if isinstance(note, dict) and note.get("long_answer")]
        if found:
            return texts(found, "annotations.long_answer")
    return [text(row["answer"], "answer")] if isinstance(row.get("answer"), str) and row["answer"].strip() else []


def _lists(value: Any, field: str) -> list[list[str]]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise wrong_type(value, "a list of answers or one text", field)
    return [_aliases(item, f"{field}[{i}]") for i, item in enumerate(value)]


def _aliases(value: Any, field: str) -> list[str]:
    if not isinstance(value, str | list):
        raise wrong_type(value, "text or a list of aliases", field)
    return texts(value, field)


def _form(value: Any, field: str) -> list[str]:
    if not isinstance(value, dict):
        return _aliases(value, field)
    if "short_answers" in value:
        return _aliases(value["short_answers"], f"{field}.short_answers")
    if "answer_text" in value:
        names = [text(value["answer_text"], f"{field}.answer_text"), *texts(value.get("aliases"), f"{field}.aliases")]
        return list(dict.fromkeys(names))
    raise RowError("missing_field", f"{field} has neither short_answers nor answer_text", field)
