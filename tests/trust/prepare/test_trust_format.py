from typing import Any

import pytest

from tests.trust.prepare.helpers import sample
from trust.errors import RowError
from trust.prepare import DataConfig
from trust.prepare.trust_format import to_responses, to_sample
from trust.tables import to_table

DATA = DataConfig(path="/x/towns.json", task="em")


def _sample(data: DataConfig = DATA, compat: str = "strict", **changes: Any) -> dict[str, Any]:
    row = to_sample(sample(**changes), data, compat)
    to_table("samples", [row])
    return row


def test_a_whole_row() -> None:
    row = _sample(kind="cited", source="wiki", language="nb", weight=2, references=["Norway."], history=[{"role": "u"}])
    assert row["sample_id"] == "towns:q0"
    assert (row["dataset"], row["language"], row["task"]) == ("towns", "nb", "em")
    assert row["answers"] == [["Norway", "Kingdom of Norway"], ["the north"]]
    assert [doc["answers_found"] for doc in row["docs"]] == [[1, 0], [0, 0]]
    assert row["references"] == ["Norway."]
    assert row["context"] == {"source": "wiki", "history": '[{"role": "u"}]'}
    assert row["meta"] == {"kind": "cited", "weight": "2"}


def test_what_is_missing_is_empty_and_never_invented() -> None:
    row = _sample(DataConfig(path="/x/towns.json"), answers=..., docs=..., id=...)
    assert (row["answers"], row["docs"], row["task"], row["language"]) == ([], [], "none", "und")
    assert len(row["sample_id"]) == 16
    assert _sample(answers=None)["docs"][0]["answers_found"] == [1, 0]


def test_a_row_says_it_better_than_the_config() -> None:
    row = _sample(DataConfig(path="/x/a.json", task="em", language="en"), task="cm", language="de", dataset="own")
    assert (row["task"], row["language"], row["dataset"], row["sample_id"]) == ("cm", "de", "own", "own:q0")


@pytest.mark.parametrize("name", ["id", "sample_id", "qid", "question_id"])
def test_names_of_ids(name: str) -> None:
    assert _sample(**{"id": ..., name: 12})["sample_id"] == "towns:12"


def test_rows_of_our_own_tables_keep_their_id() -> None:
    first = to_responses(sample(id=..., extra="x"), DATA, "strict")[0]
    assert isinstance(first, dict)
    again = to_responses({**first, "output": "new"}, DATA, "strict")[0]
    assert isinstance(again, dict)
    assert {key: again[key] for key in ("sample_id", "answers", "docs", "task")} == {
        key: first[key] for key in ("sample_id", "answers", "docs", "task")
    }
    assert again["meta"]["extra"] == "x"


def test_the_id_is_the_same_whatever_answers_labels_scores_and_mode_say() -> None:
    docs = sample()["docs"]
    bare = [{"title": doc["title"] + "!", "text": doc["text"]} for doc in docs]
    made = {
        _sample(id=...)["sample_id"],
        _sample(id=..., output="x", docs=bare, kind="other")["sample_id"],
        _sample(DataConfig(path="/x/towns.json", max_docs=1), id=...)["sample_id"],
        _sample(compat="upstream", id=...)["sample_id"],
    }
    assert len(made) == 1
    strict, upstream = (_sample(compat=mode, id=..., answers=[["The", "b"], ["c"]]) for mode in ("strict", "upstream"))
    assert strict["sample_id"] == upstream["sample_id"]


def test_empty_aliases_by_mode() -> None:
    changes = {"answers": [["The", "Norway"], ["c"]], "language": "en"}
    strict = _sample(**changes)
    assert strict["answers"] == [["Norway"], ["c"]]
    assert strict["meta"]["dropped_aliases"] == '["The"]'
    upstream = _sample(compat="upstream", **changes)
    assert upstream["answers"] == [["The", "Norway"], ["c"]]
    assert "dropped_aliases" not in upstream["meta"]


def test_alce_row() -> None:
    row = _sample(
        answers=...,
        qa_pairs=[{"question": "a", "short_answers": ["Norway"]}, {"question": "b", "short_answers": ["north", "N"]}],
        annotations=[{"long_answer": "Town 0 lies in Norway."}],
        wikipages=[{"title": "T"}],
    )
    assert row["answers"] == [["Norway"], ["north", "N"]]
    assert row["references"] == ["Town 0 lies in Norway."]
    assert "qa_pairs" not in row["meta"]
    assert row["meta"]["wikipages"] == '[{"title": "T"}]'


def test_columns_of_the_user() -> None:
    data = DataConfig(
        path="/x/a.json",
        columns={
            "question": "input.query",
            "id": "key",
            "answers": "gold",
            "docs": "ctxs",
            "task": "",
            "fact": "claim",
        },
    )
    own = {"task": "qa", "question": "no", "input": {"query": "Where?", "user": "u"}}
    raw = own | {"key": 3, "gold": "x", "ctxs": ["t"], "claim": "c"}
    row = to_sample(raw, data, "strict")
    assert (row["question"], row["sample_id"], row["answers"], row["docs"][0]["text"]) == (
        "Where?",
        "a:3",
        [["x"]],
        "t",
    )
    assert (row["task"], row["context"]) == ("none", {"fact": "c"})
    assert row["meta"] == {"input": '{"user": "u"}', "task": "qa", "question": "no"}


