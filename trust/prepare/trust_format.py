"""Rows in the published Trust-Score form (and ALCE's) as rows of the tables samples and responses."""

from typing import Any

from trust.errors import RowError
from trust.metrics import TASKS
from trust.prepare.answers import FORMS, drop_empty, long_answers, read_answers
from trust.prepare.config import DataConfig, dataset_name
from trust.prepare.documents import read_docs
from trust.prepare.fields import as_map, as_text, count, has, optional_text, show, take, text, texts
from trust.prepare.ids import SOURCE_IDS, sample_id, source_id

_CONTEXT = ("source", "history", "fact")
# Where the user says how these are called, they have to be there: without them a row is another row, read in another way.
_NEEDED = ("id", "question", "answers", "docs", "dataset", "language", "task", "model", "prompt", "draw")
_NAME_LENGTH = 200


def to_sample(raw: dict[str, Any], data: DataConfig, compat: str) -> dict[str, Any]:
    """A row of the table samples.

    An `output` is left out; columns without a meaning here go to `meta` as text. Where no document has `answers_found`
    the labels stay null; missing `docs` and `answers` are empty.

    Args:
        raw: one row as it lies in the file.
        compat: `strict` refuses an answer that normalises to nothing, and drops aliases that do (noted in
            `meta.dropped_aliases`) where others remain; `upstream` keeps them.

    Raises:
        RowError: says which field is wrong and why.
    """
    row = _Row(raw, data)
    row.take("output")
    question = row.take("question")
    if question is None or not text(question, "question").strip():
        raise RowError("missing_field", f"the row has no question ({_looked_at('question', data)})", "question")
    dataset = optional_text(row.take("dataset"), "dataset") or dataset_name(data)
    language = optional_text(row.take("language"), "language") or data.language or "und"
    task = optional_text(row.take("task"), "task") or data.task or "none"
    if task not in TASKS:
        raise RowError("invalid_task", f"task is {show(task)}; known are {', '.join(TASKS)}", "task")

    gold = read_answers(row.take("answers"), row.rest)
    if gold.column in FORMS:
        row.rest = {key: value for key, value in row.rest.items() if key != gold.column}
    docs = read_docs(row.take("docs"), data, None if gold.column is None else len(gold.answers))
    references = texts(row.take("references"), "references") or long_answers(row.rest, gold.column)
    own = row.own_id()
    made = own or sample_id(dataset, row.take_id(), question, [doc["text"] for doc in docs], gold.answers)
    parent = source_id(row.pop("parent_id"), "parent_id")
    context = row.context()
    meta = row.meta()
    answers = gold.answers
    if compat == "strict":
        answers, dropped = drop_empty(answers, language, gold.column or "answers")
        if dropped:
            meta["dropped_aliases"] = as_text(dropped, "answers")
    return {
        "sample_id": made,
        "parent_id": parent,
        "dataset": dataset,
        "language": language,
        "task": task,
        "question": question,
        "answers": answers,
        "docs": docs[: data.max_docs],
        "references": references,
        "context": context,
        "meta": meta,
    }


def to_responses(raw: dict[str, Any], data: DataConfig, compat: str) -> list[dict[str, Any] | RowError]:
    """Rows of the table responses: one, or one a draw where `output` is a list of texts.

    Raises:
        RowError: the sample is wrong, or there is no output at all; what is wrong with one draw comes in the list.
    """
    row = _Row(raw, data)
    output = row.take("output")
    if output is None:
        path = data.columns.get("output", "output")
        null = f"`{path}` is null, as an empty cell of CSV or TSV is; an answer without a word is an empty text in JSON"
        what = null if path and has(raw, path) else _looked_at("output", data)
        raise RowError("missing_output", f"the row has no output ({what})", "output")
    model = optional_text(row.take("model"), "model") or data.model
    prompt = _prompt_name(row) or data.prompt
    draw = count(row.take("draw"), "draw")
    rest = {
        "finish_reason": optional_text(row.pop("finish_reason"), "finish_reason"),
        "prompt_tokens": count(row.pop("prompt_tokens"), "prompt_tokens"),
        "output_tokens": count(row.pop("output_tokens"), "output_tokens"),
        "status": "ok",
    }
    if isinstance(output, list) and draw is not None:
        raise RowError("invalid_draw", "the row has a draw, but its output is a list of several", "draw")
    if isinstance(output, list) and not output:
        raise RowError("missing_output", "output is an empty list", "output")
    sample = to_sample(row.rest, data, compat)
    made: list[dict[str, Any] | RowError] = []
    for number, one in enumerate(output if isinstance(output, list) else [output]):
        field = f"output[{number}]" if isinstance(output, list) else "output"
        try:
            found = text(one, field)
        except RowError as error:
            made.append(error)
        else:
            key = {"model": model, "prompt": prompt, "draw": number if draw is None else draw}
            made.append(sample | key | {"output": found} | rest)
    return made


def has_output(raw: dict[str, Any], data: DataConfig) -> bool:
    """Whether the row has an `output` that is not null."""
    return _Row(raw, data).take("output") is not None


class _Row:
    """A row whose columns are taken out one by one; what is left is the user's own."""

    def __init__(self, raw: dict[str, Any], data: DataConfig) -> None:
        self._raw = self.rest = raw
        self._columns = data.columns

    def take(self, name: str) -> Any:
        """The column by our name, wherever the user has it."""
        path = self._columns.get(name, name)
        if not path:
            return None  # the user says that the file has no such column
        if name in self._columns and name in _NEEDED and not has(self.rest, path):
            raise RowError("missing_field", f"data.columns.{name}={path}, but the row has no such field", name)
        value, self.rest = take(self.rest, path)
        return value

    def own_id(self) -> str | None:
        """The sample_id of a row of this suite's own tables, known by its `dataset` beside it; it is kept as it is."""
        if "dataset" not in self._raw or "sample_id" not in self._raw or "id" in self._columns:
            return None
        return source_id(self.pop("sample_id"), "sample_id")

    def take_id(self) -> str | None:
        if "id" in self._columns:
            return source_id(self.take("id"), self._columns["id"])
        for name in SOURCE_IDS:
            found = source_id(self.rest.get(name), name)
            if found is not None:
                self.pop(name)
                return found
        return None

    def pop(self, name: str) -> Any:
        value = self.rest.get(name)
        self.rest = {key: item for key, item in self.rest.items() if key != name}
        return value

    def context(self) -> dict[str, str]:
        given = self.rest.get("context")
        found = as_map(self.pop("context"), "context") if isinstance(given, dict) else {}
        for name in _CONTEXT:
            value = self.take(name)
            if value is not None:
                found[name] = as_text(value, name)
        return found

    def meta(self) -> dict[str, str]:
        given = self.rest.get("meta")
        found = as_map(self.pop("meta"), "meta") if isinstance(given, dict) else {}
        return found | as_map(self.rest, "meta")


def _prompt_name(row: _Row) -> str | None:
    """The prompt's name. A whole prompt under that name is no key: it stays with the user's own columns."""
    before = row.rest
    value = row.take("prompt")
    if isinstance(value, list) or (isinstance(value, str) and ("\n" in value or len(value) > _NAME_LENGTH)):
        row.rest = before
        return None
    return optional_text(value, "prompt")


def _looked_at(name: str, data: DataConfig) -> str:
    path = data.columns.get(name, name)
    return f"looked for `{path}`; another name is given with data.columns.{name}=NAME"
