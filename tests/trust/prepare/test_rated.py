"""Outputs that people rated, as rows that any metric can score."""

import json
from pathlib import Path

import pytest

from tests.trust.prepare.helpers import lines, prepare, write
from trust.errors import RowError
from trust.prepare.rated import to_rows


def test_a_dialogue_in_unievals_form(tmp_path: Path) -> None:
    row = {
        "source": "hi \n hello \n\n",
        "system_id": "Argmax Decoding",
        "system_output": "a fact .",
        "context": "the fact\n",
        "scores": {"groundedness": 1.0},
        "predict_scores": {"groundedness": 0.5},
    }
    path = write(tmp_path / "topical_chat.json", json.dumps([row, row | {"system_id": "Other"}]))
    first, second = prepare(path, kind="unieval", outputs="require")["responses"]
    assert (first["context"], first["references"]) == ({"history": "hi \n hello \n\n", "fact": "the fact\n"}, [])
    assert first["sample_id"] == second["sample_id"]
    assert (first["model"], first["output"]) == ("Argmax Decoding", "a fact .")
    assert json.loads(first["meta"]["ratings"]) == {"groundedness": 1.0}


def test_a_summary_in_both_forms(tmp_path: Path) -> None:
    unieval = {
        "doc_id": "d1",
        "system_id": 0,
        "source": "text",
        "reference": "ref",
        "system_output": "sum",
        "scores": {},
    }
    summeval = {
        "id": "d1",
        "model_id": "0",
        "text": "text",
        "references": ["ref"],
        "decoded": "sum",
        "expert_annotations": [{"coherence": 1}],
    }
    found = [
        prepare(write(tmp_path / f"{kind}.jsonl", lines([row])), kind=kind, name="s", outputs="require")["responses"][0]
        for kind, row in (("unieval", unieval), ("summeval", summeval))
    ]
    for made in found:
        assert (made["sample_id"], made["model"], made["output"]) == ("s:d1", "0", "sum")
        assert (made["context"], made["references"]) == ({"source": "text"}, ["ref"])


def test_wikieval_is_four_answers_a_question(tmp_path: Path) -> None:
    row = {
        "question": "When?",
        "answer": "In 2022.",
        "ungrounded_answer": "In 2021.",
        "poor_answer": "Once.",
        "context_v1": ["It was in 2022."],
        "context_v2": ["It was in 2022.", "Much else."],
        "source": "page",
    }
    path = write(tmp_path / "wikieval.json", json.dumps([row]))
    found = {made["model"]: made for made in prepare(path, kind="wikieval", outputs="require")["responses"]}
    assert {model: (made["output"], len(made["docs"])) for model, made in found.items()} == {
        "answer": ("In 2022.", 1),
        "ungrounded_answer": ("In 2021.", 1),
        "poor_answer": ("Once.", 1),
        "context_v2": ("In 2022.", 2),
    }
    assert len({made["sample_id"] for made in found.values()}) == 1


@pytest.mark.parametrize(
    ("kind", "row", "field"),
    [
        ("unieval", {"source": "s"}, "system_output"),
        ("unieval", {"source": "s", "system_output": "o", "scores": 3}, "scores"),
        ("summeval", {"id": 1}, "decoded"),
        ("summeval", {"id": 1, "decoded": "o", "expert_annotations": [3]}, "expert_annotations"),
        ("wikieval", {"question": "q", "answer": "a"}, "ungrounded_answer"),
    ],
)
def test_a_field_at_fault_is_named(kind: str, row: dict[str, object], field: str) -> None:
    with pytest.raises(RowError) as caught:
        to_rows(row, kind)
    assert caught.value.field == field