@pytest.mark.parametrize("name", ["question", "answers", "docs", "id", "language", "task", "dataset"])
def test_a_mapped_column_that_is_not_there_is_no_silent_null(name: str) -> None:
    with pytest.raises(RowError, match=f"data.columns.{name}=tpyo") as caught:
        _sample(DataConfig(path="/x/a.json", columns={name: "tpyo"}))
    assert (caught.value.reason, caught.value.field) == ("missing_field", name)


@pytest.mark.parametrize(
    ("output", "said"), [(None, "`output` is null, as an empty cell"), (..., "looked for `output`")]
)
def test_no_output_says_whether_the_column_is_there(output: Any, said: str) -> None:
    with pytest.raises(RowError, match=said):
        to_responses(sample(output=output), DATA, "strict")


@pytest.mark.parametrize("name", ["model", "prompt", "draw"])
def test_nor_is_one_of_a_response(name: str) -> None:
    with pytest.raises(RowError, match=f"data.columns.{name}=tpyo"):
        to_responses(sample(output="x"), DataConfig(path="/x/a.json", columns={name: "tpyo"}), "strict")


def test_max_docs_cuts_after_all_were_checked() -> None:
    data = DataConfig(path="/x/a.json", max_docs=1)
    assert len(_sample(data)["docs"]) == 1
    docs = [*sample()["docs"], {"text": "x", "answers_found": [3, 0]}]
    with pytest.raises(RowError, match="must be 0 or 1"):
        _sample(data, docs=docs)


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"question": ...}, "missing_field", "question"),
        ({"question": None}, "missing_field", "question"),
        ({"question": " \n"}, "missing_field", "question"),
        ({"question": ["q"]}, "invalid_type", "question"),
        ({"question": "\ud800"}, "invalid_unicode", "question"),
        ({"task": "em4"}, "invalid_task", "task"),
        ({"language": 5}, "invalid_type", "language"),
        ({"id": [1]}, "invalid_type", "id"),
        ({"answers": [["The"], ["x"]]}, "empty_answer", "answers[0]"),
        ({"answers": [[], ["x"]]}, "empty_answer", "answers[0]"),
        ({"answers": [["x"]]}, "length_mismatch", "docs[0].answers_found"),
        ({"references": [1]}, "invalid_type", "references[0]"),
        ({"note": "\udfff"}, "invalid_unicode", "meta.note"),
    ],
)
def test_bad_rows(changes: dict[str, Any], reason: str, field: str) -> None:
    with pytest.raises(RowError) as caught:
        _sample(**changes)
    assert (caught.value.reason, caught.value.field) == (reason, field)


def _responses(data: DataConfig = DATA, **changes: Any) -> list[dict[str, Any] | RowError]:
    made = to_responses(sample(**changes), data, "strict")
    to_table("responses", [row for row in made if isinstance(row, dict)])
    return made


def test_response_keys() -> None:
    data = DataConfig(path="/x/a.json", model="m0", prompt="p0")
    keys = ("model", "prompt", "draw", "output", "status", "finish_reason", "output_tokens")
    [row] = _responses(data)
    assert [row[key] for key in keys] == ["m0", "p0", 0, "It is in Norway [1].", "ok", None, None]
    [row] = _responses(data, model="m1", prompt="p1", draw=2, output="", finish_reason="length", output_tokens=9)
    assert [row[key] for key in keys] == ["m1", "p1", 2, "", "ok", "length", 9]
    assert row["meta"] == {}


def test_a_whole_prompt_is_not_the_name_of_one() -> None:
    [row] = _responses(prompt="Answer.\nQuestion: Where?")
    assert row["prompt"] == "unknown"
    assert row["meta"] == {"prompt": "Answer.\nQuestion: Where?"}


def test_several_outputs_are_draws_of_their_own_row() -> None:
    made = _responses(output=["a", None, "c"])
    assert [(row["draw"], row["output"]) for row in made if isinstance(row, dict)] == [(0, "a"), (2, "c")]
    [error] = [row for row in made if isinstance(row, RowError)]
    assert (error.reason, error.field) == ("invalid_type", "output[1]")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"output": ...}, "missing_output"),
        ({"output": None}, "missing_output"),
        ({"output": []}, "missing_output"),
        ({"output": ["a"], "draw": 1}, "invalid_draw"),
        ({"draw": -1}, "out_of_range"),
        ({"draw": "one"}, "invalid_type"),
        ({"model": 3}, "invalid_type"),
    ],
)
def test_bad_responses(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowError) as caught:
        _responses(**changes)
    assert caught.value.reason == reason


@pytest.mark.parametrize("output", [5, {"text": "x"}, True])
def test_output_of_a_wrong_type_fails_its_row(output: object) -> None:
    [error] = _responses(output=output)
    assert isinstance(error, RowError)
    assert (error.reason, error.field) == ("invalid_type", "output")
